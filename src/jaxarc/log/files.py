"""Write logs to the folder of a run, and keep it within its limits."""

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
from jaxarc.log.events import Handler, Log
from jaxarc.ops.operations import get_operation_name
from jaxrig.atomic import atomic_write, remove_path

GIGABYTE = 1e9
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_EPISODE = re.compile(r"episode_(\d{4,})(\.json)?")


class RunFolder:
    """A folder for one run below `storage.base_output_dir`.

    It is full with `max_episodes_per_run` episodes or at `max_storage_gb`, which is
    looked at before every episode. By `cleanup_policy` the oldest or the largest
    episodes then give way, the last `keep_recent_episodes` never; "manual" leaves that
    to a call of `clean_up`, and "none" removes nothing ever.
    """

    def __init__(
        self, config: StorageConfig, clock: Callable[[], datetime] = datetime.now
    ):
        self.config = config
        self.path = _run_path(config, clock)
        self.logs = self._part(config.logs_dir)
        self.episodes = self._part(config.episodes_dir)
        self.pictures = self._part(config.visualization_dir)
        self.accepts = True  # whether the current episode gets files
        if config.clear_output_on_start:
            for part in (self.logs, self.episodes, self.pictures):
                remove_path(part)
        self.path.mkdir(parents=True, exist_ok=True)

    def _part(self, name: str) -> Path:
        part = Path(name)
        if part.is_absolute() or ".." in part.parts or not part.name:
            raise ValueError(
                f"storage has the folder {name!r}: name one inside the run's folder"
            )
        return self.path / part

    def episode_file(self, number: int) -> Path:
        """Return the file of an episode's records."""
        self.episodes.mkdir(parents=True, exist_ok=True)
        return self.episodes / f"episode_{number:04d}.json"

    def episode_pictures(self, number: int) -> Path:
        """Return the folder of an episode's pictures."""
        return self.pictures / f"episode_{number:04d}"

    def begin_episode(self) -> str:
        """Make room for one more episode; a sentence if there is none.

        With `fail_on_storage_full` that is an error.
        """
        if self.config.cleanup_policy in ("size_based", "oldest_first"):
            self._make_room()
        self.accepts = not self.is_full()
        if self.accepts:
            return ""
        problem = (
            f"{self.path} is full ({len(self.numbers())} episodes, "
            f"{self.size() / GIGABYTE:.3g} GB): raise storage.max_episodes_per_run or "
            "max_storage_gb, or choose another cleanup_policy"
        )
        if self.config.fail_on_storage_full:
            raise OSError(problem)
        return problem

    def clean_up(self) -> list[int]:
        """Remove episodes until the folder is not full; return their numbers."""
        return [] if self.config.cleanup_policy == "none" else self._make_room()

    def is_full(self) -> bool:
        """Return whether another episode would be one too many."""
        if len(self.numbers()) >= self.config.max_episodes_per_run:
            return True
        return self.size() >= self.config.max_storage_gb * GIGABYTE

    def numbers(self) -> list[int]:
        """Return the episodes that have files, from older to newer."""
        places = (self.episodes, self.pictures)
        paths = [path for place in places if place.exists() for path in place.iterdir()]
        found = {int(m[1]) for p in paths if (m := _EPISODE.fullmatch(p.name))}
        return sorted(found)

    def size(self, number: int | None = None) -> int:
        """Return the bytes of the whole run, or of one episode."""
        tops = [self.path] if number is None else self._paths(number)
        return sum(_bytes(top) for top in tops)

    def _make_room(self) -> list[int]:
        last = len(self.numbers()) - self.config.keep_recent_episodes
        waiting = self.numbers()[: max(last, 0)]
        if self.config.cleanup_policy == "size_based":
            waiting.sort(key=self.size, reverse=True)
        removed = []
        while waiting and self.is_full():
            number = waiting.pop(0)
            for path in self._paths(number):
                remove_path(path)
            removed.append(number)
        return removed

    def _paths(self, number: int) -> list[Path]:
        name = f"episode_{number:04d}"
        return [self.episodes / f"{name}.json", self.pictures / name]


def _run_path(config: StorageConfig, clock: Callable[[], datetime]) -> Path:
    base = Path(config.base_output_dir)
    name = config.run_name or clock().strftime(config.timestamp_format)
    if Path(name).name != name or name == "..":
        raise ValueError(
            f"the run is called {name!r}: storage.run_name, or the time as "
            "storage.timestamp_format writes it, is a plain name without folders"
        )
    if config.run_name or not (base / name).exists():
        return base / name
    names = (f"{name}-{number}" for number in count(2))
    return base / next(other for other in names if not (base / other).exists())


def _bytes(top: Path) -> int:
    if top.is_file():
        return top.stat().st_size
    return sum(path.stat().st_size for path in top.rglob("*") if path.is_file())


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
        if self._policy == "minimal" or not self._folder.accepts:
            return
        content = dict(summary)
        if self._policy == "research":
            content["grids"] = [frame.grid.tolist() for frame in frames]
        _save(self._folder.episode_file(summary["episode_num"]), content)

    def batch(self, number: int, figures: Mapping[str, float]) -> None:
        """Write a line of `batch_metrics.jsonl`."""
        if self._takes("INFO"):
            line = as_json({"update_step": number, **figures})
            _append(self._folder.logs / "batch_metrics.jsonl", line)

    def evaluation(self, summary: Log) -> None:
        """Write `evaluation_summary.json`."""
        if self._takes("INFO"):
            _save(self._folder.logs / "evaluation_summary.json", summary)

    def warning(self, text: str) -> None:
        """Write a line that says what is missing."""
        self._write("WARNING", "warning", {"message": text})

    def _takes(self, level: str) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self._rules.log_level)

    def _write(self, level: str, event: str, values: Mapping[str, Any]) -> None:
        if self._takes(level):
            line = format_record(
                self._rules.log_format, self._now(), level, event, values
            )
            _append(self.path, line)


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
        words = ", ".join(f"{name} {_shown(value)}" for name, value in values.items())
        return f"{time} {level} {event}: {words}"
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


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def _save(path: Path, content: Any) -> None:
    text = as_json(content)
    with atomic_write(path) as file:
        file.write((text + "\n").encode())
