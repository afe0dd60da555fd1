"""Logs in a terminal: a line for each event, and the grids of steps."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from jaxarc.config import JaxArcConfig
from jaxarc.ops.names import get_operation_display_text
from jaxarc.utils.logging.detail import Detail
from jaxarc.utils.logging.handler import Handler, Log
from jaxarc.utils.visualization.console import visualize_grid_rich
from jaxarc.utils.visualization.episodes import EpisodeFrame


class ConsoleHandler(Handler):
    """Episodes, figures and, by the level of pictures, grids on a rich console."""

    name = "console"

    def __init__(
        self, config: JaxArcConfig, detail: Detail, console: Console | None = None
    ):
        self._config, self._detail = config, detail
        self._console = console or Console()

    def start(self, log: Log) -> None:
        """Which task the episode is about."""
        if self._config.logging.log_episode_start:
            task = log["task_id"] or "a task without id"
            where = f", pair {log['pair_index'] + 1}" if "pair_index" in log else ""
            self._say(f"Episode {log['episode_num']}: {task}{where}")

    def step(self, log: Log) -> None:
        """What was done, and the grid after it."""
        if not self._detail.shows_step(log):
            return
        rules = self._config.visualization
        self._say(step_words(log, rules.show_operation_names, rules.include_metrics))
        panel = visualize_grid_rich(
            log["grid"],
            title="Working grid",
            show_coordinates=rules.show_coordinates,
            scheme=rules.color_scheme,
        )
        self._console.print(panel)

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """How the episode ended."""
        rules = self._config
        if rules.logging.log_episode_end and rules.visualization.episode_summaries:
            result = "solved" if summary["success"] else "not solved"
            self._say(
                f"Episode {summary['episode_num']}: {result}, "
                f"{summary['total_steps']} steps, reward "
                f"{summary['total_reward']:+.3f}, similarity "
                f"{summary['final_similarity']:.3f}"
            )

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Figures of an update."""
        self._say(f"Update {number}: {_listed(figures)}")

    def evaluation(self, summary: Log) -> None:
        """Figures of an evaluation."""
        numbers = {k: v for k, v in summary.items() if isinstance(v, int | float | str)}
        self._say(f"Evaluation: {_listed(numbers)}")

    def _say(self, line: str) -> None:
        # Text, so that brackets in names are not taken for markup.
        self._console.print(Text(line), soft_wrap=True)


def step_words(log: Log, named: bool = True, figures: bool = True) -> str:
    """A step in a line."""
    parts = [f"Step {log['step_num']}"]
    if named:
        parts.append(get_operation_display_text(log["operation"]))
    if figures:
        parts += [
            f"reward {log['reward']:+.3f}",
            f"similarity {log['previous_similarity']:.3f} → {log['similarity']:.3f}",
        ]
    return ", ".join(parts)


def _listed(figures: Mapping[str, float | str]) -> str:
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
    )
