"""A door: where documents look for memory tracking; it lives in `jaxtrace.memory`."""

from jaxtrace.memory import (
    memory_report,
    start_memory_tracking,
    stop_memory_tracking,
    track_memory,
    track_operation_memory,
)

__all__ = [
    "memory_report",
    "start_memory_tracking",
    "stop_memory_tracking",
    "track_memory",
    "track_operation_memory",
]
