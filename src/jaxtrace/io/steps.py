"""From what a user names - a file, glob, list, folder, collection - to steps in time.

A step is the file, or the part files, of one instant; its time comes from the first
source that every file has.
"""

import glob
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Integer

from jaxtrace.io.geometry import Snapshot
from jaxtrace.io.solver_cases import (
    CASE_EXTENSIONS,
    PLOT3D_EXTENSIONS,
    PLOT3D_SOLUTION,
    CaseSteps,
    foam_control,
    kind_of,
    plot3d_time,
    read_plot3d,
)
from jaxtrace.io.vtk_read import (
    PIECE_OF,
    SNAPSHOT_EXTENSIONS,
    StatedTime,
    peek_time,
    read_snapshot,
)
from jaxtrace.types import check_choice

#: Extensions of files that list the files of a series.
LIST_EXTENSIONS = (".pvd", ".series")


@dataclass(frozen=True)
class Step:
    """The file or files of one instant, with the time a collection gives it."""

    files: tuple[Path, ...]
    time: float | None = None


def listed_steps(path: str | Path) -> tuple[Step, ...]:
    """Return the steps of a list in order of time; parts of one instant stay together.

    Entries without a time are an instant each, in the order of the file.
    """
    path = Path(path)
    try:
        if path.suffix.lower() == ".series":
            listed = json.loads(path.read_bytes())["files"]
            rows = [(row.get("name"), row.get("time")) for row in listed]
        else:
            sets = ElementTree.fromstring(path.read_bytes()).iter("DataSet")
            rows = [(entry.get("file"), entry.get("timestep")) for entry in sets]
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        # Wrong XML is a SyntaxError, wrong JSON a ValueError.
        raise ValueError(f"{path}: not a readable list of files: {error}") from error
    if not rows:
        raise ValueError(f"{path}: the list names no files")
    entries: list[tuple[float | None, Path]] = []
    for name, time in rows:
        if not name:
            raise ValueError(f"{path}: an entry names no file")
        if not (path.parent / name).is_file():
            raise FileNotFoundError(f"{path} refers to {name!r}, which does not exist")
        try:
            instant = None if time is None else float(time)
        except ValueError as error:
            raise ValueError(f"{path}: time {time!r} is not a number") from error
        entries.append((instant, path.parent / name))
    times = [time for time, _ in entries if time is not None]
    if len(times) < len(entries):
        return tuple(Step((file,), time) for time, file in entries)
    return tuple(
        Step(tuple(file for t, file in entries if t == time), time)
        for time in sorted(set(times))
    )


#: Every extension that `open_steps` understands.
KNOWN_EXTENSIONS = (
    *(*SNAPSHOT_EXTENSIONS, *LIST_EXTENSIONS),
    *(*CASE_EXTENSIONS, *PLOT3D_EXTENSIONS),
)

PathSpec = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def natural_key(path: str | Path) -> tuple[tuple[int, int, str], ...]:
    """Return sort key in which runs of digits count as numbers: 2 comes before 10."""
    parts = re.split(r"(\d+)", str(path))
    return tuple((1, int(p), p) if p.isdigit() else (0, 0, p) for p in parts if p)


def list_files(path: Path) -> list[Path]:
    """Return a file, those inside a folder, or those that a glob matches, in order."""
    if path.is_file():
        return [path]
    if path.is_dir():
        control = foam_control(path)
        found = [control] if control else list(path.iterdir())
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]
    files = [file for file in found if file.is_file()]
    if not files:
        looked = f"folder {path}" if path.is_dir() else path
        raise FileNotFoundError(
            f"no files found for {looked} (from folder {Path.cwd()})"
        )
    return sorted(files, key=natural_key)


def find_files(
    spec: PathSpec, extensions: Sequence[str] = KNOWN_EXTENSIONS
) -> list[Path]:
    """Return the files of one kind a specification stands for, in natural order.

    A list keeps its order. Where parallel files such as `.pvtu` are found, their
    pieces are left out; a collection found among other files speaks for them.
    FileNotFoundError says what was looked for, ValueError which kinds are known.
    """
    if isinstance(spec, str | os.PathLike):
        looked: Any = Path(spec).expanduser()
        files = list_files(looked)
        named = files == [looked]
    else:
        files, looked, named = [Path(f).expanduser() for f in spec], "the list", True
        if not files:
            raise FileNotFoundError("no files: the list is empty")
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(f"{file}: no such file")
    known = [file for file in files if kind_of(file) in extensions]
    if not known or (named and len(known) < len(files)):
        kinds = sorted({f.suffix or f.name for f in files if f not in known})
        raise ValueError(
            f"{looked}: unknown extension {', '.join(kinds)}; known are "
            f"{', '.join(extensions)}"
        )
    return _one_kind(known if named else _leaders(known), looked)


def _leaders(files: list[Path]) -> list[Path]:
    """Leave out the files that another file speaks for."""
    for kinds in ((".pvd",), (".series",), CASE_EXTENSIONS):
        chosen = [file for file in files if kind_of(file) in kinds]
        if chosen:
            return chosen
    present = {file.suffix.lower() for file in files}
    pieces = {PIECE_OF[kind] for kind in present if kind in PIECE_OF}
    return [file for file in files if file.suffix.lower() not in pieces]


def _one_kind(files: list[Path], looked: object) -> list[Path]:
    kinds = Counter(file.suffix.lower() for file in files)
    if len(kinds) > 1 and not set(kinds) <= set(PLOT3D_EXTENSIONS):
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        raise ValueError(f"{looked}: files of one kind make a series, found {counts}")
    kind = next(iter(kinds))
    if len(files) > 1 and kind in (*LIST_EXTENSIONS, *CASE_EXTENSIONS):
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{looked}: one {kind} file is a whole series, found {names}")
    return files


#: Where times are looked for, best first, in the words of the message.
TIME_SOURCES = {
    "field": "field data (TimeValue or TIME)",
    "collection": "the timestep of the collection",
    "array": "the array Time",
    "name": "the number in the file name",
    "index": "the index of the file",
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class Clock(NamedTuple):
    """Increasing times, the order of the files that gives them, and their origin."""

    times: Float[np.ndarray, " steps"]
    order: Integer[np.ndarray, " steps"]
    source: str


def name_number(path: str | Path) -> float | None:
    """Return the last number in a file name: `run3_0.25.vtu` gives 0.25."""
    numbers = _NUMBER.findall(Path(path).stem)
    return float(numbers[-1]) if numbers else None


def choose_clock(
    labels: Sequence[str],
    stated: Mapping[str, Sequence[float | None]],
    source: str | None = None,
) -> Clock:
    """Return the first of `TIME_SOURCES` that every file has, or `source` if it is
    given.

    Numbers in names count only if no two files share one.
    """
    check_choice("time_source", source or "index", TIME_SOURCES)
    candidates = {**stated, "index": [float(i) for i in range(len(labels))]}
    for name in TIME_SOURCES if source is None else (source,):
        values = candidates.get(name, [None])
        known = [value for value in values if value is not None]
        if len(known) == len(labels) and (
            source or name != "name" or len(set(known)) == len(known)
        ):
            return _ordered(np.asarray(known, np.float64), labels, name)
    raise ValueError(
        f"time_source={source!r}: not every file has {TIME_SOURCES[str(source)]}"
    )


def _ordered(times: np.ndarray, labels: Sequence[str], source: str) -> Clock:
    """Sort by time; two files of one instant are an error that names them."""
    others = ", ".join(name for name in TIME_SOURCES if name != source)
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise ValueError(
            f"{labels[int(bad[0])]}: its time is {times[bad[0]]}, from "
            f"{TIME_SOURCES[source]}; give time_source= another of {others}"
        )
    order = np.argsort(times, kind="stable")
    times = times[order]
    same = np.flatnonzero(np.diff(times) <= 0)
    if same.size:
        first, second = (labels[int(order[same[0] + i])] for i in (0, 1))
        raise ValueError(
            f"times must increase, but {first} and {second} both have t = "
            f"{times[same[0]]:g} from {TIME_SOURCES[source]}; leave one out or give "
            f"time_source= another of {others}"
        )
    return Clock(times, order, source)


class FileSteps:
    """One file, or one set of part files, for each instant."""

    def __init__(self, steps: Sequence[Step], time_source: str | None = None) -> None:
        labels = [", ".join(str(file) for file in step.files) for step in steps]
        peeks = [StatedTime()] * len(steps)
        readable = kind_of(steps[0].files[0]) not in PLOT3D_EXTENSIONS
        if readable and time_source in (None, "field", "array"):
            peeks = [peek_time(step.files[0]) for step in steps]
        stated = {
            "field": [peek.field for peek in peeks],
            "collection": [step.time for step in steps],
            "array": [peek.array for peek in peeks],
            "name": [name_number(step.files[-1]) for step in steps],
        }
        clock = choose_clock(labels, stated, time_source)
        self._steps = [steps[i] for i in clock.order]
        self.times: Float[np.ndarray, " steps"] = clock.times
        self.time_source = TIME_SOURCES[clock.source]
        self.labels = tuple(labels[i] for i in clock.order)

    def read(self, index: int, names: Collection[str] | None = None) -> Snapshot:
        """Read one instant; with `names`, only those arrays where possible."""
        return read_snapshot(*self._steps[index].files, names=names)


class Plot3DSteps(FileSteps):
    """One grid file, and one solution file for each instant."""

    def __init__(self, files: Sequence[Path], time_source: str | None = None) -> None:
        solutions = [f for f in files if f.suffix.lower() == PLOT3D_SOLUTION]
        grids = [f for f in files if f not in solutions]
        if len(grids) != 1 or not solutions:
            raise ValueError(
                f"PLOT3D: one grid file ({', '.join(PLOT3D_EXTENSIONS[:-1])}) and its "
                f"solution files ({PLOT3D_SOLUTION}) make a series, found "
                f"{len(grids)} and {len(solutions)}: name them all"
            )
        times = [plot3d_time(path) for path in solutions]
        if len(set(times)) < len(times):  # solvers that state no time write 0
            times = [None] * len(times)
        steps = [
            Step((*grids, path), t) for path, t in zip(solutions, times, strict=True)
        ]
        super().__init__(steps, time_source)
        if self.time_source == TIME_SOURCES["collection"]:
            self.time_source = "the headers of the solutions"

    def read(self, index: int, names: Collection[str] | None = None) -> Snapshot:
        """Read one instant; the velocity is momentum over density."""
        return read_plot3d(*self._steps[index].files)


def open_steps(spec: PathSpec, time_source: str | None = None) -> FileSteps | CaseSteps:
    """Return the steps of a file, glob, list, folder, collection or solver case."""
    files = find_files(spec)
    first = files[0]
    if all(kind_of(file) in PLOT3D_EXTENSIONS for file in files):
        return Plot3DSteps(files, time_source)
    if kind_of(first) in CASE_EXTENSIONS:
        if time_source is not None:
            raise ValueError(
                f"{first}: a solver's case has its own times, leave out "
                f"time_source={time_source!r}"
            )
        return CaseSteps(first)
    if kind_of(first) in LIST_EXTENSIONS:
        return FileSteps(listed_steps(first), time_source)
    return FileSteps([Step((file,)) for file in files], time_source)
