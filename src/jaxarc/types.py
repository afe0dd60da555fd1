"""The domain's words: a grid, a pair of grids, a task."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc import bits
from jaxarc.bits import PackedGrid, compiled
from jaxrig.notebook import Shown

COLOR_RANGE = (bits.PADDING, 9)


class Grid(eqx.Module):
    """Colors 0 to 9 on the True cells of `mask`, -1 elsewhere."""

    data: Int[Array, "h w"]
    mask: Bool[Array, "h w"]

    def __check_init__(self):
        if is_traced(self.data) or self.data.size == 0:
            return
        low, high = np.min(self.data), np.max(self.data)
        if low < COLOR_RANGE[0] or high > COLOR_RANGE[1]:
            raise ValueError(
                f"a grid holds {low} to {high}: colors are 0 to 9, and -1 is padding"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the real content (host only)."""
        height, width = measure(np.asarray(self.mask))
        return int(height), int(width)


class TaskPair(eqx.Module):
    """What is given and what is asked for."""

    input_grid: Grid
    output_grid: Grid


class JaxArcTask(eqx.Module, Shown):
    """A puzzle: demonstration pairs and test pairs, padded to one shape.

    Grids are held as bit planes (`jaxarc.bits`): slots `0 … P-1` of `pairs` are the
    demonstrations, the others the tests; in each slot first the input, then the output.
    `start_similarity` is how alike input and output of each pair are. The documented
    arrays are read as properties. A leading axis on every leaf makes it a stack of
    tasks.
    """

    shown_by: ClassVar[str] = "jaxarc.recording:show_task"
    pairs: UInt[Array, "*stack slots two planes h"]
    sizes: Int[Array, "*stack slots two two"]
    num_train_pairs: Int[Array, "*stack"]
    num_test_pairs: Int[Array, "*stack"]
    task_index: Int[Array, "*stack"]
    start_similarity: Float[Array, "*stack slots"]
    width: int = eqx.field(static=True)
    max_train_pairs: int = eqx.field(static=True)

    def __init__(
        self,
        input_grids_examples: Any,
        input_masks_examples: Any,
        output_grids_examples: Any,
        output_masks_examples: Any,
        num_train_pairs: Any,
        test_input_grids: Any,
        test_input_masks: Any,
        true_test_output_grids: Any,
        true_test_output_masks: Any,
        num_test_pairs: Any,
        task_index: Any = -1,
    ):
        named: dict[str, Any] = {
            "input_grids_examples": (input_grids_examples, input_masks_examples),
            "output_grids_examples": (output_grids_examples, output_masks_examples),
            "test_input_grids": (test_input_grids, test_input_masks),
            "true_test_output_grids": (true_test_output_grids, true_test_output_masks),
        }
        xp = jnp if is_traced(list(named.values())) else np
        # On the host if possible: eagerly, each step below would compile a program.
        named = {name: tuple(map(xp.asarray, both)) for name, both in named.items()}
        _check_shapes(named)
        *_, slots, _, width = named["input_grids_examples"][0].shape
        _check_count("num_train_pairs", num_train_pairs, slots)
        room = named["test_input_grids"][0].shape[-3]
        _check_count("num_test_pairs", num_test_pairs, room)
        if xp is np:
            for name, both in named.items():
                check_content(name, *both)
        grids, masks = (
            _join(xp, *arrays) for arrays in zip(*named.values(), strict=True)
        )
        # Unsigned colors, of which -1 would be another one, are widened first.
        cells = xp.where(masks, grids.astype(np.int32), bits.PADDING)
        planes = bits.pack_grid(cells)
        sizes = xp.stack(measure(masks), axis=-1)
        counts = (num_train_pairs, num_test_pairs, task_index)
        whole = JaxArcTask.from_packed(planes, sizes, *counts, width, slots)
        for name, value in vars(whole).items():
            setattr(self, name, value)

    @classmethod
    def from_packed(
        cls,
        pairs: Any,
        sizes: Any,
        num_train_pairs: Any,
        num_test_pairs: Any,
        task_index: Any,
        width: int,
        max_train_pairs: int,
    ) -> "JaxArcTask":
        """Return a task, or a stack of them, from planes that are already packed."""
        # Past `__init__`, which takes the documented arrays and would pack them again.
        task = object.__new__(cls)
        fields = {
            "pairs": on_device(pairs),
            "sizes": on_device(sizes, np.int32),
            "start_similarity": _start_similarity(pairs, sizes),
            "num_train_pairs": on_device(num_train_pairs, np.int32),
            "num_test_pairs": on_device(num_test_pairs, np.int32),
            "task_index": on_device(task_index, np.int32),
            "width": width,
            "max_train_pairs": max_train_pairs,
        }
        for name, value in fields.items():
            object.__setattr__(task, name, value)
        return task

    @property
    def height(self) -> int:
        """Padded height of every grid."""
        return self.pairs.shape[-1]

    @property
    def max_test_pairs(self) -> int:
        """How many test pairs there is room for."""
        return self.pairs.shape[-4] - self.max_train_pairs

    @property
    @compiled
    def input_grids_examples(self) -> Int[Array, "*stack p h w"]:
        """Demonstration inputs."""
        return self._train(0).cells()

    @property
    @compiled
    def output_grids_examples(self) -> Int[Array, "*stack p h w"]:
        """Demonstration outputs."""
        return self._train(1).cells()

    @property
    @compiled
    def test_input_grids(self) -> Int[Array, "*stack q h w"]:
        """Test inputs."""
        return self._test(0).cells()

    @property
    @compiled
    def true_test_output_grids(self) -> Int[Array, "*stack q h w"]:
        """Test outputs: all padding where the file gave none."""
        return self._test(1).cells()

    @property
    @compiled
    def input_masks_examples(self) -> Bool[Array, "*stack p h w"]:
        """True on the real cells of the demonstration inputs."""
        return self._train(0).mask()

    @property
    @compiled
    def output_masks_examples(self) -> Bool[Array, "*stack p h w"]:
        """True on the real cells of the demonstration outputs."""
        return self._train(1).mask()

    @property
    @compiled
    def test_input_masks(self) -> Bool[Array, "*stack q h w"]:
        """True on the real cells of the test inputs."""
        return self._test(0).mask()

    @property
    @compiled
    def true_test_output_masks(self) -> Bool[Array, "*stack q h w"]:
        """True on the real cells of the test outputs."""
        return self._test(1).mask()

    def get_grid_shape(self) -> tuple[int, int]:
        """Return padded height and width."""
        return self.height, self.width

    @compiled
    def get_available_demo_pairs(self) -> Bool[Array, "*stack p"]:
        """Return True for the slots that hold a demonstration."""
        return _first(self.num_train_pairs, self.max_train_pairs)

    @compiled
    def get_available_test_pairs(self) -> Bool[Array, "*stack q"]:
        """Return True for the slots that hold a test pair."""
        return _first(self.num_test_pairs, self.max_test_pairs)

    def get_train_pair(self, index: int) -> TaskPair:
        """Return one demonstration as grids."""
        _check_index("demonstrations", index, self.num_train_pairs)
        return self._pair(index)

    def get_test_pair(self, index: int) -> TaskPair:
        """Return one test pair as grids, its answer included."""
        _check_index("test pairs", index, self.num_test_pairs)
        return self._pair(self.max_train_pairs + index)

    def _train(self, side: int) -> PackedGrid:
        return self._packed(slice(None, self.max_train_pairs), side)

    def _test(self, side: int) -> PackedGrid:
        return self._packed(slice(self.max_train_pairs, None), side)

    def _packed(self, slots: Any, side: int) -> PackedGrid:
        planes, sizes = self.pairs[..., slots, side, :, :], self.sizes
        return PackedGrid(planes, sizes[..., slots, side, :], self.width)

    @compiled
    def _pair(self, slot: int) -> TaskPair:
        sides = [self._packed(slot, side) for side in (0, 1)]
        return TaskPair(*(Grid(side.cells(), side.mask()) for side in sides))


def _start_similarity(pairs: Any, sizes: Any) -> Float[Array, "*stack slots"]:
    """Return how alike input and output of every pair are.

    Known values are compared with NumPy: outside of a compiled function each operation
    of JAX would be a program of its own, compiled for every shape of a buffer.
    """
    if not is_traced((pairs, sizes)):
        return on_device(_similarity_on_host(np.asarray(pairs), np.asarray(sizes)))
    return bits.similarity(
        *(PackedGrid(pairs[..., i, :, :], sizes[..., i, :], 0) for i in (0, 1))
    )


def _similarity_on_host(pairs: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return what `bits.similarity` gives, to the bit."""
    dtype, height = pairs.dtype, pairs.shape[-1]
    differs = np.bitwise_or.reduce(pairs[..., 0, :, :] ^ pairs[..., 1, :, :], axis=-2)
    common = sizes.min(axis=-2)
    filled = (np.uint64(1) << common[..., 1:].astype(np.uint64)) - np.uint64(1)
    rows = np.where(np.arange(height) < common[..., :1], filled.astype(dtype), 0)
    same = np.ascontiguousarray(rows.astype(dtype) & ~differs)
    matches = np.unpackbits(same.view(np.uint8), axis=-1).sum(axis=-1)
    union = sizes.prod(axis=-1).sum(axis=-1) - common.prod(axis=-1)
    return matches.astype(np.float32) / np.maximum(union, 1).astype(np.float32)


def _first(count: Int[Array, "*stack"], size: int) -> Bool[Array, "*stack size"]:
    index = jnp.arange(size, dtype=jnp.int32)
    return index.reshape((1,) * count.ndim + (size,)) < count[..., None]


def is_traced(tree: Any) -> bool:
    """Return whether any array of a pytree is being traced."""
    if isinstance(tree, jax.Array):
        return isinstance(tree, Tracer)
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def measure(mask: Any) -> tuple[Any, Any]:
    """Return height and width of the content, a rectangle at the top left."""
    return mask.any(axis=-1).sum(axis=-1), mask.any(axis=-2).sum(axis=-1)


def _check_shapes(named: dict[str, tuple[Any, Any]]) -> None:
    reference, (first, _) = next(iter(named.items()))
    for name, (grids, masks) in named.items():
        if grids.ndim < 3 or grids.shape[-2:] != first.shape[-2:]:
            raise ValueError(
                f"{name} has shape {grids.shape}: every grid array must be (pairs, "
                f"height, width) with the height and width of {reference}, "
                f"{first.shape[-2:]}"
            )
        if masks.shape != grids.shape:
            raise ValueError(
                f"the masks of {name} have shape {masks.shape}, its grids "
                f"{grids.shape}: they must be equal"
            )
        if not jnp.issubdtype(grids.dtype, jnp.integer):
            raise TypeError(
                f"{name} is of type {grids.dtype}: colors are whole numbers, pass "
                "int32 (for instance grids.astype(jnp.int32))"
            )
        if masks.dtype != bool:
            raise TypeError(f"the masks of {name} are {masks.dtype}: pass booleans")
    for one, other in (
        ("input_grids_examples", "output_grids_examples"),
        ("test_input_grids", "true_test_output_grids"),
    ):
        if named[one][0].shape != named[other][0].shape:
            raise ValueError(
                f"{one} has shape {named[one][0].shape}, {other} "
                f"{named[other][0].shape}: inputs and outputs come in pairs"
            )


def _check_count(name: str, count: Any, room: int) -> None:
    if is_traced(count):
        return
    if not np.all((np.asarray(count) >= 0) & (np.asarray(count) <= room)):
        raise ValueError(f"{name} is {count}: it must be 0 to {room}, the slots given")


def _check_index(what: str, index: Any, count: Any) -> None:
    """Refuse a pair that is not there: JAX would take the last one instead."""
    if not is_traced((index, count)) and not 0 <= index < np.min(count):
        raise IndexError(f"index {index}: there are {np.min(count)} {what}, from 0 on")


def check_content(name: str, grids: np.ndarray, masks: np.ndarray) -> None:
    """Refuse grids that are not anchored at the top left, or hold unknown colors."""
    height, width = (side[..., None, None] for side in measure(masks))
    rows, columns = (np.arange(side) for side in masks.shape[-2:])
    if not np.array_equal((rows[:, None] < height) & (columns < width), masks):
        raise ValueError(
            f"a mask of {name} is not a filled rectangle at the top left corner: "
            "content starts at row 0, column 0, padding follows"
        )
    check_colors(name, grids, masks)


def check_colors(name: str, grids: np.ndarray, masks: np.ndarray) -> None:
    """Refuse grids that hold unknown colors where their masks are True."""
    content = grids[masks]
    if content.size and (content.min() < 0 or content.max() > COLOR_RANGE[1]):
        raise ValueError(
            f"{name} holds {content.min()} to {content.max()} inside its mask: colors "
            "are 0 to 9"
        )


def _join(xp: Any, train_in: Any, train_out: Any, test_in: Any, test_out: Any) -> Any:
    """Put inputs beside outputs, demonstrations before tests."""
    halves = [
        xp.stack(s, axis=-3) for s in ((train_in, train_out), (test_in, test_out))
    ]
    return xp.concatenate(halves, axis=-4)


def on_device(value: Any, dtype: Any = None) -> Array:
    """Return an array on the device; what is on the host compiles nothing to get there.

    `jnp.asarray` would compile a program for every new shape.
    """
    if is_traced(value):
        return jnp.asarray(value, dtype)
    if isinstance(value, jax.Array) and dtype in (None, value.dtype):
        return value
    return jax.device_put(np.asarray(value, dtype))
