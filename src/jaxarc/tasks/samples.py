"""Tasks made up for examples and tests, and buffers of tasks stacked on the device."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Int

from jaxarc.tasks.identity import NOBODY
from jaxarc.types import JaxArcTask, is_traced, on_device

BLOCK = 3  # cells a side


def create_demo_task(
    height: int = 30,
    width: int = 30,
    max_train_pairs: int = 1,
    max_test_pairs: int = 1,
) -> JaxArcTask:
    """Recolor a centered 3x3 block from 1 to 2: one demonstration, one test.

    The block is cut to grids that are smaller.
    """
    given = np.zeros((height, width), np.int32)
    top, left = max(0, (height - BLOCK) // 2), max(0, (width - BLOCK) // 2)
    given[top : top + BLOCK, left : left + BLOCK] = 1
    return _one_grid_task(
        given, 2 * given, (1, 1), (max_train_pairs, max_test_pairs), NOBODY
    )


def create_mock_task(height: int = 30, width: int = 30) -> JaxArcTask:
    """Return three demonstrations and a test of all-zero grids, already solved."""
    blank = np.zeros((height, width), np.int32)
    return _one_grid_task(blank, blank, (3, 1), (3, 1), NOBODY)


def _one_grid_task(
    given: np.ndarray,
    wanted: np.ndarray,
    counts: tuple[int, int],
    room: tuple[int, int],
    task_index: int,
) -> JaxArcTask:
    """Return the same pair in every used slot."""
    arrays = []
    for used, slots in zip(counts, room, strict=True):
        mask = np.broadcast_to(
            np.arange(slots)[:, None, None] < used, (slots, *given.shape)
        )
        for grid in (given, wanted):
            arrays += [np.where(mask, grid[None], np.int32(-1)), mask]
        arrays.append(used)
    return JaxArcTask(*arrays, task_index=task_index)


def stack_task_list(tasks: Sequence[JaxArcTask]) -> JaxArcTask:
    """Return one stack of tasks of the same padded shape, the task axis first."""
    if not tasks:
        raise ValueError("no tasks to stack: a buffer holds at least one")
    first = _padded_shape(tasks[0])
    for index, task in enumerate(tasks):
        if _padded_shape(task) != first:
            raise ValueError(
                f"task {index} has {_described(task)}, task 0 has "
                f"{_described(tasks[0])}: load them with the same DatasetConfig"
            )
    # On the host if possible: eagerly, every leaf would compile a program.
    xp = jnp if is_traced(tasks) else np
    return jax.tree.map(lambda *leaves: on_device(xp.stack(leaves)), *tasks)


def gather_task(buffer: JaxArcTask, index: Int[ArrayLike, ""]) -> JaxArcTask:
    """Return one task of a buffer; a traced index is clipped to its ends."""
    size = buffer_size(buffer)
    if not is_traced(index) and not 0 <= np.asarray(index) < size:
        raise ValueError(f"index {index}: the buffer contains tasks 0 to {size - 1}")
    return jax.tree.map(lambda leaf: jnp.take(leaf, index, axis=0, mode="clip"), buffer)


def buffer_size(buffer: JaxArcTask) -> int:
    """Return how many tasks a buffer holds."""
    count: Array = buffer.num_train_pairs
    if count.ndim != 1:
        raise ValueError(
            f"{'a single task' if count.ndim == 0 else 'a batch of buffers'}, not a "
            "buffer: stack tasks with stack_task_list or take parser.buffer()"
        )
    return count.shape[0]


def _padded_shape(task: JaxArcTask) -> tuple[int, ...]:
    return (*task.pairs.shape, task.width, task.max_train_pairs)


def _described(task: JaxArcTask) -> str:
    height, width = task.get_grid_shape()
    pairs = f"{task.max_train_pairs} + {task.max_test_pairs} pairs"
    return f"shape {tuple(task.pairs.shape)} ({pairs} of {height} x {width})"
