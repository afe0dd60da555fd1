"""What a system offers to the studio, and what the studio lends it: a folder, the only
place it reads from and writes to.
"""

import itertools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jaxrig.atomic import write_file
from jaxrig.studio.jobs import Job, Jobs

UPLOADS = "uploads"
MOST_UPLOADS = 100
MOST_LISTED = 500
UPLOAD_BYTES = 256 * 2**20


class Workspace:
    """Paths inside one folder; what leads out of it is refused."""

    def __init__(
        self, root: Path, read_only: bool = False, upload_bytes: int = UPLOAD_BYTES
    ):
        self.root, self.read_only = root.resolve(), read_only
        self.upload_bytes = upload_bytes

    def shown(self) -> str:
        """Return the folder as commands in the terminal of the studio would name it."""
        here = Path.cwd()
        inside = self.root.is_relative_to(here)
        return str(self.root.relative_to(here) if inside else self.root)

    def inside(self, name: str | Path) -> Path:
        """Return the path of a name; ValueError if it, or its link, leads outside."""
        if "\0" in str(name):
            raise ValueError("a file name cannot hold a zero byte")
        try:
            path = (self.root / name).resolve()
        except RuntimeError as error:  # before Python 3.13
            raise ValueError(f"{str(name)!r} is a link to itself") from error
        if not path.is_relative_to(self.root):
            raise ValueError(
                f"{str(name)!r} lies outside of the studio's folder {self.root}: move "
                "the file there, or start with another --folder"
            )
        return path

    def existing(self, name: str | Path) -> Path:
        """Return the path of a file or folder that is there."""
        path = self.inside(name)
        if not path.exists():
            raise FileNotFoundError(f"no {str(name)!r} in the studio's folder")
        return path

    def file(self, name: str | Path) -> Path:
        """Return the path of a file that is there; a pipe would keep us waiting."""
        path = self.existing(name)
        if not path.is_file():
            raise FileNotFoundError(f"{str(name)!r} is not a file")
        return path

    def name(self, path: Path) -> str:
        """Return a path as pages know it: from the folder on."""
        return path.relative_to(self.root).as_posix()

    def check_writable(self) -> None:
        """Refuse to write in a studio that only shows."""
        if self.read_only:
            raise ValueError(
                "this studio is read-only: nothing is saved; start it without "
                "--read-only to keep files"
            )

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a whole file or nothing."""
        self.check_writable()
        return write_file(self.inside(name), content)

    def files(self, suffixes: Sequence[str]) -> list[dict[str, Any]]:
        """List the files with these endings, the newest first, hidden ones left out."""
        found = [
            path
            for path in self.root.rglob("*")
            if path.suffix.lower() in suffixes
            and path.is_file()
            and not any(part.startswith(".") for part in path.parts[len(self._parts) :])
            and path.resolve().is_relative_to(self.root)
        ]
        found.sort(key=lambda path: -path.stat().st_mtime)
        return [
            {"name": self.name(path), "bytes": path.stat().st_size}
            for path in found[:MOST_LISTED]
        ]

    @property
    def _parts(self) -> tuple[str, ...]:
        return self.root.parts

    def upload_path(self, name: str, suffixes: Sequence[str]) -> Path:
        """Return where an upload of this name goes; never over another file."""
        self.check_writable()
        plain = re.sub(r"[^\w.+-]", "_", Path(name.replace("\\", "/")).name)[-80:]
        plain = plain.lstrip(".")
        if not suffixes:
            raise ValueError(f"this room reads no files: {name!r} is not kept")
        if Path(plain).suffix.lower() not in suffixes:
            known = ", ".join(suffixes)
            raise ValueError(f"{name!r} is not a file this room reads ({known})")
        folder = self.inside(UPLOADS)
        folder.mkdir(parents=True, exist_ok=True)
        if sum(1 for _ in folder.iterdir()) >= MOST_UPLOADS:
            raise ValueError(
                f"there are {MOST_UPLOADS} uploads already: remove some from {folder}"
            )
        path, number = folder / plain, 1
        while path.exists():
            number += 1
            path = folder / f"{Path(plain).stem}-{number}{Path(plain).suffix}"
        return path


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
        return path if self.folder.read_only else self.folder.inside(path)

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
