"""The state of an environment: what an episode changes, and the task it is about.

An `Episode` (`jaxarc.episode`) is all that a step rewrites, about 1.3 kB at 30x30. An
`ArcEnvState` sets the task beside it and offers the documented arrays as views of both;
`replace` takes them back and packs them again.
"""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxarc.bits import PackedGrid, compiled
from jaxarc.config import JaxArcConfig
from jaxarc.episode import (
    METADATA_FIELDS,
    Episode,
    current_pair,
    is_stack,
    slot_of,
    unpack_flags,
)
from jaxarc.ops.operations import NUM_OPERATIONS
from jaxarc.saving import read_state, write_state
from jaxarc.state_changes import changed_parts
from jaxarc.types import JaxArcTask, is_traced, measure
from jaxrig.notebook import Shown


@jax.tree_util.register_static
class SharedTasks:
    """Tasks that the states of a batch have in common; no part of them as a pytree.

    Static, so that each array of a batch of states has the batch axis, and yet the
    tasks exist once. A program that is handed such states has the tasks as constants,
    and is compiled again for others (`ArcEnvState.from_parts` avoids that);
    `batch_step` itself is not.
    """

    def __init__(self, tasks: JaxArcTask):
        self.tasks = tasks

    def __hash__(self) -> int:
        return id(self.tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedTasks) and self.tasks is other.tasks


def share(tasks: JaxArcTask, row: Int[Array, "*batch"]) -> SharedTasks | JaxArcTask:
    """Return the tasks of a batch once, or, where they are traced, the one of each row.

    What is traced must not outlive its program, and as static data it would.
    """
    return _each(tasks, row) if is_traced(tasks) else SharedTasks(tasks)


@compiled
def _each(tasks: JaxArcTask, row: Int[Array, "*batch"]) -> JaxArcTask:
    """Return the task of every row of a batch."""
    if is_stack(tasks):
        return jax.tree.map(lambda x: x[row], tasks)
    return jax.tree.map(lambda x: jnp.broadcast_to(x, row.shape + x.shape), tasks)


class ArcEnvState(eqx.Module, Shown):
    """An episode with its task (or the stack its task is a row of).

    A batch is an ordinary pytree: each of its arrays has the leading batch axes, so
    that it can be mapped, sliced, indexed, joined and reshaped. The tasks that its rows
    have in common are static (`SharedTasks`).
    """

    shown_by: ClassVar[str] = "jaxarc.recording:show_state"
    source: JaxArcTask | SharedTasks
    episode: Episode

    @classmethod
    def from_parts(cls, tasks: JaxArcTask, episode: Episode) -> "ArcEnvState":
        """Return a batch of states from `states.tasks` and `states.episode`.

        A compiled function that takes these two instead of the states, and returns
        episodes, is compiled once for all tasks of one padded shape.
        """
        return cls(SharedTasks(tasks), episode)

    @property
    def tasks(self) -> JaxArcTask:
        """The task, or the tasks that `episode.task_row` counts."""
        if isinstance(self.source, SharedTasks):
            return self.source.tasks
        return self.source

    @property
    def task_data(self) -> JaxArcTask:
        """The task of this state; for a batch, the task of every row."""
        tasks = self.tasks
        if not hasattr(tasks.pairs, "ndim"):
            return tasks  # a where-function of equinox.tree_at is looking
        row = self.episode.task_row
        if row.ndim == 0 and not is_stack(tasks):
            return tasks
        if row.ndim == 0 or isinstance(self.source, SharedTasks):
            return _each(tasks, row)
        # States that each brought a task, or a stack of them.
        return jax.vmap(_each)(tasks, row) if tasks.pairs.ndim > 5 else tasks

    @property
    def task_index(self) -> Int[Array, "*batch"]:
        """The index of the task in the process-wide list of tasks; -1: unknown."""
        index = self.tasks.task_index
        return self.task_data.task_index if hasattr(index, "ndim") else index

    @property
    def working_grid(self) -> Int[Array, "*batch h w"]:
        """The grid being edited, -1 outside its active area."""
        return self.episode.cells()

    @property
    def working_grid_mask(self) -> Bool[Array, "*batch h w"]:
        """True on the active area."""
        return self.episode.mask()

    @property
    def clipboard(self) -> Int[Array, "*batch h w"]:
        """What was copied, at its place; 0 elsewhere (`clipboard_mask` says where)."""
        return self.episode.copied()[0]

    @property
    def clipboard_mask(self) -> Bool[Array, "*batch h w"]:
        """True on the cells of the clipboard that hold content."""
        return self.episode.copied()[1]

    @property
    def selected(self) -> Bool[Array, "*batch h w"]:
        """The cells the last action selected."""
        return self.episode.selected()

    @property
    def demo_completion_status(self) -> Bool[Array, "*batch p"]:
        """The demonstrations solved in this episode."""
        return self.episode.completed[..., : self.tasks.max_train_pairs]

    @property
    def test_completion_status(self) -> Bool[Array, "*batch q"]:
        """The test pairs answered correctly in this episode."""
        return self.episode.completed[..., self.tasks.max_train_pairs :]

    @property
    def available_demo_pairs(self) -> Bool[Array, "*batch p"]:
        """The demonstrations there are."""
        return self.task_data.get_available_demo_pairs()

    @property
    def available_test_pairs(self) -> Bool[Array, "*batch q"]:
        """The test pairs there are."""
        return self.task_data.get_available_test_pairs()

    @property
    def allowed_operations_mask(self) -> Bool[Array, "*batch operations"]:
        """The operations this state permits."""
        return _allowed(self.episode)

    @property
    def step_count(self) -> Int[Array, "*batch"]:
        """Steps taken since the reset."""
        return self.episode.step_count

    @property
    def episode_done(self) -> Bool[Array, "*batch"]:
        """Whether the episode has ended; it stays so."""
        return self.episode.episode_done

    @property
    def episode_mode(self) -> Int[Array, "*batch"]:
        """0 on demonstrations, 1 on test pairs."""
        return self.episode.episode_mode

    @property
    def current_example_idx(self) -> Int[Array, "*batch"]:
        """The pair being worked on."""
        return self.episode.current_example_idx

    @property
    def similarity_score(self) -> Float[Array, "*batch"]:
        """Likeness to the target; in test mode 0 until an answer is submitted."""
        return self.episode.similarity_score

    @property
    def action_history(self) -> Float[Array, "*batch records fields"]:
        """Past actions, a ring of records (`jaxarc.episode`)."""
        return self.episode.action_history

    @property
    def action_history_length(self) -> Int[Array, "*batch"]:
        """How many records there are."""
        return self.episode.action_history_length

    @property
    def action_history_write_pos(self) -> Int[Array, "*batch"]:
        """Where the next record goes; when full, the oldest one is there."""
        return self.episode.action_history_write_pos

    @property
    def target_grid(self) -> Int[Array, "*batch h w"]:
        """What is asked for; all padding in test mode, where it is hidden."""
        return self._target().cells()

    @property
    def target_grid_mask(self) -> Bool[Array, "*batch h w"]:
        """True on the cells of the target; all False in test mode."""
        return self._target().mask()

    def _target(self) -> PackedGrid:
        shared = isinstance(self.source, SharedTasks)
        return (_shared_target if shared else _own_target)(self.tasks, self.episode)

    def get_actual_grid_shape(self) -> tuple[int, int]:
        """Return height and width of the active area (host only)."""
        height, width = _one(self.episode.canvas.size, 1).tolist()
        return height, width

    def get_actual_working_grid(self) -> Int[Array, "height width"]:
        """Return the working grid without its padding (host only)."""
        height, width = self.get_actual_grid_shape()
        return self.working_grid[:height, :width]

    def get_actual_target_grid(self) -> Int[Array, "height width"]:
        """Return the target without its padding; no cells in test mode (host only)."""
        height, width = measure(_one(self.target_grid_mask, 2))
        return self.target_grid[:height, :width]

    def is_training_mode(self) -> Bool[Array, "*batch"]:
        """Return whether the episode is about demonstrations."""
        return self.episode_mode == 0

    def is_test_mode(self) -> Bool[Array, "*batch"]:
        """Return whether the episode is about test pairs."""
        return self.episode_mode == 1

    def get_available_demo_count(self) -> Int[Array, "*batch"]:
        """Return the number of demonstrations."""
        return _count(self.available_demo_pairs)

    def get_available_test_count(self) -> Int[Array, "*batch"]:
        """Return the number of test pairs."""
        return _count(self.available_test_pairs)

    def get_completed_demo_count(self) -> Int[Array, "*batch"]:
        """Return the number of demonstrations solved in this episode."""
        return _count(self.demo_completion_status & self.available_demo_pairs)

    def get_completed_test_count(self) -> Int[Array, "*batch"]:
        """Return the number of test pairs solved in this episode."""
        return _count(self.test_completion_status & self.available_test_pairs)

    def get_first_unsolved_demo_index(self) -> Int[Array, "*batch"]:
        """Return the first demonstration not solved yet; -1 if all are."""
        return _first(self.available_demo_pairs & ~self.demo_completion_status)

    def get_first_unsolved_test_index(self) -> Int[Array, "*batch"]:
        """Return the first test pair not solved yet; -1 if all are."""
        return _first(self.available_test_pairs & ~self.test_completion_status)

    def get_next_available_demo_index(self) -> Int[Array, "*batch"]:
        """Return the demonstration after the current pair, going round; -1: none."""
        return _neighbor(self.current_example_idx, self.get_available_demo_count(), 1)

    def get_prev_available_demo_index(self) -> Int[Array, "*batch"]:
        """Return the demonstration before the current pair, going round; -1: none."""
        return _neighbor(self.current_example_idx, self.get_available_demo_count(), -1)

    def get_next_available_test_index(self) -> Int[Array, "*batch"]:
        """Return the test pair after the current pair, going round; -1: none."""
        return _neighbor(self.current_example_idx, self.get_available_test_count(), 1)

    def get_prev_available_test_index(self) -> Int[Array, "*batch"]:
        """Return the test pair before the current pair, going round; -1: none."""
        return _neighbor(self.current_example_idx, self.get_available_test_count(), -1)

    def is_current_pair_completed(self) -> Bool[Array, "*batch"]:
        """Return whether the current pair was solved in this episode."""
        slot = slot_of(self.tasks, self.episode_mode, self.current_example_idx)
        return _at(self.episode.completed, slot)

    def is_operation_allowed(self, operation_id: Any) -> Bool[Array, "*batch"]:
        """Return whether this state permits an operation; False for unknown numbers."""
        number = jnp.broadcast_to(jnp.asarray(operation_id), self.step_count.shape)
        known = (number >= 0) & (number < NUM_OPERATIONS)
        inside = jnp.clip(number, 0, NUM_OPERATIONS - 1)
        return known & _at(self.allowed_operations_mask, inside)

    def get_recent_actions(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the last records of the history, from older to newer (host only)."""
        if count < 0:
            raise ValueError(f"count={count}: it must not be negative")
        records = _one(self.action_history, 2)
        length, position = self.action_history_length, self.action_history_write_pos
        kept = min(count, int(length))
        ages = np.arange(kept, 0, -1)
        return [_as_dict(records[int(position) - age]) for age in ages]

    def get_action_from_history(self, index: int) -> dict[str, Any]:
        """Return one record, 0 the oldest and -1 the newest (host only)."""
        return self.get_recent_actions(int(self.action_history_length))[index]

    def get_action_history_for_pair(self, pair_index: int) -> list[dict[str, Any]]:
        """Return the records of one pair, from older to newer (host only)."""
        records = self.get_recent_actions(int(self.action_history_length))
        return [record for record in records if record["pair_index"] == pair_index]

    def clear_action_history(self) -> "ArcEnvState":
        """Return the state with an empty history."""
        return self.replace(
            action_history=0.0, action_history_length=0, action_history_write_pos=0
        )

    def replace(self, **changes: Any) -> "ArcEnvState":
        """Return the state with documented attributes changed, by name."""
        tasks, episode = changed_parts(self, changes)
        if tasks is None:
            return ArcEnvState(self.source, episode)
        row = episode.task_row
        return ArcEnvState(share(tasks, row) if row.ndim else tasks, episode)

    def save(
        self, path: str | os.PathLike[str], config: JaxArcConfig | None = None
    ) -> Path:
        """Write the episode and the identity of its task, not the task, to a file."""
        return write_state(self.task_data, self.episode, path, config)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        parser: Any,
        config: JaxArcConfig | None = None,
    ) -> "ArcEnvState":
        """Read the state of a file, with its task as the parser has it."""
        return cls(*read_state(path, parser, config))


def _target(tasks: JaxArcTask, episode: Episode, axis: int | None) -> PackedGrid:
    """Return the target of every row; the tasks are mapped over `axis`, or shared."""

    def one(tasks: JaxArcTask, episode: Episode) -> PackedGrid:
        wanted = current_pair(tasks, episode).wanted
        size = jnp.where(episode.episode_mode == 0, wanted.size, 0)
        return replace(wanted, size=size)

    for _ in range(episode.step_count.ndim):
        one = jax.vmap(one, in_axes=(axis, 0))
    return one(tasks, episode)


_shared_target = compiled(partial(_target, axis=None))
_own_target = compiled(partial(_target, axis=0))


@compiled
def _allowed(episode: Episode) -> Bool[Array, "*batch operations"]:
    return unpack_flags(episode.allowed, NUM_OPERATIONS)


@compiled
def _count(flags: Bool[Array, "*batch n"]) -> Int[Array, "*batch"]:
    return jnp.sum(flags, axis=-1, dtype=jnp.int32)


@compiled
def _first(flags: Bool[Array, "*batch n"]) -> Int[Array, "*batch"]:
    found = jnp.argmax(flags, axis=-1).astype(jnp.int32)
    return jnp.where(jnp.any(flags, axis=-1), found, -1)


@partial(jax.jit, static_argnames="step", inline=True)
def _neighbor(
    current: Int[Array, "*batch"], count: Int[Array, "*batch"], step: int
) -> Int[Array, "*batch"]:
    index = (current + step) % jnp.maximum(count, 1)
    return jnp.where(count > 0, index, -1)


@compiled
def _at(
    flags: Bool[Array, "*batch n"], index: Int[Array, "*batch"]
) -> Bool[Array, "*batch"]:
    return jnp.take_along_axis(flags, index[..., None], axis=-1)[..., 0]


def _one(array: Any, rank: int) -> np.ndarray:
    """Return the values of an array of one state; a batch has many."""
    if array.ndim != rank:
        raise ValueError(
            "this is a batch of states, each with a grid and a history of its own: "
            "take one, jax.tree.map(lambda x: x[i], states)"
        )
    return np.asarray(array)


def _as_dict(record: np.ndarray) -> dict[str, Any]:
    operation, timestamp, pair, valid = record[-METADATA_FIELDS:].tolist()
    return {
        "selection_data": record[:-METADATA_FIELDS],
        "operation_id": int(operation),
        "timestamp": int(timestamp),
        "pair_index": int(pair),
        "valid": valid == 1.0,
    }
