"""Task ids as numbers and back: arrays hold the number, people say the id."""

import threading
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

DUMMY_INDEX = -1


class TaskIDManager:
    """Numbers 0, 1, 2 … for task ids in the order they are registered; thread-safe.

    The numbers hold within one process. In a file write the id itself.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._ids: list[str] = []
        self._indices: dict[str, int] = {}

    def register_task(self, task_id: str) -> int:
        """Return the number of an id, a fresh one if it has none yet."""
        with self._lock:
            index = self._indices.setdefault(task_id, len(self._ids))
            if index == len(self._ids):
                self._ids.append(task_id)
            return index

    def get_task_id(self, index: int) -> str | None:
        """Return the id of a number, or None."""
        with self._lock:
            return self._ids[index] if 0 <= index < len(self._ids) else None

    def num_tasks(self) -> int:
        """Return how many ids have a number."""
        with self._lock:
            return len(self._ids)


_manager = TaskIDManager()


def get_global_task_manager() -> TaskIDManager:
    """Return the manager that parsers register their tasks with."""
    return _manager


def create_jax_task_index(task_id: str | None) -> Int[Array, ""]:
    """Return the number of an id as an int32 scalar, registering it; -1 for None."""
    index = DUMMY_INDEX if task_id is None else _manager.register_task(task_id)
    return jnp.asarray(index, jnp.int32)


def extract_task_id_from_index(task_index: Any) -> str | None:
    """Return the id of a number, None for -1; ValueError if nothing has that number."""
    index = _as_int(task_index)
    if index == DUMMY_INDEX:
        return None
    task_id = _manager.get_task_id(index)
    if task_id is None:
        raise ValueError(
            f"task index {index} is not registered in this process, which knows "
            f"{_manager.num_tasks()} tasks: make the parser of its data set first"
        )
    return task_id


def _as_int(task_index: Any) -> int:
    array = np.asarray(task_index)
    if array.shape != () or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"task index of shape {array.shape} and type {array.dtype}: it is one "
            "whole number, take one row of a batch"
        )
    return int(array)
