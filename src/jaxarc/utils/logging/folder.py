"""The folder of a run: where its files lie, how many there may be, which go first."""

import re
from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path

from jaxarc.config import StorageConfig
from jaxrig.atomic import remove_path

GIGABYTE = 1e9
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
        self.accepts = True  # whether the episode at hand gets files
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
        """The file of an episode's records."""
        self.episodes.mkdir(parents=True, exist_ok=True)
        return self.episodes / f"episode_{number:04d}.json"

    def episode_pictures(self, number: int) -> Path:
        """The folder of an episode's pictures."""
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
        """Remove episodes until the folder is no longer full; their numbers."""
        return [] if self.config.cleanup_policy == "none" else self._make_room()

    def is_full(self) -> bool:
        """Whether another episode would be one too many."""
        if len(self.numbers()) >= self.config.max_episodes_per_run:
            return True
        return self.size() >= self.config.max_storage_gb * GIGABYTE

    def numbers(self) -> list[int]:
        """The episodes that have files, from older to newer."""
        places = (self.episodes, self.pictures)
        paths = [path for place in places if place.exists() for path in place.iterdir()]
        found = {int(m[1]) for p in paths if (m := _EPISODE.fullmatch(p.name))}
        return sorted(found)

    def size(self, number: int | None = None) -> int:
        """Bytes of the whole run, or of one episode."""
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
