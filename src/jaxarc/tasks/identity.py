"""Task ids as numbers and back: arrays hold the number, people say the id."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxrig.atomic import atomic_write

DUMMY_INDEX = -1


class TaskIDManager:
    """Numbers 0, 1, 2 … for task ids in the order they are registered; thread-safe.

    The numbers hold within one process. In a file write the id itself, or save the
    manager beside it.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._ids: list[str] = []
        self._indices: dict[str, int] = {}

    def register_task(self, task_id: str) -> int:
        """The number of an id, a fresh one if it has none yet."""
        with self._lock:
            index = self._indices.setdefault(task_id, len(self._ids))
            if index == len(self._ids):
                self._ids.append(task_id)
            return index

    def get_index(self, task_id: str) -> int | None:
        """The number of an id, or None."""
        with self._lock:
            return self._indices.get(task_id)

    def get_task_id(self, index: int) -> str | None:
        """The id of a number, or None."""
        with self._lock:
            return self._ids[index] if 0 <= index < len(self._ids) else None

    def get_jax_index(self, task_id: str) -> Int[Array, ""]:
        """The number of an id as an int32 scalar, -1 if it has none."""
        index = self.get_index(task_id)
        return jnp.asarray(DUMMY_INDEX if index is None else index, jnp.int32)

    def has_task(self, task_id: str) -> bool:
        """Whether an id has a number."""
        return self.get_index(task_id) is not None

    def num_tasks(self) -> int:
        """How many ids have a number."""
        with self._lock:
            return len(self._ids)

    def clear(self) -> None:
        """Forget every id."""
        with self._lock:
            self._ids, self._indices = [], {}

    def save_to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the ids in order, as JSON, whole or not at all."""
        with self._lock:
            text = json.dumps({"task_ids": self._ids}, indent=1)
        with atomic_write(_json_path(path)) as file:
            file.write(text.encode())

    def load_from_file(self, path: str | os.PathLike[str]) -> None:
        """Take the ids and numbers of a file in place of the present ones."""
        ids = _read_ids(_json_path(path))
        with self._lock:
            self._ids = ids
            self._indices = {task_id: index for index, task_id in enumerate(ids)}


def _json_path(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix != ".json":
        raise ValueError(f"{path}: task ids are kept as JSON, end the name in .json")
    return path


def _read_ids(path: Path) -> list[str]:
    try:
        match json.loads(path.read_bytes()):
            case {"task_ids": list(ids)} if all(isinstance(i, str) for i in ids):
                pass
            case _:
                raise ValueError("no list of strings under 'task_ids'")
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}: not a file of task ids ({error}); write one with save_to_file"
        ) from error
    if len(set(ids)) != len(ids):
        raise ValueError(f"{path}: an id occurs twice; every id has one number")
    return ids


_manager = TaskIDManager()


def get_global_task_manager() -> TaskIDManager:
    """The manager that parsers register their tasks with."""
    return _manager


def register_task_globally(task_id: str) -> int:
    """The process-wide number of an id, a fresh one if it has none yet."""
    return _manager.register_task(task_id)


def get_task_id_globally(index: int) -> str | None:
    """The id of a process-wide number, or None."""
    return _manager.get_task_id(index)


def create_jax_task_index(task_id: str | None) -> Int[Array, ""]:
    """The number of an id as an int32 scalar, registering it; -1 for None."""
    index = DUMMY_INDEX if task_id is None else register_task_globally(task_id)
    return jnp.asarray(index, jnp.int32)


def extract_task_id_from_index(task_index: Any) -> str | None:
    """The id of a number, None for -1; ValueError if nothing has that number."""
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


def is_dummy_task_index(task_index: Any) -> bool:
    """Whether a number stands for an unknown or made-up task."""
    return _as_int(task_index) == DUMMY_INDEX


def _as_int(task_index: Any) -> int:
    array = np.asarray(task_index)
    if array.shape != () or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"task index of shape {array.shape} and type {array.dtype}: it is one "
            "whole number, take one row of a batch"
        )
    return int(array)
