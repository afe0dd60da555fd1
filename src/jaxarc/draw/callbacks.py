"""Log grids and episodes from compiled code.

Every function here goes through `jaxrig.host_callback`: what it raises on the host is
logged and counted, and never reaches the computation.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from jaxarc.draw.cells import MaskedGrid
from jaxarc.draw.terminal import log_grid_to_console
from jaxrig import callbacks

logger = logging.getLogger(__name__)

_UNMONITORED = "unmonitored: "


def monitored_name(name: str, monitored: bool) -> str:
    """Return the name a callback runs under; it says whether statistics list it."""
    return name if monitored else _UNMONITORED + name


def adaptive_visualization_callback(
    fn: Callable[..., Any],
    *args: Any,
    callback_name: str | None = None,
    max_avg_time_ms: float = 10.0,
    **kwargs: Any,
) -> None:
    """Call a function on the host, only every tenth time while it is too slow.

    The mean is over the last calls of this name that ran. It is read on the host
    before each call, since a decision made while tracing could never change; skipped
    calls are counted.
    """
    name = callback_name or getattr(fn, "__name__", type(fn).__name__)
    _call(fn, args, kwargs, name, _NamedThrottle(name, max_avg_time_ms))


def jax_log_grid(
    grid_data: Any,
    mask: Any = None,
    title: str = "Grid",
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
) -> None:
    """Show a grid, or each of a batch, from compiled code or outside it.

    What is no grid is reported on the host and counted as an error: logging never ends
    the program that it is in.
    """
    show = functools.partial(
        log_grid_to_console,
        show_coordinates=show_coordinates,
        show_numbers=show_numbers,
        double_width=double_width,
    )

    def show_each(grid: Any, mask: Any) -> None:
        if isinstance(grid, MaskedGrid):
            grid, mask = grid.data, grid.mask if mask is None else mask
        grids = np.asarray(grid)
        for index in np.ndindex(grids.shape[:-2]):
            place = f"{title} {list(index)}" if index else title
            shown = None if mask is None else np.asarray(mask)[index]
            show(grids[index], shown, title=place)

    _call(show_each, (grid_data, mask), {}, f"log_grid_{title}")


def jax_log_episode_summary(
    episode_num: Any,
    total_steps: Any,
    total_reward: Any,
    final_similarity: Any,
    success: Any,
) -> None:
    """Log the outcome of an episode in one line.

    The line goes to the logger of this module if it takes INFO, else to the console.
    """

    def say(
        episode: Any, steps: Any, reward: Any, similarity: Any, solved: Any
    ) -> None:
        line = (
            f"Episode {int(episode)}: {'SUCCESS' if solved else 'FAILED'}, "
            f"{int(steps)} steps, reward {float(reward):.3f}, "
            f"similarity {float(similarity):.3f}"
        )
        if logger.isEnabledFor(logging.INFO):
            logger.info(line)
        else:
            Console().print(line)

    args = (episode_num, total_steps, total_reward, final_similarity, success)
    _call(say, args, {}, "log_episode_summary")


def get_callback_performance_stats() -> dict[str, dict[str, float]]:
    """Return calls, errors and milliseconds by name, once pending calls are done."""
    found = callbacks.callback_statistics()
    return {n: s for n, s in found.items() if not n.startswith(_UNMONITORED)}


def reset_callback_performance_stats() -> None:
    """Forget all statistics, and which callbacks were slow."""
    callbacks.reset_callback_statistics()
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
    """Looks the throttle up by name at each call: compiled code outlives resets."""

    def __init__(self, name: str, limit: float):
        self._key = name, limit
        _slow_calls(*self._key)  # refuse a wrong limit here, not on the host

    def admit(self) -> bool:
        """Return whether the next call should run."""
        return _slow_calls(*self._key).admit()

    def observe(self, seconds: float) -> None:
        """Record the seconds that a call took."""
        _slow_calls(*self._key).observe(seconds)


@functools.lru_cache(maxsize=callbacks.MAX_NAMES)
def _slow_calls(name: str, limit: float) -> callbacks.SlowCalls:
    return callbacks.SlowCalls(limit)


def _call(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
    throttle: callbacks.Throttle | None = None,
) -> None:
    # As two trees, so that no keyword of the user can meet one of host_callback.
    run = lambda given, named: fn(*given, **named)
    callbacks.host_callback(run, args, kwargs, name=name, throttle=throttle)
