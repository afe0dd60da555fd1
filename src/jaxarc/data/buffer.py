"""Task buffers: many tasks stacked on the device, one gathered by index."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Int

from jaxarc.types import JaxArcTask


def stack_task_list(tasks: Sequence[JaxArcTask]) -> JaxArcTask:
    """One stack of tasks of the same padded shape, the task axis first."""
    if not tasks:
        raise ValueError("no tasks to stack: a buffer holds at least one")
    first = _padded_shape(tasks[0])
    for index, task in enumerate(tasks):
        if _padded_shape(task) != first:
            raise ValueError(
                f"task {index} has {_described(task)}, task 0 has "
                f"{_described(tasks[0])}: load them with the same DatasetConfig"
            )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *tasks)


def gather_task(buffer: JaxArcTask, index: Int[ArrayLike, ""]) -> JaxArcTask:
    """One task of a buffer; a traced index beyond the ends takes the nearest task."""
    size = buffer_size(buffer)
    if isinstance(index, int) and not 0 <= index < size:
        raise ValueError(f"index {index}: the buffer holds tasks 0 to {size - 1}")
    return jax.tree.map(lambda leaf: jnp.take(leaf, index, axis=0, mode="clip"), buffer)


def buffer_size(buffer: JaxArcTask) -> int:
    """How many tasks a buffer holds."""
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
