"""One VTK file to one `Snapshot`, through VTK's own readers, chosen by extension."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.files.snapshot import Snapshot
from jaxtrace.files.vtk_pipeline import (
    reporting,
    select_arrays,
    time_steps,
    vtk_class,
)
from jaxtrace.files.vtk_snapshot import snapshot_of
from jaxtrace.files.vtk_text import check_text, times_in_text
from jaxtrace.files.vtk_whole import check_whole

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

    A file that is missing, empty, cut short or otherwise unreadable raises an error
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
    """The instant the file states, without reading its fields."""
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
    """The instant that the arrays of a snapshot state."""
    fields = snapshot.field_data
    field = next((fields[k] for k in TIME_FIELDS if k in fields), np.zeros(0))
    places = (fields, snapshot.arrays, snapshot.cell_arrays)
    array = next((p[TIME_ARRAY] for p in places if TIME_ARRAY in p), np.zeros(0))
    return StatedTime(*(float(v.flat[0]) if v.size else None for v in (field, array)))


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The reader for the file, with its header read."""
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
    """`Time` if the field data, which come before the first piece, hold a time."""
    head = b""
    with open(path, "rb") as file:
        while b"<Piece" not in head and (block := file.read(2**16)):
            head += block
    names = (f'Name="{name}"'.encode() for name in (*TIME_FIELDS, TIME_ARRAY))
    return (TIME_ARRAY,) if any(name in head for name in names) else ()
