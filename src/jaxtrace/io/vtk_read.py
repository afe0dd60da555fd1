"""VTK's own readers: one file to one snapshot.

VTK's messages are captured and become errors that name the file.
"""

import contextlib
import dataclasses
import importlib
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Collection, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxrig.machine import missing_extra
from jaxtrace.io.geometry import Snapshot
from jaxtrace.io.vtk_checks import (
    check_text,
    check_whole,
    times_in_text,
)
from jaxtrace.io.vtk_data import GHOSTS, snapshot_of

# Where VTK writes its messages is one setting of the whole process.
_LOCK = threading.RLock()
_LOG = logging.getLogger(__name__)
_ENTRY = re.compile(r"(?m)^(?=(?:ERROR|Warning|Generic Warning|Debug): In )")
_PREFIX = re.compile(r"^[\w ]+: In [^\n]*\n(?:\w+ \((?:0x)?[0-9a-f]+\): )?")
# The pipeline repeats in its own words that the reader failed.
_ECHO = re.compile(
    r"returned failure for request|No update piece number|did not create output"
)


class Transcript:
    """The messages of one VTK call."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def add(self, text: str) -> None:
        """Take the raw text of one or more messages."""
        self.entries += [entry for entry in _ENTRY.split(text) if entry.strip()]

    def failures(self) -> list[str]:
        """Return the messages that mean the data cannot be trusted, each once."""
        bad = [e for e in self.entries if e.startswith("ERROR") or "Error read" in e]
        telling = [e for e in bad if not _ECHO.search(e)] or bad
        short = [_PREFIX.sub("", e).strip() for e in telling]
        return list(dict.fromkeys(" ".join(text.split()) for text in short))


@contextlib.contextmanager
def captured(algorithm: Any) -> Generator[Transcript, None, None]:
    """Collect everything VTK says while `algorithm` runs; nothing reaches stderr."""
    from vtkmodules.vtkCommonCore import (
        vtkLogger,
        vtkOutputWindow,
        vtkStringOutputWindow,
    )

    transcript, window = Transcript(), vtkStringOutputWindow()

    def note(_sender: Any, _event: str, text: str = "") -> None:
        transcript.add(text)

    note.CallDataType = "string0"  # pyright: ignore[reportFunctionMemberAccess]
    with _LOCK:
        previous = vtkOutputWindow.GetInstance()
        cutoff = vtkLogger.GetCurrentVerbosityCutoff()
        tags = [algorithm.AddObserver(e, note) for e in ("ErrorEvent", "WarningEvent")]
        vtkOutputWindow.SetInstance(window)
        vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
        try:
            yield transcript
        finally:
            vtkLogger.SetStderrVerbosity(vtkLogger.ConvertToVerbosity(cutoff))
            vtkOutputWindow.SetInstance(previous)
            for tag in tags:
                algorithm.RemoveObserver(tag)
            transcript.add(window.GetOutput())
            _LOG.debug("%s", transcript.entries)


@contextlib.contextmanager
def chatter_logged() -> Generator[None, None, None]:
    """Send what C++ code prints to standard output to the debug log instead.

    A few VTK readers print their progress there and offer no way to ask them not to.
    """
    with _LOCK, tempfile.TemporaryFile() as sink:
        sys.stdout.flush()
        saved = os.dup(1)
        os.dup2(sink.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            sink.seek(0)
            _LOG.debug("%s", sink.read().decode(errors="replace"))


def vtk_class(module: str, name: str) -> Any:
    """Return a class of VTK; ImportError with the remedy where VTK is not installed."""
    try:
        return getattr(importlib.import_module(f"vtkmodules.{module}"), name)
    except ImportError as error:
        raise missing_extra("reading VTK files needs vtk", "trace") from error


@contextlib.contextmanager
def reporting(path: Path, reader: Any) -> Generator[None, None, None]:
    """Turn VTK's complaints into one ValueError that names the file."""
    with captured(reader) as transcript:
        yield
    failures = transcript.failures()
    if failures or reader.GetErrorCode():
        detail = "; ".join(failures) or f"error code {reader.GetErrorCode()}"
        raise ValueError(f"{path}: VTK cannot read the file: {detail}")


def select_arrays(reader: Any, names: Collection[str] | None) -> tuple[str, ...]:
    """Switch off the arrays not asked for; the names of all arrays there are."""
    found: list[str] = []
    for place in ("Point", "Cell"):
        getter = getattr(reader, f"Get{place}DataArraySelection", None)
        if getter is None:
            continue
        choice = getter()
        present = [choice.GetArrayName(i) for i in range(choice.GetNumberOfArrays())]
        found += present
        for name in present:
            wanted = names is None or name in (*names, GHOSTS)
            choice.SetArraySetting(name, int(wanted))
    return tuple(name for name in dict.fromkeys(found) if name != GHOSTS)


def time_steps(reader: Any) -> tuple[float, ...]:
    """Return the instants a reader offers, from its header."""
    pipeline = vtk_class("vtkCommonExecutionModel", "vtkStreamingDemandDrivenPipeline")
    return reader.GetOutputInformation(0).Get(pipeline.TIME_STEPS()) or ()


_XML = {
    ".vti": "ImageData",
    ".vtr": "RectilinearGrid",
    ".vts": "StructuredGrid",
    ".vtu": "UnstructuredGrid",
    ".vtp": "PolyData",
    ".vtm": "MultiBlockData",
}
_PARALLEL = {f".p{extension[1:]}": kind for extension, kind in _XML.items()}
_PARALLEL.pop(".pvtm")
#: Which extension the pieces of a parallel file have.
PIECE_OF = {extension: f".{extension[2:]}" for extension in _PARALLEL}
_LEGACY = ".vtk"
#: Extensions of files that hold one instant each.
SNAPSHOT_EXTENSIONS = (*_XML, *_PARALLEL, _LEGACY)
#: Names under which a file may state its instant: as field data, and as any array.
TIME_FIELDS = ("TimeValue", "TIME")
TIME_ARRAY = "Time"


@dataclass(frozen=True)
class StatedTime:
    """The instant a file states, by the place it states it in."""

    field: float | None = None
    array: float | None = None


def read_snapshot(path: str | Path, names: Collection[str] | None = None) -> Snapshot:
    """Read one file; with `names`, only those of its arrays where the format allows.

    A file that is missing, empty, truncated or otherwise unreadable raises an error
    that names it and carries VTK's message.
    """
    path = Path(path)
    with opened(path) as reader:
        available = select_arrays(reader, names)
        with reporting(path, reader):
            reader.Update()
            data = reader.GetOutputDataObject(0)
        if path.suffix.lower() == _LEGACY:
            check_text(path)
        parallel = path.suffix.lower() in _PARALLEL
        snapshot = snapshot_of(data, str(path), assembled=parallel)
    stated = stated_time(snapshot)
    return dataclasses.replace(
        snapshot,
        time=stated.array if stated.field is None else stated.field,
        available=available or snapshot.available,
    )


def peek_time(path: str | Path) -> StatedTime:
    """Return the instant the file states, without reading its fields."""
    path = Path(path)
    with opened(path) as reader:
        if path.suffix.lower() == _LEGACY:
            found = times_in_text(path)
            stated = [found[name] for name in TIME_FIELDS if name in found]
            return StatedTime(stated[0] if stated else None, found.get(TIME_ARRAY))
        steps = time_steps(reader)
        if steps:
            return StatedTime(field=float(steps[0]))
        if TIME_ARRAY not in select_arrays(reader, ()) + _header_times(path):
            return StatedTime()
    return stated_time(read_snapshot(path, (TIME_ARRAY,)))


def stated_time(snapshot: Snapshot) -> StatedTime:
    """Return the instant that the arrays of a snapshot state."""
    fields = snapshot.field_data
    field = next((fields[k] for k in TIME_FIELDS if k in fields), np.zeros(0))
    places = (fields, snapshot.arrays, snapshot.cell_arrays)
    array = next((p[TIME_ARRAY] for p in places if TIME_ARRAY in p), np.zeros(0))
    return StatedTime(*(float(v.flat[0]) if v.size else None for v in (field, array)))


@contextlib.contextmanager
def opened(path: Path) -> Generator[Any, None, None]:
    """Open the reader for the file, with its header read."""
    suffix = path.suffix.lower()
    if suffix not in SNAPSHOT_EXTENSIONS:
        raise ValueError(
            f"{path}: unknown extension {suffix!r}, known are "
            f"{', '.join(SNAPSHOT_EXTENSIONS)}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    if suffix != _LEGACY:
        check_whole(path)
    reader = _make_reader(suffix)
    reader.SetFileName(str(path))
    with reporting(path, reader):
        reader.UpdateInformation()
    yield reader


def _make_reader(suffix: str) -> Any:
    if suffix != _LEGACY:
        kind = _PARALLEL.get(suffix)
        name = f"P{kind}" if kind else _XML[suffix]
        return vtk_class("vtkIOXML", f"vtkXML{name}Reader")()
    reader = vtk_class("vtkIOLegacy", "vtkDataSetReader")()
    for kind in ("Scalars", "Vectors", "Normals", "Tensors", "ColorScalars", "TCoords"):
        getattr(reader, f"ReadAll{kind}On")()
    reader.ReadAllFieldsOn()
    return reader


def _header_times(path: Path) -> tuple[str, ...]:
    """Return `Time` if the field data, before the first piece, hold a time."""
    head = b""
    with open(path, "rb") as file:
        while b"<Piece" not in head and (block := file.read(2**16)):
            head += block
    names = (f'Name="{name}"'.encode() for name in (*TIME_FIELDS, TIME_ARRAY))
    return (TIME_ARRAY,) if any(name in head for name in names) else ()
