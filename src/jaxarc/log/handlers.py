"""Tell logs to a terminal, as pictures, or to Weights & Biases."""

import dataclasses
import importlib
import importlib.util
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxarc.config import JaxArcConfig, VisualizationConfig
from jaxarc.draw import episodes
from jaxarc.draw.svg import Drawing, save_drawing
from jaxarc.draw.tasks import draw_task
from jaxarc.draw.terminal import grid_panel
from jaxarc.log.events import Detail, Handler, Log, list_figures
from jaxarc.log.files import RunFolder
from jaxarc.ops.operations import get_operation_display_text
from jaxrig.machine import missing_extra
from jaxrig.report import Report


class ConsoleHandler(Handler):
    """Episodes, figures and, by the level of pictures, grids on a rich console."""

    name = "console"

    def __init__(
        self, config: JaxArcConfig, detail: Detail, console: Console | None = None
    ):
        self._config, self._detail = config, detail
        self._console = console or Console()

    def start(self, log: Log) -> None:
        """Print which task the episode is about."""
        if self._config.logging.log_episode_start:
            task = log["task_id"] or "a task without id"
            where = f", pair {log['pair_index'] + 1}" if "pair_index" in log else ""
            self._say(f"Episode {log['episode_num']}: {task}{where}")

    def step(self, log: Log) -> None:
        """Print what was done, and the grid after it."""
        if not self._detail.shows_step(log):
            return
        rules = self._config.visualization
        self._say(step_words(log, rules.show_operation_names, rules.include_metrics))
        panel = grid_panel(
            log["grid"],
            title="Working grid",
            show_coordinates=rules.show_coordinates,
            scheme=rules.color_scheme,
        )
        self._console.print(panel)

    def episode(self, summary: Log, frames: Sequence[episodes.EpisodeFrame]) -> None:
        """Print the outcome of the episode."""
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
        """Print the figures of an update."""
        self._say(f"Update {number}: {list_figures(figures)}")

    def evaluation(self, summary: Log) -> None:
        """Print the figures of an evaluation."""
        numbers = {k: v for k, v in summary.items() if isinstance(v, int | float | str)}
        self._say(f"Evaluation: {list_figures(numbers)}")

    def _say(self, line: str) -> None:
        # Text, so that brackets in names are not taken for markup.
        self._console.print(Text(line), soft_wrap=True)


def step_words(log: Log, named: bool = True, figures: bool = True) -> str:
    """Describe a step in a line."""
    parts = [f"Step {log['step_num']}"]
    if named:
        parts.append(get_operation_display_text(log["operation"]))
    if figures:
        parts += [
            f"reward {log['reward']:+.3f}",
            f"similarity {log['previous_similarity']:.3f} → {log['similarity']:.3f}",
        ]
    return ", ".join(parts)


FORMATS = ("svg", "png")


class PictureHandler(Handler):
    """`task_overview`, `step_007` and `summary` in a folder for each episode.

    They are SVG, PNG or both; the format "html" adds a page that plays the episode.
    """

    name = "pictures"

    def __init__(self, config: VisualizationConfig, detail: Detail, folder: RunFolder):
        self._rules, self._detail, self._folder = config, detail, folder
        self._formats = [form for form in FORMATS if form in config.output_formats]
        if "png" in self._formats and importlib.util.find_spec("cairosvg") is None:
            raise ImportError(
                "visualization.output_formats has 'png', which needs cairosvg: pip "
                "install cairosvg, or leave png out"
            )

    def start(self, log: Log) -> None:
        """Draw all demonstrations of the task."""
        if "minimal" not in (self._detail.level, self._detail.policy):
            drawing = draw_task(log["task"], include_test=False)
            self._save(drawing, log, "task_overview")

    def step(self, log: Log) -> None:
        """Draw the grid before and after a step."""
        if self._detail.policy == "minimal" or not self._detail.shows_step(log):
            return
        rules = self._rules
        drawing = episodes.draw_step(
            log["before_grid"],
            log["grid"],
            reward=log["reward"],
            similarity=log["similarity"],
            previous_similarity=log["previous_similarity"],
            step_num=log["step_num"],
            selection=log["selection"],
            operation=log["operation"] if rules.show_operation_names else None,
            scheme=rules.color_scheme,
            show_coordinates=rules.show_coordinates,
            highlight_changes=rules.highlight_changes,
            show_metrics=rules.include_metrics,
        )
        self._save(drawing, log, f"step_{log['step_num']:03d}")

    def episode(self, summary: Log, frames: Sequence[episodes.EpisodeFrame]) -> None:
        """Draw curves and key moments, or write a page."""
        if not self._rules.episode_summaries or not frames:
            return
        options: dict[str, Any] = {
            "scheme": self._rules.color_scheme,
            "show_metrics": self._rules.include_metrics,
        }
        title = f"Episode {summary['episode_num']}"
        if self._formats:
            drawing = episodes.draw_episode(frames, title, **options)
            self._save(drawing, summary, "summary")
        if "html" in self._rules.output_formats:
            result = "solved" if summary["success"] else "not solved"
            report = Report(title, f"{summary['total_steps']} steps, {result}.")
            report.add(episodes.episode_section("Steps", frames, **options))
            place = self._folder.episode_pictures(summary["episode_num"])
            report.write(place / "episode.html")

    def _save(self, drawing: Drawing, log: Log, name: str) -> None:
        place = self._folder.episode_pictures(log["episode_num"])
        for form in self._formats:
            save_drawing(drawing, place / f"{name}.{form}")


class WandbHandler(Handler):
    """Figures of updates, episodes and evaluations as one run of the service.

    Every `wandb.log_frequency`-th update and episode is sent. `settings` are kept with
    the run if `wandb.save_config` says so; by default they are the configuration.
    """

    name = "wandb"

    def __init__(self, config: JaxArcConfig, settings: Any = None):
        try:
            wandb = importlib.import_module("wandb")
        except ImportError as error:
            raise missing_extra(
                "logging to Weights & Biases needs wandb", "wandb"
            ) from error
        rules = config.wandb
        kept = dataclasses.asdict(config if settings is None else settings)
        self._frequency = rules.log_frequency
        self._run = wandb.init(
            project=rules.project_name,
            entity=rules.entity,
            tags=list(rules.tags),
            notes=rules.notes,
            group=rules.group,
            job_type=rules.job_type,
            mode="offline" if rules.offline_mode else "online",
            config=kept if rules.save_config else None,
        )

    def episode(self, summary: Log, frames: Sequence[episodes.EpisodeFrame]) -> None:
        """Log the figures of an episode."""
        if summary["episode_num"] % self._frequency == 0:
            self._run.log(_figures(summary, "episode/"))

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Log the figures of an update."""
        if number % self._frequency == 0:
            # Not as the step of the service, which refuses to go back on a resume.
            self._run.log({"update_step": number, **figures})

    def evaluation(self, summary: Log) -> None:
        """Log the figures of an evaluation as the outcome of the run."""
        self._run.summary.update(_figures(summary, "evaluation/"))

    def close(self) -> None:
        """Close the run."""
        self._run.finish()


def _figures(summary: Log, prefix: str) -> dict[str, Any]:
    return {
        prefix + name: value
        for name, value in summary.items()
        if isinstance(value, numbers.Number)
    }
