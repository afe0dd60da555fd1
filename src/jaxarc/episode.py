"""An episode: everything that a step changes, packed into few arrays."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc import bits
from jaxarc.ops.canvas import Canvas
from jaxarc.pairs import Augmentation

WORD = 32

# Where things lie in the counters of an episode.
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
            self.clipboard,
            self.counters[..., _ORIGIN],
            self.width,
        )

    @property
    def task_row(self) -> Int[Array, "*batch"]:
        """Which task of a stack."""
        return self.counters[..., _TASK_ROW]

    @property
    def action_history_length(self) -> Int[Array, "*batch"]:
        """How many records there are."""
        return self.counters[..., _LENGTH]

    @property
    def action_history_write_pos(self) -> Int[Array, "*batch"]:
        """Where the next record goes; when full, the oldest one is there."""
        return self.counters[..., _POSITION]

    @property
    def allowed(self) -> UInt[Array, "*batch two"]:
        """The operations this state permits, as bits."""
        return _as_words(self.counters[..., _ALLOWED])

    @property
    def completed(self) -> Bool[Array, "*batch slots"]:
        """The pairs solved in this episode."""
        return unpack_flags(_as_words(self.counters[..., _COMPLETED]), self.slots)


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
    """An episode from its named parts."""
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
    """An episode with another canvas, and other parts by their names."""
    kept = {name: getattr(episode, name) for name in _PARTS if name not in changes}
    return pack_episode(canvas, **kept, **changes)


def pack_flags(flags: Bool[Any, "*batch flags"]) -> UInt[Any, "*batch words"]:
    """Truths as bits of as many 32-bit words as they need."""
    xp = np if isinstance(flags, np.ndarray) else jnp
    room = -flags.shape[-1] % WORD
    padded = xp.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(0, room)])
    return bits.pack_rows(padded.reshape(*flags.shape[:-1], -1, WORD))


def unpack_flags(
    words: UInt[Any, "*batch words"], count: int
) -> Bool[Any, "*batch flags"]:
    """Bits as truths."""
    cells = bits.unpack_rows(words, WORD)
    return cells.reshape(*words.shape[:-1], -1)[..., :count]


def _as_words(numbers: Int[Array, "*batch n"]) -> UInt[Array, "*batch n"]:
    return jax.lax.bitcast_convert_type(numbers, jnp.uint32)


def _as_numbers(words: UInt[Array, "*batch n"]) -> Int[Array, "*batch n"]:
    return jax.lax.bitcast_convert_type(words, jnp.int32)
