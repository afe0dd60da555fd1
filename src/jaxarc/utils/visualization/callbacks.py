"""Logging from compiled code: grids, episodes and pictures of steps.

Every function here is a callback of `jaxrig.callbacks`: what it raises on the host is
logged and counted, and never reaches the computation.
"""

import functools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxarc.types import Grid
from jaxarc.utils.visualization.console import log_grid_to_console
from jaxarc.utils.visualization.drawing import save_svg_drawing
from jaxarc.utils.visualization.steps import draw_rl_step_svg, read_action
from jaxrig.callbacks import (
    MAX_NAMES,
    CallbackMonitor,
    callback_statistics,
    host_callback,
    reset_callback_statistics,
)
from jaxrig.throttle import SlowCalls, Throttle

logger = logging.getLogger(__name__)

CallbackPerformanceMonitor = CallbackMonitor

_UNMONITORED = "unmonitored: "


def jax_debug_callback(
    fn: Callable[..., Any],
    *args: Any,
    callback_name: str | None = None,
    enable_performance_monitoring: bool = True,
    **kwargs: Any,
) -> None:
    """Call a Python function with the values of traced arrays; it cannot do harm.

    Under vmap it is called for each row. Without monitoring, the name is left out of
    the statistics; errors are logged all the same.
    """
    name = callback_name or _name_of(fn)
    _call(fn, args, kwargs, monitored_name(name, enable_performance_monitoring))


def monitored_name(name: str, monitored: bool) -> str:
    """The name a callback runs under, which says whether statistics list it."""
    return name if monitored else _UNMONITORED + name


def adaptive_visualization_callback(
    fn: Callable[..., Any],
    *args: Any,
    callback_name: str | None = None,
    max_avg_time_ms: float = 10.0,
    **kwargs: Any,
) -> None:
    """A callback of which only every tenth call runs while recent ones are too slow.

    The mean is over the last calls of this name that ran, and is looked at on the host
    before each call; skipped calls are counted.
    """
    name = callback_name or _name_of(fn)
    _call(fn, args, kwargs, name, _NamedThrottle(name, max_avg_time_ms))


def jax_log_grid(
    grid_data: Any,
    mask: Any = None,
    title: str = "Grid",
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
) -> None:
    """Show a grid in the terminal, from compiled code or outside it."""
    data = grid_data.data if isinstance(grid_data, Grid) else grid_data
    if np.ndim(data) != 2:
        raise ValueError(
            f"grid_data has shape {np.shape(data)}: it must be (height, width); log "
            "each grid of a batch with jax.vmap"
        )
    if mask is not None and np.shape(mask) != np.shape(data):
        raise ValueError(
            f"mask has shape {np.shape(mask)}, grid_data {np.shape(data)}: they must "
            "be equal"
        )
    show = functools.partial(
        log_grid_to_console,
        title=title,
        show_coordinates=show_coordinates,
        show_numbers=show_numbers,
        double_width=double_width,
    )
    _call(show, (grid_data, mask), {}, f"log_grid_{title}")


def jax_log_episode_summary(
    episode_num: Any,
    total_steps: Any,
    total_reward: Any,
    final_similarity: Any,
    success: Any,
) -> None:
    """Log how an episode ended, in one line.

    The line goes to the logger of this module if it takes INFO, else to the console.
    """
    args = (episode_num, total_steps, total_reward, final_similarity, success)
    _call(_log_summary, args, {}, "log_episode_summary")


def jax_save_step_visualization(
    before_state: Any,
    action: Any,
    after_state: Any,
    reward: Any,
    info: Any,
    output_dir: str | os.PathLike[str],
    label: str = "",
) -> None:
    """Write `step_{n:03d}.svg` for the n-th step of an episode into a folder.

    Everything drawn is read from the states; `info` is taken as environments return it
    and not drawn. Rows of a vmap write to the same files: save one environment only.
    """
    shape = before_state.working_grid.shape
    operation, selection = read_action(action, None, None, shape)
    drawn = {
        "before_grid": before_state.working_grid,
        "before_mask": before_state.working_grid_mask,
        "previous_similarity": before_state.similarity_score,
        "after_grid": after_state.working_grid,
        "after_mask": after_state.working_grid_mask,
        "similarity": after_state.similarity_score,
        "step_num": after_state.step_count,
        "operation": operation,
        "selection": selection,
        "reward": reward,
        "label": label,
    }
    _call(_save_step, (Path(output_dir),), drawn, "save_step_visualization")


def get_callback_performance_stats() -> dict[str, dict[str, float]]:
    """Calls, errors and milliseconds by callback name, once pending calls are done."""
    found = callback_statistics()
    return {n: s for n, s in found.items() if not n.startswith(_UNMONITORED)}


def reset_callback_performance_stats() -> None:
    """Forget all statistics, and which callbacks were slow."""
    reset_callback_statistics()
    _slow_calls.cache_clear()


def print_callback_performance_report() -> None:
    """Show the statistics of all callbacks in the terminal."""
    found = get_callback_performance_stats()
    if not found:
        Console().print("No callback data: no callback has run.")
        return
    table = Table("callback", title="Callback performance")
    for heading in ("calls", "errors", "skipped", "mean ms", "max ms", "total ms"):
        table.add_column(heading, justify="right")
    for name, row in sorted(found.items()):
        counts = [row["total_calls"], row["error_count"], row["skipped_calls"]]
        times = [row["avg_time_ms"], row["max_time_ms"], row["total_time_ms"]]
        cells = [str(int(n)) for n in counts] + [f"{t:.2f}" for t in times]
        table.add_row(name, *cells)
    Console().print(table, markup=False)


class _NamedThrottle:
    """The throttle of a name, looked up at each call: compiled code outlives resets."""

    def __init__(self, name: str, limit: float):
        self._key = name, limit
        _slow_calls(*self._key)  # a wrong limit is refused here, not on the host

    def admit(self) -> bool:
        """Whether the next call shall run."""
        return _slow_calls(*self._key).admit()

    def observe(self, seconds: float) -> None:
        """Note the seconds that a call took."""
        _slow_calls(*self._key).observe(seconds)


@functools.lru_cache(maxsize=MAX_NAMES)
def _slow_calls(name: str, limit: float) -> SlowCalls:
    return SlowCalls(limit)


def _call(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
    throttle: Throttle | None = None,
) -> None:
    # As two trees, so that no keyword of the user can meet one of host_callback.
    run = lambda given, named: fn(*given, **named)
    host_callback(run, args, kwargs, name=name, throttle=throttle)


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _log_summary(
    episode: Any, steps: Any, reward: Any, similarity: Any, success: Any
) -> None:
    line = (
        f"Episode {int(episode)}: {'SUCCESS' if bool(success) else 'FAILED'}, "
        f"{int(steps)} steps, reward {float(reward):.3f}, "
        f"similarity {float(similarity):.3f}"
    )
    if logger.isEnabledFor(logging.INFO):
        logger.info(line)
    else:
        Console().print(line)


def _save_step(folder: Path, **drawn: Any) -> None:
    name = f"step_{int(drawn['step_num']):03d}.svg"
    save_svg_drawing(draw_rl_step_svg(**drawn), folder / name)
