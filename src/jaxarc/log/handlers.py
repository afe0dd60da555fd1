"""Tell logs to a terminal, to files, as pictures, or to Weights & Biases.

Logs are dictionaries of NumPy arrays and Python numbers; a `Handler` takes them.
"""

import dataclasses
import importlib
import importlib.util
import json
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from jaxarc.config import JaxArcConfig, StorageConfig
from jaxarc.draw import episodes
from jaxarc.draw.cells import detect_changed_cells
from jaxarc.draw.svg import Drawing, draw_task, save_drawing
from jaxarc.draw.terminal import grid_panel
from jaxarc.ops.operations import get_operation_display_text, get_operation_name
from jaxrig.atomic import remove_path, write_file
from jaxrig.machine import missing_extra
from jaxrig.report import Report

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
TIMESTAMP = "%Y%m%d_%H%M%S"
PICTURES = ("svg", "png")
_EPISODE = re.compile(r"episode_(\d{4,})(\.json)?")

Log = Mapping[str, Any]


class Handler:
    """One destination: a terminal, files, pictures, a tracking service.

    What a method raises is logged and counted under the handler's name, and neither
    stops the run nor the other handlers.
    """

    name = "handler"

    def start(self, log: Log) -> None:
        """Take the start of an episode."""

    def step(self, log: Log) -> None:
        """Take one step."""

    def episode(self, summary: Log, frames: Sequence[episodes.EpisodeFrame]) -> None:
        """Take the end of an episode; its frames, if some handler draws them."""

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Take the figures of an update, or of a step of many environments."""

    def evaluation(self, summary: Log) -> None:
        """Take the figures of an evaluation."""

    def warning(self, text: str) -> None:
        """Take a note of what could not be kept or shown."""

    def close(self) -> None:
        """Close the destination: nothing follows."""


def shows_step(config: JaxArcConfig, log: Log) -> bool:
    """Return whether to draw a step: every n-th, each that changes, or all."""
    level = config.visualization.level
    if not config.visualization.step_visualizations or level in ("off", "minimal"):
        return False
    if level == "standard":
        return log["step_num"] % config.logging.log_frequency == 0
    return level == "full" or not np.array_equal(log["before_grid"], log["grid"])


def list_figures(figures: Log) -> str:
    """Return names and values in a line, fractions with four digits."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
    )


class ConsoleHandler(Handler):
    """Episodes, figures and, by the level of pictures, grids on a rich console."""

    name = "console"

    def __init__(self, config: JaxArcConfig, console: Console | None = None):
        self._config, self._console = config, console or Console()

    def start(self, log: Log) -> None:
        """Print which task the episode is about."""
        if self._config.logging.log_episode_start:
            task = log["task_id"] or "a task without id"
            where = f", pair {log['pair_index'] + 1}" if "pair_index" in log else ""
            self._say(f"Episode {log['episode_num']}: {task}{where}")

    def step(self, log: Log) -> None:
        """Print what was done, and the grid after it."""
        if not shows_step(self._config, log):
            return
        rules = self._config.visualization
        words = [f"Step {log['step_num']}"]
        if rules.show_operation_names:
            words.append(get_operation_display_text(log["operation"]))
        if rules.include_metrics:
            before, after = log["previous_similarity"], log["similarity"]
            words.append(f"reward {log['reward']:+z.3f}")
            words.append(f"similarity {before:.3f} → {after:.3f}")
        self._say(", ".join(words))
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
                f"{summary['total_reward']:+z.3f}, similarity "
                f"{summary['final_similarity']:.3f}"
            )

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Print the figures of an update."""
        self._say(f"Update {number}: {list_figures(figures)}")

    def evaluation(self, summary: Log) -> None:
        """Print the figures of an evaluation."""
        plain = {k: v for k, v in summary.items() if isinstance(v, int | float | str)}
        self._say(f"Evaluation: {list_figures(plain)}")

    def _say(self, line: str) -> None:
        # Text, so that brackets in names are not taken for markup.
        self._console.print(Text(line), soft_wrap=True)


class RunFolder:
    """A folder for one run below `storage.base_output_dir`.

    It keeps the files of `max_episodes_per_run` episodes; the oldest give way.
    """

    def __init__(
        self, config: StorageConfig, clock: Callable[[], datetime] = datetime.now
    ):
        base = Path(config.base_output_dir)
        name = config.run_name or clock().strftime(TIMESTAMP)
        if Path(name).name != name or name == "..":
            raise ValueError(
                f"storage.run_name is {name!r}: give a plain name without folders"
            )
        self.path = base / name
        if not config.run_name and self.path.exists():
            others = (base / f"{name}-{number}" for number in count(2))
            self.path = next(other for other in others if not other.exists())
        self.logs = self.path / "logs"
        self.episodes = self.path / "episodes"
        self.pictures = self.path / "visualizations"
        self._limit = config.max_episodes_per_run
        if config.clear_output_on_start:
            for part in (self.logs, self.episodes, self.pictures):
                remove_path(part)
        self.path.mkdir(parents=True, exist_ok=True)

    def episode_pictures(self, number: int) -> Path:
        """Return the folder of an episode's pictures."""
        return self.pictures / f"episode_{number:04d}"

    def make_room(self) -> None:
        """Remove the oldest episodes until there is room for one more."""
        found: dict[int, list[Path]] = {}
        for path in (*self.episodes.glob("*"), *self.pictures.glob("*")):
            if match := _EPISODE.fullmatch(path.name):
                found.setdefault(int(match[1]), []).append(path)
        for number in sorted(found)[: max(len(found) - self._limit + 1, 0)]:
            for path in found[number]:
                remove_path(path)


class FileHandler(Handler):
    """Events of a run in `run.jsonl` or `run.log`, figures and episodes beside it.

    Steps are of level DEBUG, what could not be kept is of level WARNING, everything
    else of INFO; `logging.log_level` is the least that is written.
    """

    name = "files"

    def __init__(
        self,
        config: JaxArcConfig,
        folder: RunFolder,
        clock: Callable[[], datetime] = datetime.now,
    ):
        self._rules, self._policy = config.logging, config.storage.policy
        self._folder, self._clock = folder, clock
        folder.logs.mkdir(parents=True, exist_ok=True)
        suffix = "jsonl" if self._rules.log_format == "json" else "log"
        self.path = folder.logs / f"run.{suffix}"

    def start(self, log: Log) -> None:
        """Write a line for the start of an episode."""
        names = ("episode_num", "task_id", "pair_index", "episode_mode")
        if self._rules.log_episode_start:
            self._write("INFO", "start", {n: log[n] for n in names if n in log})

    def step(self, log: Log) -> None:
        """Write a line for every `log_frequency`-th step."""
        rules = self._rules
        if log["step_num"] % rules.log_frequency:
            return
        record = {}
        if rules.log_operations:
            name = get_operation_name(log["operation"])
            record |= {"operation": log["operation"], "operation_name": name}
        if rules.log_rewards:
            record |= {"reward": log["reward"], "similarity": log["similarity"]}
        if rules.log_grid_changes:
            grids = np.stack([log["before_grid"], log["grid"]])
            cells = np.argwhere(detect_changed_cells(*grids)).tolist()
            changed = [[*cell, *grids[:, *cell].tolist()] for cell in cells]
            record["changed_cells"] = changed
        if record:
            place = {name: log[name] for name in ("episode_num", "step_num")}
            self._write("DEBUG", "step", place | record)

    def episode(self, summary: Log, frames: Sequence[episodes.EpisodeFrame]) -> None:
        """Write a line for the end, and the episode to a file of its own."""
        figures = {name: summary[name] for name in summary if name != "step_data"}
        if self._rules.log_episode_end:
            self._write("INFO", "episode", figures)
        if self._policy == "minimal":
            return
        content = dict(summary)
        if self._policy == "research":
            content["grids"] = [frame.grid.tolist() for frame in frames]
        path = self._folder.episodes / f"episode_{summary['episode_num']:04d}.json"
        write_file(path, as_json(content) + "\n")

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Write a line of `batch_metrics.jsonl`."""
        line = as_json({"update_step": number, **figures})
        self._append("INFO", self._folder.logs / "batch_metrics.jsonl", line)

    def evaluation(self, summary: Log) -> None:
        """Write `evaluation_summary.json`."""
        if self._takes("INFO"):
            path = self._folder.logs / "evaluation_summary.json"
            write_file(path, as_json(summary) + "\n")

    def warning(self, text: str) -> None:
        """Write a line that says what is missing."""
        self._write("WARNING", "warning", {"message": text})

    def _takes(self, level: str) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self._rules.log_level)

    def _write(self, level: str, event: str, values: Log) -> None:
        now, form = self._clock().strftime(TIMESTAMP), self._rules.log_format
        self._append(level, self.path, format_record(form, now, level, event, values))

    def _append(self, level: str, path: Path, line: str) -> None:
        if self._takes(level):
            with path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def format_record(form: str, time: str, level: str, event: str, values: Log) -> str:
    """Format one event as a line: JSON, words, or `name=value`."""
    if form == "text":
        return f"{time} {level} {event}: {list_figures(values)}"
    pairs = {"time": time, "level": level, "event": event, **values}
    if form == "json":
        return as_json(pairs)
    return " ".join(f"{name}={as_json(value)}" for name, value in pairs.items())


def as_json(value: Any) -> str:
    """Return a value as JSON on one line; what is not finite is null."""
    # JSON has no NaN and no infinity, but Python writes and reads them all the same.
    return json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None))


class PictureHandler(Handler):
    """`task_overview`, `step_007` and `summary` in a folder for each episode.

    They are SVG, PNG or both; the format "html" adds a page that plays the episode.
    """

    name = "pictures"

    def __init__(self, config: JaxArcConfig, folder: RunFolder):
        self._config, self._rules, self._folder = config, config.visualization, folder
        self._formats = [x for x in PICTURES if x in self._rules.output_formats]
        if "png" in self._formats and importlib.util.find_spec("cairosvg") is None:
            raise ImportError(
                "visualization.output_formats has 'png', which needs cairosvg: pip "
                "install cairosvg, or leave png out"
            )

    def start(self, log: Log) -> None:
        """Draw all demonstrations of the task."""
        if "minimal" not in (self._rules.level, self._config.storage.policy):
            drawing = draw_task(log["task"], include_test=False)
            self._save(drawing, log, "task_overview")

    def step(self, log: Log) -> None:
        """Draw the grid before and after a step."""
        rules, policy = self._rules, self._config.storage.policy
        if policy == "minimal" or not shows_step(self._config, log):
            return
        operation = log["operation"] if rules.show_operation_names else None
        drawing = episodes.draw_step(
            log["before_grid"],
            log["grid"],
            {"operation": operation, "selection": log["selection"]},
            log["reward"],
            log["similarity"],
            log["step_num"],
            previous_similarity=log["previous_similarity"],
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
            tags=list(rules.tags),
            **{n: getattr(rules, n) for n in ("entity", "notes", "group", "job_type")},
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
