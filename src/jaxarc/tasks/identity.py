"""Task ids as numbers and back: arrays hold the number, people say the id.

Numbers count from 0 in the order of registration and hold within one process. In a
file write the id itself.
"""

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Array, Int

NOBODY = -1
_lock = threading.Lock()
_numbers: dict[str, int] = {}
_ids: list[str] = []


def register_task(task_id: str) -> int:
    """Return the number of an id, a fresh one if it has none yet."""
    with _lock:
        if task_id not in _numbers:
            _numbers[task_id] = len(_ids)
            _ids.append(task_id)
        return _numbers[task_id]


def registered_id(index: int) -> str | None:
    """Return the id of a number, or None."""
    return _ids[index] if 0 <= index < len(_ids) else None


def create_jax_task_index(task_id: str | None) -> "Int[Array, '']":
    """Return the number of an id as an int32 scalar, registering it; -1 for None."""
    import jax.numpy as jnp

    return jnp.asarray(NOBODY if task_id is None else register_task(task_id), jnp.int32)


def extract_task_id_from_index(task_index: Any) -> str | None:
    """Return the id of a number, None for -1; ValueError if nothing has that number."""
    array = np.asarray(task_index)
    if array.shape != () or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"task index of shape {array.shape} and type {array.dtype}: it is one "
            "whole number, take one row of a batch"
        )
    index = int(array)
    task_id = registered_id(index)
    if task_id is None and index != NOBODY:
        raise ValueError(
            f"task index {index} is not registered in this process, which knows "
            f"{len(_ids)} tasks: make the parser of its data set first"
        )
    return task_id
