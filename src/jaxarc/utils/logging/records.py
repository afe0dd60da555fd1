"""Logs as files: a line for each event, a file for each episode."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from jaxarc.config import JaxArcConfig
from jaxarc.ops.names import get_operation_name
from jaxarc.utils.logging.folder import RunFolder
from jaxarc.utils.logging.handler import Handler, Log
from jaxarc.utils.visualization.cells import detect_changed_cells
from jaxarc.utils.visualization.episodes import EpisodeFrame
from jaxrig.atomic import atomic_write

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


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
        self._now = lambda: clock().strftime(config.storage.timestamp_format)
        folder.logs.mkdir(parents=True, exist_ok=True)
        suffix = "jsonl" if self._rules.log_format == "json" else "log"
        self.path = folder.logs / f"run.{suffix}"

    def start(self, log: Log) -> None:
        """A line for the beginning of an episode."""
        names = ("episode_num", "task_id", "pair_index", "episode_mode")
        if self._rules.log_episode_start:
            self._write("INFO", "start", {n: log[n] for n in names if n in log})

    def step(self, log: Log) -> None:
        """A line for every `log_frequency`-th step, with what is asked for."""
        rules = self._rules
        asked = rules.log_operations or rules.log_rewards or rules.log_grid_changes
        if asked and log["step_num"] % rules.log_frequency == 0:
            self._write("DEBUG", "step", step_record(log, rules))

    def episode(self, summary: Log, frames: Sequence[EpisodeFrame]) -> None:
        """A line for the end, and the episode in a file of its own."""
        figures = {name: summary[name] for name in summary if name != "step_data"}
        if self._rules.log_episode_end:
            self._write("INFO", "episode", figures)
        if self._policy == "minimal" or not self._folder.accepts:
            return
        content = dict(summary)
        if self._policy == "research":
            content["grids"] = [frame.grid.tolist() for frame in frames]
        _save(self._folder.episode_file(summary["episode_num"]), content)

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """A line of `batch_metrics.jsonl`."""
        if self._takes("INFO"):
            line = as_json({"update_step": number, **figures})
            _append(self._folder.logs / "batch_metrics.jsonl", line)

    def evaluation(self, summary: Log) -> None:
        """All of `evaluation_summary.json`."""
        if self._takes("INFO"):
            _save(self._folder.logs / "evaluation_summary.json", summary)

    def warning(self, text: str) -> None:
        """A line that says what is missing."""
        self._write("WARNING", "warning", {"message": text})

    def _takes(self, level: str) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self._rules.log_level)

    def _write(self, level: str, event: str, values: Mapping[str, Any]) -> None:
        if self._takes(level):
            line = format_record(
                self._rules.log_format, self._now(), level, event, values
            )
            _append(self.path, line)


def step_record(log: Log, rules: Any) -> dict[str, Any]:
    """What of a step goes into a line."""
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
    """One event as a line: JSON, words, or `name=value`."""
    if form == "json":
        return as_json({"time": time, "level": level, "event": event, **values})
    if form == "text":
        words = ", ".join(f"{name} {_shown(value)}" for name, value in values.items())
        return f"{time} {level} {event}: {words}"
    pairs = {"time": time, "level": level, "event": event, **values}
    return " ".join(f"{name}={as_json(value)}" for name, value in pairs.items())


def as_json(value: Any) -> str:
    """A value as JSON on one line; what is not finite is null."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def _save(path: Path, content: Any) -> None:
    text = as_json(content)
    with atomic_write(path) as file:
        file.write((text + "\n").encode())
