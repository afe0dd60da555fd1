"""Write logs to the folder of a run."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from jaxarc.config import JaxArcConfig, LoggingConfig, StorageConfig
from jaxarc.draw.cells import detect_changed_cells
from jaxarc.draw.episodes import EpisodeFrame
from jaxarc.log.events import Handler, Log, list_figures
from jaxarc.ops.operations import get_operation_name
from jaxrig.atomic import remove_path, write_file

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
TIMESTAMP = "%Y%m%d_%H%M%S"
_EPISODE = re.compile(r"episode_(\d{4,})(\.json)?")


class RunFolder:
    """A folder for one run below `storage.base_output_dir`.

    It keeps the files of `max_episodes_per_run` episodes; the oldest give way.
    """

    def __init__(
        self, config: StorageConfig, clock: Callable[[], datetime] = datetime.now
    ):
        self.path = _run_path(config, clock)
        self.logs = self.path / "logs"
        self.episodes = self.path / "episodes"
        self.pictures = self.path / "visualizations"
        self._limit = config.max_episodes_per_run
        if config.clear_output_on_start:
            for part in (self.logs, self.episodes, self.pictures):
                remove_path(part)
        self.path.mkdir(parents=True, exist_ok=True)

    def episode_file(self, number: int) -> Path:
        """Return the file of an episode's records."""
        self.episodes.mkdir(parents=True, exist_ok=True)
        return self.episodes / f"episode_{number:04d}.json"

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


def _run_path(config: StorageConfig, clock: Callable[[], datetime]) -> Path:
    base = Path(config.base_output_dir)
    name = config.run_name or clock().strftime(TIMESTAMP)
    if Path(name).name != name or name == "..":
        raise ValueError(
            f"storage.run_name is {name!r}: give a plain name without folders"
        )
    if config.run_name or not (base / name).exists():
        return base / name
    names = (f"{name}-{number}" for number in count(2))
    return base / next(other for other in names if not (base / other).exists())


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
        policy: str,
        clock: Callable[[], datetime] = datetime.now,
    ):
        self._rules, self._folder, self._policy = config.logging, folder, policy
        self._clock = clock
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
        asked = rules.log_operations or rules.log_rewards or rules.log_grid_changes
        if asked and log["step_num"] % rules.log_frequency == 0:
            self._write("DEBUG", "step", step_record(log, rules))

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """Write a line for the end, and the episode to a file of its own."""
        figures = {name: summary[name] for name in summary if name != "step_data"}
        if self._rules.log_episode_end:
            self._write("INFO", "episode", figures)
        if self._policy == "minimal":
            return
        content = dict(summary)
        if self._policy == "research":
            content["grids"] = [frame.grid.tolist() for frame in frames]
        write_file(
            self._folder.episode_file(summary["episode_num"]), as_json(content) + "\n"
        )

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Write a line of `batch_metrics.jsonl`."""
        if self._takes("INFO"):
            line = as_json({"update_step": number, **figures})
            _append(self._folder.logs / "batch_metrics.jsonl", line)

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

    def _write(self, level: str, event: str, values: Mapping[str, Any]) -> None:
        if self._takes(level):
            now = self._clock().strftime(TIMESTAMP)
            form = self._rules.log_format
            _append(self.path, format_record(form, now, level, event, values))


def step_record(log: Log, rules: LoggingConfig) -> dict[str, Any]:
    """Return what goes into the line of a step."""
    record = {"episode_num": log["episode_num"], "step_num": log["step_num"]}
    if rules.log_operations:
        record["operation"] = log["operation"]
        record["operation_name"] = get_operation_name(log["operation"])
    if rules.log_rewards:
        record |= {"reward": log["reward"], "similarity": log["similarity"]}
    if rules.log_grid_changes:
        before, after = np.asarray(log["before_grid"]), np.asarray(log["grid"])
        cells = np.argwhere(detect_changed_cells(before, after)).tolist()
        record["changed_cells"] = [
            [row, column, int(before[row, column]), int(after[row, column])]
            for row, column in cells
        ]
    return record


def format_record(
    form: str, time: str, level: str, event: str, values: Mapping[str, Any]
) -> str:
    """Format one event as a line: JSON, words, or `name=value`."""
    if form == "json":
        return as_json({"time": time, "level": level, "event": event, **values})
    if form == "text":
        return f"{time} {level} {event}: {list_figures(values)}"
    pairs = {"time": time, "level": level, "event": event, **values}
    return " ".join(f"{name}={as_json(value)}" for name, value in pairs.items())


def as_json(value: Any) -> str:
    """Return a value as JSON on one line; what is not finite is null."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
