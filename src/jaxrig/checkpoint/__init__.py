"""Pytrees on disk: one checked file each, and a manager that keeps the last few."""

from jaxrig.checkpoint.manager import CheckpointManager, Restored
from jaxrig.checkpoint.tree import (
    CheckpointMismatch,
    load_tree,
    read_header,
    save_tree,
)
from jaxrig.container import ContainerError

__all__ = [
    "CheckpointManager",
    "CheckpointMismatch",
    "ContainerError",
    "Restored",
    "load_tree",
    "read_header",
    "save_tree",
]
