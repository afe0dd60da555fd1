"""The documented doorway to states on disk, task ids, and what a file saves."""

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxarc.saving import config_hash, task_checksum
from jaxarc.state import ArcEnvState
from jaxarc.tasks.identity import (
    create_jax_task_index,
    extract_task_id_from_index,
    get_task_id_globally,
    is_dummy_task_index,
    register_task_globally,
)
from jaxarc.types import JaxArcTask

__all__ = [
    "calculate_serialization_savings",
    "config_hash",
    "create_jax_task_index",
    "extract_task_id_from_index",
    "format_file_size",
    "get_task_id_globally",
    "is_dummy_task_index",
    "load_state",
    "register_task_globally",
    "save_state",
    "task_checksum",
    "validate_task_data_reconstruction",
    "validate_task_index_consistency",
]


def save_state(
    state: ArcEnvState, path: str | os.PathLike[str], config: Any = None
) -> Path:
    """Write a state without its task; `config` is kept by its hash and data set."""
    return state.save(path, config)


def load_state(
    path: str | os.PathLike[str], parser: Any, config: Any = None
) -> ArcEnvState:
    """The state of a file, its task taken from the parser by the id in the file.

    A `config` other than the one it was saved with is warned of.
    """
    return ArcEnvState.load(path, parser, config)


def calculate_serialization_savings(
    original_size: int, compressed_size: int
) -> dict[str, float]:
    """What a smaller file saves: bytes, percentage and ratio."""
    if original_size <= 0 or compressed_size <= 0:
        raise ValueError(
            f"sizes are {original_size} and {compressed_size} bytes: both must be "
            "above 0"
        )
    saved = original_size - compressed_size
    return {
        "original_size_bytes": original_size,
        "compressed_size_bytes": compressed_size,
        "savings_bytes": saved,
        "percentage": 100.0 * saved / original_size,
        "compression_ratio": original_size / compressed_size,
    }


def format_file_size(size_bytes: float) -> str:
    """Bytes for people, in powers of 1024.

    >>> format_file_size(1536)
    '1.5 KB'
    """
    if size_bytes < 1024:
        return f"{size_bytes:.0f} B"
    for unit in ("KB", "MB", "GB"):
        size_bytes /= 1024
        if size_bytes < 1024:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / 1024:.1f} TB"


def validate_task_index_consistency(task_index: Any, parser: Any) -> bool:
    """Whether a process-wide number stands for one of the parser's tasks."""
    if is_dummy_task_index(task_index):
        return False
    return parser.validate_task_index_mapping(task_index)


def validate_task_data_reconstruction(
    original: JaxArcTask, reconstructed: JaxArcTask
) -> bool:
    """Whether two tasks have the same grids and padding; their numbers may differ."""
    ours, theirs = (
        (t.pairs, t.sizes, t.num_train_pairs, t.num_test_pairs)
        for t in (original, reconstructed)
    )
    return jax.tree.structure(original) == jax.tree.structure(reconstructed) and all(
        np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True)
    )
