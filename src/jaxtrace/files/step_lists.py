"""ParaView's lists of a series (`.pvd`, `.series`): which files make which instant."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

#: Extensions of files that list the files of a series.
LIST_EXTENSIONS = (".pvd", ".series")


@dataclass(frozen=True)
class Step:
    """The file or files of one instant, with the time a collection gives it."""

    files: tuple[Path, ...]
    time: float | None = None


def listed_steps(path: str | Path) -> tuple[Step, ...]:
    """The steps of a list in order of time; parts of one instant stay together.

    Entries without a time are an instant each, in the order of the file.
    """
    path = Path(path)
    rows = _json_rows(path) if path.suffix.lower() == ".series" else _xml_rows(path)
    entries = [_entry(path, name, time) for name, time in rows]
    if not entries:
        raise ValueError(f"{path}: the list names no files")
    if any(time is None for time, _ in entries):
        return tuple(Step((file,), time) for time, file in entries)
    times = sorted({time for time, _ in entries if time is not None})
    return tuple(
        Step(tuple(file for t, file in entries if t == time), time) for time in times
    )


Row = tuple[str | None, str | float | None]


def _xml_rows(path: Path) -> list[Row]:
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}: not a readable collection: {error}") from error
    return [(e.get("file"), e.get("timestep")) for e in root.iter("DataSet")]


def _json_rows(path: Path) -> list[Row]:
    try:
        files = json.loads(path.read_bytes())["files"]
        return [(row.get("name"), row.get("time")) for row in files]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a readable list of files: {error}") from error


def _entry(
    path: Path, name: str | None, time: str | float | None
) -> tuple[float | None, Path]:
    if not name:
        raise ValueError(f"{path}: an entry names no file")
    file = path.parent / name
    if not file.is_file():
        raise FileNotFoundError(f"{path}: names {name!r}, which is not there")
    if time is None:
        return None, file
    try:
        return float(time), file
    except ValueError as error:
        raise ValueError(f"{path}: time {time!r} is not a number") from error
