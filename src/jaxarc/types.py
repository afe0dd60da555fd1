"""The domain's words: a grid, a pair of grids, a task."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc import bits
from jaxarc.bits import similarity

COLOR_RANGE = (bits.PADDING, 9)


class Grid(eqx.Module):
    """Colors 0 to 9 on the True cells of `mask`, -1 elsewhere."""

    data: Int[Array, "h w"]
    mask: Bool[Array, "h w"]

    def __check_init__(self):
        if not _is_traced(self.data) and not _within_colors(np.asarray(self.data)):
            raise ValueError(
                f"a grid holds {np.min(self.data)} to {np.max(self.data)}: colors are "
                "0 to 9, and -1 marks padding"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the real content (host only)."""
        height, width = _measure(np.asarray(self.mask))
        return int(height), int(width)


class TaskPair(eqx.Module):
    """What is given and what is asked for."""

    input_grid: Grid
    output_grid: Grid


class JaxArcTask(eqx.Module):
    """A puzzle: demonstration pairs and test pairs, padded to one shape.

    Grids are held as bit planes (`jaxarc.bits`): slots `0 … P-1` of `pairs` are the
    demonstrations, the others the tests; in each slot first the input, then the output.
    `start_similarity` is how alike input and output of each pair are. The documented
    arrays are read as properties. A leading axis on every leaf makes it a stack of
    tasks.
    """

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
        named = {
            "input_grids_examples": (input_grids_examples, input_masks_examples),
            "output_grids_examples": (output_grids_examples, output_masks_examples),
            "test_input_grids": (test_input_grids, test_input_masks),
            "true_test_output_grids": (true_test_output_grids, true_test_output_masks),
        }
        _check_shapes(named)
        _check_count("num_train_pairs", num_train_pairs, input_grids_examples.shape[-3])
        _check_count("num_test_pairs", num_test_pairs, test_input_grids.shape[-3])
        packed = {name: _pack(name, *grids) for name, grids in named.items()}
        train_in, train_out, test_in, test_out = packed.values()
        planes, sizes = zip(train_in, train_out, test_in, test_out, strict=True)
        self.pairs = _join(planes[:2], planes[2:], trailing=2)
        self.sizes = _join(sizes[:2], sizes[2:], trailing=1)
        self.num_train_pairs = jnp.asarray(num_train_pairs, jnp.int32)
        self.num_test_pairs = jnp.asarray(num_test_pairs, jnp.int32)
        self.task_index = jnp.asarray(task_index, jnp.int32)
        self.start_similarity = _start_similarity(self.pairs, self.sizes)
        self.width = input_grids_examples.shape[-1]
        self.max_train_pairs = input_grids_examples.shape[-3]

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
        """A task, or a stack of them, from planes that are already packed."""
        task = object.__new__(cls)
        pairs, sizes = jnp.asarray(pairs), jnp.asarray(sizes, jnp.int32)
        fields = {
            "pairs": pairs,
            "sizes": sizes,
            "start_similarity": _start_similarity(pairs, sizes),
            "num_train_pairs": jnp.asarray(num_train_pairs, jnp.int32),
            "num_test_pairs": jnp.asarray(num_test_pairs, jnp.int32),
            "task_index": jnp.asarray(task_index, jnp.int32),
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
    def input_grids_examples(self) -> Int[Array, "*stack p h w"]:
        """Demonstration inputs."""
        return self._grids(slice(None, self.max_train_pairs), 0)

    @property
    def output_grids_examples(self) -> Int[Array, "*stack p h w"]:
        """Demonstration outputs."""
        return self._grids(slice(None, self.max_train_pairs), 1)

    @property
    def test_input_grids(self) -> Int[Array, "*stack q h w"]:
        """Test inputs."""
        return self._grids(slice(self.max_train_pairs, None), 0)

    @property
    def true_test_output_grids(self) -> Int[Array, "*stack q h w"]:
        """Test outputs: all padding where the file gave none."""
        return self._grids(slice(self.max_train_pairs, None), 1)

    @property
    def input_masks_examples(self) -> Bool[Array, "*stack p h w"]:
        """True on the real cells of the demonstration inputs."""
        return self._masks(slice(None, self.max_train_pairs), 0)

    @property
    def output_masks_examples(self) -> Bool[Array, "*stack p h w"]:
        """True on the real cells of the demonstration outputs."""
        return self._masks(slice(None, self.max_train_pairs), 1)

    @property
    def test_input_masks(self) -> Bool[Array, "*stack q h w"]:
        """True on the real cells of the test inputs."""
        return self._masks(slice(self.max_train_pairs, None), 0)

    @property
    def true_test_output_masks(self) -> Bool[Array, "*stack q h w"]:
        """True on the real cells of the test outputs."""
        return self._masks(slice(self.max_train_pairs, None), 1)

    def get_grid_shape(self) -> tuple[int, int]:
        """Padded height and width."""
        return self.height, self.width

    def get_max_train_pairs(self) -> int:
        """How many demonstrations there is room for."""
        return self.max_train_pairs

    def get_max_test_pairs(self) -> int:
        """How many test pairs there is room for."""
        return self.max_test_pairs

    def get_available_demo_pairs(self) -> Bool[Array, "*stack p"]:
        """True for the slots that hold a demonstration."""
        return _first(self.num_train_pairs, self.max_train_pairs)

    def get_available_test_pairs(self) -> Bool[Array, "*stack q"]:
        """True for the slots that hold a test pair."""
        return _first(self.num_test_pairs, self.max_test_pairs)

    def is_demo_pair_available(self, index: Any) -> Bool[Array, "*stack"]:
        """Whether there is a demonstration of this index."""
        return (index >= 0) & (index < self.num_train_pairs)

    def is_test_pair_available(self, index: Any) -> Bool[Array, "*stack"]:
        """Whether there is a test pair of this index."""
        return (index >= 0) & (index < self.num_test_pairs)

    def get_train_pair(self, index: int) -> TaskPair:
        """One demonstration as grids."""
        return self._pair(index)

    def get_test_pair(self, index: int) -> TaskPair:
        """One test pair as grids, its answer included."""
        return self._pair(self.max_train_pairs + index)

    def get_demo_pair_data(
        self, index: Any
    ) -> tuple[Int[Array, "h w"], Int[Array, "h w"], Bool[Array, "h w"]]:
        """Input, output and input mask of a demonstration."""
        pair = self._pair(index)
        return pair.input_grid.data, pair.output_grid.data, pair.input_grid.mask

    def get_test_pair_data(
        self, index: Any
    ) -> tuple[Int[Array, "h w"], Bool[Array, "h w"]]:
        """Input and input mask of a test pair; its answer stays hidden."""
        given = self._pair(self.max_train_pairs + index).input_grid
        return given.data, given.mask

    def _rows(self) -> UInt[Array, "*stack slots two h"]:
        return bits.active_rows(self.sizes, self.height, self.pairs.dtype)

    def _grids(self, slots: Any, side: Any) -> Int[Array, "*slots h w"]:
        planes = self.pairs[..., slots, side, :, :]
        return bits.unpack_grid(planes, self._rows()[..., slots, side, :], self.width)

    def _masks(self, slots: Any, side: Any) -> Bool[Array, "*slots h w"]:
        return bits.unpack_rows(self._rows()[..., slots, side, :], self.width)

    def _pair(self, slot: Any) -> TaskPair:
        sides = [Grid(self._grids(slot, s), self._masks(slot, s)) for s in (0, 1)]
        return TaskPair(*sides)


def _start_similarity(
    pairs: UInt[Array, "*stack slots two planes h"],
    sizes: Int[Array, "*stack slots two two"],
) -> Float[Array, "*stack slots"]:
    given, wanted = (pairs[..., side, :, :] for side in (0, 1))
    given_size, wanted_size = (sizes[..., side, :] for side in (0, 1))
    return similarity(given, given_size, wanted, wanted_size)


def _first(count: Int[Array, "*stack"], size: int) -> Bool[Array, "*stack size"]:
    index = jnp.arange(size, dtype=jnp.int32)
    return index.reshape((1,) * count.ndim + (size,)) < count[..., None]


def _is_traced(value: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def _within_colors(grid: np.ndarray) -> bool:
    low, high = COLOR_RANGE
    return grid.size == 0 or bool(low <= grid.min() and grid.max() <= high)


def _measure(mask: Any) -> tuple[Any, Any]:
    """Height and width of the content, if it is a rectangle at the top left."""
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
    if _is_traced(count):
        return
    if not np.all((np.asarray(count) >= 0) & (np.asarray(count) <= room)):
        raise ValueError(f"{name} is {count}: it must be 0 to {room}, the slots given")


def _pack(name: str, grids: Any, masks: Any) -> tuple[Any, Any]:
    """Planes and sizes; content and masks are checked unless they are traced."""
    height, width = _measure(masks)
    xp = np if isinstance(masks, np.ndarray) else jnp
    sizes = xp.stack([height, width], axis=-1).astype(np.int32)
    if not _is_traced((grids, masks)):
        _check_content(name, np.asarray(grids), np.asarray(masks), np.asarray(sizes))
    return bits.pack_grid(xp.where(masks, grids, bits.PADDING)), sizes


def _check_content(
    name: str, grids: np.ndarray, masks: np.ndarray, sizes: np.ndarray
) -> None:
    rows, columns = (np.arange(side) for side in masks.shape[-2:])
    anchored = (rows[:, None] < sizes[..., 0, None, None]) & (
        columns < sizes[..., 1, None, None]
    )
    if not np.array_equal(anchored, masks):
        raise ValueError(
            f"a mask of {name} is not a filled rectangle at the top left corner: "
            "content starts at row 0, column 0, padding follows"
        )
    content = grids[masks]
    if content.size and (content.min() < 0 or content.max() > COLOR_RANGE[1]):
        raise ValueError(
            f"{name} holds {content.min()} to {content.max()} inside its mask: colors "
            "are 0 to 9"
        )


def _join(train: tuple[Any, Any], test: tuple[Any, Any], trailing: int) -> Array:
    """Inputs beside outputs, demonstrations before tests."""
    halves = [jnp.stack(sides, axis=-trailing - 1) for sides in (train, test)]
    return jnp.concatenate(halves, axis=-trailing - 2)
