"""Collections: a .pvd (or .vtk.series) that gives every file of a series its time."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from jaxrig.atomic import atomic_write

Filename = str | os.PathLike[str]
Steps = Iterable[tuple[float, str]]

_HEAD = (
    '<?xml version="1.0"?>\n'
    '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n'
    "<Collection>\n"
)
_TAIL = "</Collection>\n</VTKFile>\n"


def write_collection(path: Filename, steps: Steps) -> Path:
    """Write a .pvd of (time, file) steps; files are named relative to its folder."""
    lines = [
        f'<DataSet timestep="{float(time)!r}" part="0" '
        f"file={quoteattr(Path(name).as_posix())}/>\n"
        for time, name in steps
    ]
    return _write(path, "".join([_HEAD, *lines, _TAIL]))


def extend_collection(path: Filename, steps: Steps) -> Path:
    """Add steps to a .pvd, or begin it; a crash leaves the previous whole file."""
    before = listed_steps(path) if Path(path).exists() else []
    return write_collection(path, [*before, *steps])


def listed_steps(path: Filename) -> list[tuple[float, str]]:
    """The (time, file) steps of a .pvd in the order of the file."""
    try:
        root = ElementTree.parse(path).getroot()
        entries = list(root.iter("DataSet"))
        steps = [(float(e.attrib["timestep"]), e.attrib["file"]) for e in entries]
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a sound .pvd collection: {error}") from error
    return steps


def write_file_series(path: Filename, steps: Steps) -> Path:
    """Write a .vtk.series of (time, file) steps, as viewers want for .vtk files."""
    files = [{"name": name, "time": float(time)} for time, name in steps]
    text = json.dumps({"file-series-version": "1.0", "files": files}, indent=0)
    return _write(path, text)


def _write(path: Filename, text: str) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())
    return path
