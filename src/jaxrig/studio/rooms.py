"""What a system offers to the studio, and what the studio lends it."""

import itertools
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jaxrig.studio.jobs import Job, Jobs
from jaxrig.studio.workspace import Workspace


@dataclass(frozen=True)
class Download:
    """An answer that the browser saves as a file."""

    name: str
    content: bytes


@dataclass(eq=False)
class Desk:
    """What the calls of one room work with: its folder, jobs and what it remembers."""

    room: str
    folder: Workspace
    jobs: Jobs
    held: dict[str, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def kept(self, name: str) -> Path:
        """Return a folder for results; one that does not stay if nothing is saved."""
        if not self.folder.read_only:
            return self.folder.inside(name)
        if "scratch" not in self.held:
            self.held["scratch"] = TemporaryDirectory(prefix="jaxrig-studio-")
        return Path(self.held["scratch"].name) / name

    def fresh(self, kind: str, given: str) -> tuple[str, Path]:
        """Return the name and the folder of a result that does not exist yet."""
        stem = re.sub(r"[^\w.-]+", "_", given).strip("_.") or kind
        root = self.kept(kind)
        numbers = itertools.count(1)
        name = next(
            f"{stem}-{n}" for n in numbers if not (root / f"{stem}-{n}").exists()
        )
        return name, root / name

    def result(self, kind: str, name: str) -> Path:
        """Return the folder of a result by its name; FileNotFoundError if none."""
        path = self.kept(kind) / name
        if not re.fullmatch(r"[\w-][\w.-]*", name) or not path.is_dir():
            raise FileNotFoundError(f"no {name!r} among the {kind} of this studio")
        return path

    def start(self, title: str, work: Callable[[Job], Any]) -> dict[str, Any]:
        """Begin a job; returns its facts."""
        return self.jobs.start(self.room, title, work).facts()

    def publish(self, **event: Any) -> None:
        """Tell all tabs that something changed."""
        self.jobs.hub.publish({"kind": self.room, **event})


Call = Callable[[Desk, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Room:
    """The calls of a room by name, the files it reads, and how to check an upload."""

    calls: Mapping[str, Call]
    suffixes: tuple[str, ...] = ()
    check: Callable[[Desk, Path], None] = lambda desk, path: None


KINDS: dict[type, str] = {
    **{int: "a whole number", float: "a number", str: "text"},
    **{bool: "true or false", list: "a list", dict: "an object"},
}


def required(request: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return a value of a request; ValueError if it is missing or of another kind."""
    if not isinstance(request, Mapping):
        raise ValueError(f"{request!r} has no {name}: give an object with names")
    value = request.get(name)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} is {value!r}: give {KINDS[kind]}")
    return value
