"""The documented names are there, and the guide's workflow runs as a whole."""

import gc
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.utils import visualization

DOCUMENTED = [
    "jax_log_grid",
    "jax_log_episode_summary",
    "get_callback_performance_stats",
    "print_callback_performance_report",
    "reset_callback_performance_stats",
    "MemoryManager",
    "LazyLoader",
    "CompressedStorage",
    "optimize_array_memory",
    "adaptive_visualization_callback",
    "create_lazy_visualization_loader",
    "get_memory_manager",
    "log_grid_to_console",
    "jax_debug_callback",
    "jax_save_step_visualization",
    "serialize_jax_array",
    "serialize_arc_state",
    "serialize_action",
    "CallbackPerformanceMonitor",
    "JAXCallbackError",
    "VisualizationCache",
    "GarbageCollectionOptimizer",
    "visualize_grid_rich",
    "visualize_task_pair_rich",
    "visualize_parsed_task_data_rich",
    "render_ansi",
    "render_rgb",
    "draw_grid_svg",
    "draw_task_pair_svg",
    "draw_parsed_task_data_svg",
    "draw_rl_step_svg",
    "draw_rl_step_svg_enhanced",
    "draw_episode_summary_svg",
    "save_svg_drawing",
    "detect_changed_cells",
]


def test_every_documented_name_is_exported():
    assert set(DOCUMENTED) <= set(visualization.__all__)
    assert all(hasattr(visualization, name) for name in visualization.__all__)


def test_importing_changes_no_settings_and_needs_no_other_package():
    code = (
        "import gc, logging, sys\n"
        "before = gc.get_threshold(), logging.root.handlers[:]\n"
        "import jaxarc.utils.visualization\n"
        "assert before == (gc.get_threshold(), logging.root.handlers)\n"
        "assert not {'drawsvg', 'loguru', 'cairosvg', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_with_logging_and_managed_memory(tmp_path, capsys):
    visualization.reset_callback_performance_stats()

    @jax.jit
    def process(grid, mask):
        visualization.jax_log_grid(grid, mask, "Input Grid")
        done = jnp.where(mask, grid + 1, 0)
        visualization.jax_log_grid(done, mask, "Processed Grid")
        return done

    grid = jnp.array([[1, 2, 0], [3, 4, 1]], jnp.int32)
    before = gc.get_threshold()
    with visualization.MemoryManager(100.0, 500.0, tmp_path / "cache") as manager:
        loader = visualization.LazyLoader(lambda: np.asarray(process(grid, grid > 0)))
        manager.register_lazy_loader(loader)
        small = visualization.optimize_array_memory(loader.get().astype(np.int64))
        assert small.dtype == np.int8
        storage = visualization.CompressedStorage(tmp_path / "episodes")
        storage.save({"grids": [small], "id": "a"}, "episode_001")
        stats = visualization.get_callback_performance_stats()
    assert gc.get_threshold() == before
    assert not loader.is_loaded()
    assert list(stats) == ["log_grid_Input Grid", "log_grid_Processed Grid"]
    np.testing.assert_array_equal(
        storage.load("episode_001")["grids"][0], [[2, 3, 0], [4, 5, 2]]
    )
    assert "Processed Grid (2x3)" in capsys.readouterr().out
