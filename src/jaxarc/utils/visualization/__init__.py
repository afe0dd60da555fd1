"""Seeing grids, tasks and episodes, logging from compiled code, and host memory."""

from jaxarc.utils.visualization.callbacks import (
    CallbackPerformanceMonitor,
    adaptive_visualization_callback,
    get_callback_performance_stats,
    jax_debug_callback,
    jax_log_episode_summary,
    jax_log_grid,
    jax_save_step_visualization,
    print_callback_performance_report,
    reset_callback_performance_stats,
)
from jaxarc.utils.visualization.cells import detect_changed_cells
from jaxarc.utils.visualization.console import (
    log_grid_to_console,
    render_ansi,
    visualize_grid_rich,
    visualize_parsed_task_data_rich,
    visualize_task_pair_rich,
)
from jaxarc.utils.visualization.drawing import Drawing, save_svg_drawing
from jaxarc.utils.visualization.episodes import EpisodeFrame, draw_episode_summary_svg
from jaxarc.utils.visualization.manager import (
    GarbageCollectionOptimizer,
    MemoryManager,
    create_lazy_visualization_loader,
    get_memory_manager,
)
from jaxarc.utils.visualization.notebook import display_grid, display_task
from jaxarc.utils.visualization.palette import (
    ARC_COLOR_PALETTE,
    COLOR_SCHEMES,
    get_color_scheme,
)
from jaxarc.utils.visualization.raster import render_rgb
from jaxarc.utils.visualization.replay import episode_section
from jaxarc.utils.visualization.serialize import (
    JAXCallbackError,
    serialize_action,
    serialize_arc_state,
    serialize_jax_array,
)
from jaxarc.utils.visualization.steps import (
    draw_rl_step_svg,
    draw_rl_step_svg_enhanced,
)
from jaxarc.utils.visualization.stores import (
    CompressedStorage,
    VisualizationCache,
    optimize_array_memory,
)
from jaxarc.utils.visualization.svg import draw_grid_svg
from jaxarc.utils.visualization.tasks import (
    draw_parsed_task_data_svg,
    draw_task_pair_svg,
)
from jaxrig.caching import LazyLoader

__all__ = [
    "ARC_COLOR_PALETTE",
    "COLOR_SCHEMES",
    "CallbackPerformanceMonitor",
    "CompressedStorage",
    "Drawing",
    "EpisodeFrame",
    "GarbageCollectionOptimizer",
    "JAXCallbackError",
    "LazyLoader",
    "MemoryManager",
    "VisualizationCache",
    "adaptive_visualization_callback",
    "create_lazy_visualization_loader",
    "detect_changed_cells",
    "display_grid",
    "display_task",
    "draw_episode_summary_svg",
    "draw_grid_svg",
    "draw_parsed_task_data_svg",
    "draw_rl_step_svg",
    "draw_rl_step_svg_enhanced",
    "draw_task_pair_svg",
    "episode_section",
    "get_callback_performance_stats",
    "get_color_scheme",
    "get_memory_manager",
    "jax_debug_callback",
    "jax_log_episode_summary",
    "jax_log_grid",
    "jax_save_step_visualization",
    "log_grid_to_console",
    "optimize_array_memory",
    "print_callback_performance_report",
    "render_ansi",
    "render_rgb",
    "reset_callback_performance_stats",
    "save_svg_drawing",
    "serialize_action",
    "serialize_arc_state",
    "serialize_jax_array",
    "visualize_grid_rich",
    "visualize_parsed_task_data_rich",
    "visualize_task_pair_rich",
]
