"""An episode: everything that a step changes, packed into few arrays.

It works on one pair of a task at a time, and keeps a ring of records, one for every
action: the selection in the configured format, then the operation, the step at which it
was taken, the pair it was taken on, and 1 for "valid".
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc import bits
from jaxarc.bits import Flag, Index, PackedGrid, compiled, similarity
from jaxarc.config import JaxArcConfig
from jaxarc.config.groups import METADATA_FIELDS, get_action_record_fields
from jaxarc.ops.canvas import Canvas, Selection
from jaxarc.tasks.augment import transform_planes
from jaxarc.types import JaxArcTask


class Augmentation(eqx.Module):
    """How the pairs of a task are shown: one of eight symmetries, colors renamed."""

    symmetry: Int[Array, "*batch"]
    permutation: Int[Array, "*batch colors"]


class Pair(NamedTuple):
    """Input and output of a pair."""

    given: PackedGrid
    wanted: PackedGrid

    @property
    def has_answer(self) -> Flag:
        """Whether the output is known."""
        return self.wanted.size[0] > 0


def slot_of(
    tasks: JaxArcTask, mode: Int[Array, "*batch"], index: Int[Array, "*batch"]
) -> Int[Array, "*batch"]:
    """Return where a pair lies among demonstrations and tests."""
    return index + jnp.where(mode == 0, 0, tasks.max_train_pairs)


def load_pair(
    tasks: JaxArcTask, row: Index, slot: Index, augmentation: Augmentation | None = None
) -> Pair:
    """Return the pair in this slot of a task, or of this row of a stack of tasks."""
    at = (row, slot) if is_stack(tasks) else (slot,)
    planes = tasks.pairs.at[at].get(mode="clip")
    sizes = tasks.sizes.at[at].get(mode="clip")
    grids = zip(planes, sizes, strict=True)
    if augmentation is not None:
        change = augmentation.symmetry, augmentation.permutation, tasks.width
        grids = (transform_planes(*grid, *change) for grid in grids)
    return Pair(*(PackedGrid(*grid, tasks.width) for grid in grids))


def current_pair(tasks: JaxArcTask, episode: "Episode") -> Pair:
    """Return the pair that an episode is working on."""
    slot = slot_of(tasks, episode.episode_mode, episode.current_example_idx)
    return load_pair(tasks, episode.task_row, slot, episode.augmentation)


def load_start(
    tasks: JaxArcTask, row: Index, slot: Index, augmentation: Augmentation | None = None
) -> tuple[PackedGrid, Float[Array, ""]]:
    """Return what an episode begins with: the input, and its similarity.

    Similarity is known beforehand, except under an augmentation: a flip moves two grids
    of different sizes against each other.
    """
    if augmentation is not None:
        pair = load_pair(tasks, row, slot, augmentation)
        return pair.given, similarity(*pair)
    at = (row, slot) if is_stack(tasks) else (slot,)
    planes = tasks.pairs.at[(*at, 0)].get(mode="clip")
    size = tasks.sizes.at[(*at, 0)].get(mode="clip")
    alike = tasks.start_similarity.at[at].get(mode="clip")
    return PackedGrid(planes, size, tasks.width), alike


def is_stack(tasks: JaxArcTask) -> bool:
    """Return whether these are several tasks and not one."""
    return tasks.pairs.ndim == 5


def pair_counts(tasks: JaxArcTask, row: Index) -> tuple[Index, Index]:
    """Return how many demonstrations and how many test pairs a task has."""
    if is_stack(tasks):
        take = lambda counts: counts.at[row].get(mode="clip")
        return take(tasks.num_train_pairs), take(tasks.num_test_pairs)
    return tasks.num_train_pairs, tasks.num_test_pairs


WORD = 32

# Where things lie in the counters of an episode. Flags are kept as the bits of signed
# words, so that all of them fit one int32 array; a bit cast costs nothing.
_SIZE, _ORIGIN = slice(0, 2), slice(2, 4)
_TASK_ROW, _LENGTH, _POSITION = 4, 5, 6
_ALLOWED, _COMPLETED = slice(7, 9), slice(9, None)

# What an episode holds beside its canvas.
_PARTS = (
    *("selection", "task_row", "current_example_idx", "episode_mode", "step_count"),
    *("episode_done", "similarity_score", "completed", "allowed", "augmentation"),
    *("action_history", "action_history_length", "action_history_write_pos"),
)


class Episode(eqx.Module):
    """Everything a step reads and writes, apart from the task, in few arrays.

    Each array that a compiled call takes or returns costs a microsecond or two, so the
    small numbers that nobody replaces by hand share one, `counters`; properties give
    them their names. `task_row` says which task of a stack, `current_example_idx` which
    pair of it; `completed` has a flag for every demonstration slot, then for every test
    slot.
    """

    planes: UInt[Array, "*batch planes h"]
    clipboard: UInt[Array, "*batch layers h"]
    selection: UInt[Array, "*batch h"]
    counters: Int[Array, "*batch counters"]
    current_example_idx: Int[Array, "*batch"]
    episode_mode: Int[Array, "*batch"]
    step_count: Int[Array, "*batch"]
    episode_done: Bool[Array, "*batch"]
    similarity_score: Float[Array, "*batch"]
    action_history: Float[Array, "*batch records fields"]
    augmentation: Augmentation | None
    width: int = eqx.field(static=True)
    slots: int = eqx.field(static=True)

    @property
    def canvas(self) -> Canvas:
        """The grid being edited and the clipboard."""
        return Canvas(
            self.planes,
            self.counters[..., _SIZE],
            self.width,
            self.clipboard,
            self.counters[..., _ORIGIN],
        )

    @compiled
    def cells(self) -> Int[Array, "*batch h w"]:
        """Return the grid being edited, -1 outside its active area."""
        return self.canvas.cells()

    @compiled
    def mask(self) -> Bool[Array, "*batch h w"]:
        """Return True on the active area."""
        return self.canvas.mask()

    @compiled
    def selected(self) -> Bool[Array, "*batch h w"]:
        """Return the cells the last action selected."""
        return bits.unpack_rows(self.selection, self.width)

    @compiled
    def copied(self) -> tuple[Int[Array, "*batch h w"], Bool[Array, "*batch h w"]]:
        """Return what is on the clipboard, 0 elsewhere, and which cells that is."""
        planes, content = self.clipboard[..., :-1, :], self.clipboard[..., -1, :]
        everywhere = jnp.full_like(content, jnp.iinfo(content.dtype).max)
        colors = bits.unpack_grid(planes, everywhere, self.width)
        return colors, bits.unpack_rows(content, self.width)

    @property
    @compiled
    def task_row(self) -> Int[Array, "*batch"]:
        """Which task of a stack."""
        return self.counters[..., _TASK_ROW]

    @property
    @compiled
    def action_history_length(self) -> Int[Array, "*batch"]:
        """How many records there are."""
        return self.counters[..., _LENGTH]

    @property
    @compiled
    def action_history_write_pos(self) -> Int[Array, "*batch"]:
        """Where the next record goes; when full, the oldest one is there."""
        return self.counters[..., _POSITION]

    @property
    def allowed(self) -> UInt[Array, "*batch two"]:
        """The operations this state permits, as bits."""
        return _as_words(self.counters[..., _ALLOWED])

    @property
    @compiled
    def completed(self) -> Bool[Array, "*batch slots"]:
        """The pairs solved in this episode."""
        return unpack_flags(_as_words(self.counters[..., _COMPLETED]), self.slots)


@compiled
def pack_episode(
    canvas: Canvas,
    selection: UInt[Array, "*batch h"],
    *,
    task_row: Int[Array, "*batch"],
    action_history_length: Int[Array, "*batch"],
    action_history_write_pos: Int[Array, "*batch"],
    allowed: UInt[Array, "*batch two"],
    completed: Bool[Array, "*batch slots"],
    augmentation: Augmentation | None = None,
    **arrays: Any,
) -> Episode:
    """Return an episode from its named parts."""
    history = action_history_length, action_history_write_pos
    numbers = jnp.stack([task_row, *history], axis=-1)
    flags = [_as_numbers(allowed), _as_numbers(pack_flags(completed))]
    return Episode(
        planes=canvas.planes,
        clipboard=canvas.clipboard,
        selection=selection,
        counters=jnp.concatenate(
            [canvas.size, canvas.origin, numbers, *flags], axis=-1
        ),
        augmentation=augmentation,
        width=canvas.width,
        slots=completed.shape[-1],
        **arrays,
    )


def repack(episode: Episode, canvas: Canvas, **changes: Any) -> Episode:
    """Return an episode with another canvas, and other parts by their names."""
    kept = {name: getattr(episode, name) for name in _PARTS if name not in changes}
    return pack_episode(canvas, **kept, **changes)


def pack_flags(flags: Bool[Any, "*batch flags"]) -> UInt[Any, "*batch words"]:
    """Pack booleans as bits of as many 32-bit words as they need."""
    xp = np if isinstance(flags, np.ndarray) else jnp
    room = -flags.shape[-1] % WORD
    padded = xp.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(0, room)])
    return bits.pack_rows(padded.reshape(*flags.shape[:-1], -1, WORD))


def unpack_flags(
    words: UInt[Any, "*batch words"], count: int
) -> Bool[Any, "*batch flags"]:
    """Unpack bits to booleans."""
    cells = bits.unpack_rows(words, WORD)
    return cells.reshape(*words.shape[:-1], -1)[..., :count]


def _as_words(numbers: Int[Array, "*batch n"]) -> UInt[Array, "*batch n"]:
    return jax.lax.bitcast_convert_type(numbers, jnp.uint32)


def _as_numbers(words: UInt[Array, "*batch n"]) -> Int[Array, "*batch n"]:
    return jax.lax.bitcast_convert_type(words, jnp.int32)


POINT_FIELDS = get_action_record_fields("point") - METADATA_FIELDS
BOX_FIELDS = get_action_record_fields("bbox") - METADATA_FIELDS


def history_shape(config: JaxArcConfig, height: int, width: int) -> tuple[int, int]:
    """Return records and fields of the configured history; no records: off."""
    history = config.history
    if not history.enabled:
        return 0, METADATA_FIELDS
    records = min(history.max_history_length, config.environment.max_episode_steps)
    if not history.store_selection_data:
        return records, METADATA_FIELDS
    fields = get_action_record_fields(config.action.selection_format, height, width)
    return records, fields


def describe_selection(
    selection: Selection, fields: int, width: int, selection_format: str
) -> Float[Array, " fields"]:
    """Return a selection in as many numbers as a record has room for.

    A point is the first selected cell in reading order, a box the corners of the
    smallest one; both are -1 where nothing is selected. The format tells a
    point or a box from the mask of a grid of two or four cells.
    """
    whole = fields == selection.rows.shape[0] * width and selection_format == "mask"
    if whole or fields not in (POINT_FIELDS, BOX_FIELDS):
        cells = bits.unpack_rows(selection.rows, width)
        return cells.reshape(-1).astype(jnp.float32)
    if fields == POINT_FIELDS:
        row = selection.rows.at[selection.top].get(mode="clip")
        # The ones below the lowest set bit are as many as its index.
        lowest = row & (bits.words(0, row.dtype) - row)
        column = bits.count((lowest - bits.words(1, row.dtype))[None])
        numbers = [selection.top, column]
    else:
        box = selection
        numbers = [box.top, box.left, box.bottom, box.right]
    return jnp.where(selection.empty, -1, jnp.stack(numbers)).astype(jnp.float32)
