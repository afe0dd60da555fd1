"""A door to documented names: `jaxarc.draw` logs grids and manages memory."""

from jaxarc.draw.callbacks import (
    adaptive_visualization_callback,
    get_callback_performance_stats,
    jax_log_episode_summary,
    jax_log_grid,
    print_callback_performance_report,
    reset_callback_performance_stats,
)
from jaxarc.draw.memory import (
    CompressedStorage,
    MemoryManager,
    create_lazy_visualization_loader,
    get_memory_manager,
    optimize_array_memory,
)
from jaxarc.draw.terminal import log_grid_to_console
from jaxrig.storage import LazyLoader

__all__ = [
    "CompressedStorage",
    "LazyLoader",
    "MemoryManager",
    "adaptive_visualization_callback",
    "create_lazy_visualization_loader",
    "get_callback_performance_stats",
    "get_memory_manager",
    "jax_log_episode_summary",
    "jax_log_grid",
    "log_grid_to_console",
    "optimize_array_memory",
    "print_callback_performance_report",
    "reset_callback_performance_stats",
]
