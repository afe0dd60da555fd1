"""VTK's own readers: one file to one snapshot of plain arrays.

VTK's messages are captured and become errors that name the file.
"""

import contextlib
import dataclasses
import logging
import mmap
import os
import re
import sys
import tempfile
import threading
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxrig.machine import import_extra
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.geometry import (
    DIMENSIONS,
    Cells,
    Snapshot,
    ascending,
    grid_order,
    grid_points,
    keep_cells,
    structured_cells,
)
from jaxtrace.io.velocity import check_values

# Where VTK writes its messages is one setting of the whole process.
_LOCK = threading.RLock()
_LOG = logging.getLogger(__name__)
_ENTRY = re.compile(r"(?m)^(?=(?:ERROR|Warning|Generic Warning|Debug): In )")
_PREFIX = re.compile(r"^[\w ]+: In [^\n]*\n(?:\w+ \((?:0x)?[0-9a-f]+\): )?")
# The pipeline repeats in its own words that the reader failed.
_ECHO = re.compile(
    r"returned failure for request|No update piece number|did not create output"
)
GHOSTS = "vtkGhostType"
# Flags of the ghost array on cells: a copy of another piece's cell, and a blanked one;
# and on points: a blanked one.
_COPY, _HIDDEN, _HIDDEN_POINT = 1, 32, 2


@contextlib.contextmanager
def reporting(path: Path, reader: Any) -> Generator[None, None, None]:
    """Turn VTK's complaints into one ValueError that names the file.

    Nothing that VTK says meanwhile reaches stderr.
    """
    from vtkmodules.vtkCommonCore import (
        vtkLogger,
        vtkOutputWindow,
        vtkStringOutputWindow,
    )

    said, window = list[str](), vtkStringOutputWindow()

    def note(_sender: Any, _event: str, text: str | None = "") -> None:
        said.append(text or "")  # None where the message is not UTF-8

    note.CallDataType = "string0"  # pyright: ignore[reportFunctionMemberAccess]
    with _LOCK:
        previous = vtkOutputWindow.GetInstance()
        cutoff = vtkLogger.GetCurrentVerbosityCutoff()
        tags = [reader.AddObserver(e, note) for e in ("ErrorEvent", "WarningEvent")]
        vtkOutputWindow.SetInstance(window)
        vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
        try:
            yield
        finally:
            vtkLogger.SetStderrVerbosity(vtkLogger.ConvertToVerbosity(cutoff))
            vtkOutputWindow.SetInstance(previous)
            for tag in tags:
                reader.RemoveObserver(tag)
            said.append(window.GetOutput())
            _LOG.debug("%s", said)
    failures = find_failures("\n".join(said))
    if failures or reader.GetErrorCode():
        detail = "; ".join(failures) or f"error code {reader.GetErrorCode()}"
        raise ValueError(f"{path}: VTK cannot read the file: {detail}")


def find_failures(text: str) -> list[str]:
    """Return the messages that mean the data cannot be trusted, each once."""
    entries = [entry for entry in _ENTRY.split(text) if entry.strip()]
    bad = [e for e in entries if e.startswith("ERROR") or "Error read" in e]
    telling = [e for e in bad if not _ECHO.search(e)] or bad
    short = [" ".join(_PREFIX.sub("", e).split()) for e in telling]
    return list(dict.fromkeys(short))


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
    return getattr(import_extra(f"vtkmodules.{module}", "VTK files", "trace"), name)


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
#: Which extension the pieces of a parallel file have.
PIECE_OF = {f".p{kind[1:]}": kind for kind in _XML if kind != ".vtm"}
_LEGACY = ".vtk"
#: Extensions of files that hold one instant each.
SNAPSHOT_EXTENSIONS = (*_XML, *PIECE_OF, _LEGACY)
#: Names under which a file may state its instant: as field data, and as any array.
TIME_FIELDS = ("TimeValue", "TIME")
TIME_ARRAY = "Time"
_LAST_TAG = b"</VTKFile>"
_TEXT = re.compile(rb"[^\n]*\n[^\n]*\n[ \t]*ASCII")
_LEGACY_TIME = re.compile(
    rb"(?m)^(?:(TimeValue|TIME|Time)[ \t]+[1-9]\d*[ \t]+[1-9]\d*[ \t]+(\w+)[ \t]*\r?\n"
    rb"|SCALARS[ \t]+(Time)[ \t]+(\w+)[^\n]*\n(?:LOOKUP_TABLE[^\n]*\n)?)"
)
# Legacy files of bytes are big-endian whatever wrote them.
_BIG_ENDIAN = {b"double": ">f8", b"float": ">f4", b"int": ">i4", b"vtktypeint64": ">i8"}


class StatedTime(NamedTuple):
    """The instant a file states, by the place it states it in."""

    field: float | None = None
    array: float | None = None


def read_snapshot(*files: str | Path, names: Collection[str] | None = None) -> Snapshot:
    """Read the file, or the parts, of one instant.

    With `names` only those arrays are read where the format allows. A file that is
    missing, empty, truncated or otherwise unreadable raises an error that names it and
    carries VTK's message.
    """
    parts, available = [], dict[str, None]()
    for path in map(Path, files):
        reader = _open(path)
        available |= dict.fromkeys(select_arrays(reader, names))
        with reporting(path, reader):
            reader.Update()
            parts.append(reader.GetOutputDataObject(0))
    parallel = Path(files[0]).suffix.lower() in PIECE_OF
    name = ", ".join(map(str, files))
    snapshot = snapshot_of(*parts, name=name, assembled=parallel)
    return dataclasses.replace(
        snapshot, available=tuple(available) or snapshot.available
    )


def peek_time(path: str | Path) -> StatedTime:
    """Return the instant the file states, without reading its fields."""
    path = Path(path)
    reader = _open(path)
    if path.suffix.lower() == _LEGACY:
        return _legacy_time(path)
    if steps := time_steps(reader):
        return StatedTime(field=float(steps[0]))
    if TIME_ARRAY not in select_arrays(reader, ()) and not _times_in_head(path):
        return StatedTime()
    return stated_time(read_snapshot(path, names=(TIME_ARRAY,)))


def stated_time(snapshot: Snapshot) -> StatedTime:
    """Return the instant that the arrays of a snapshot state."""
    fields = snapshot.field_data
    field = next((fields[k] for k in TIME_FIELDS if k in fields), np.zeros(0))
    places = (fields, snapshot.arrays, snapshot.cell_arrays)
    array = next((p[TIME_ARRAY] for p in places if TIME_ARRAY in p), np.zeros(0))
    return StatedTime(*(float(v.flat[0]) if v.size else None for v in (field, array)))


def _open(path: Path) -> Any:
    """Return the reader for the file, with its header read."""
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
    if suffix == _LEGACY:
        reader = vtk_class("vtkIOLegacy", "vtkDataSetReader")()
        kinds = ("Scalars", "Vectors", "Normals", "Tensors", "ColorScalars", "TCoords")
        for kind in (*kinds, "Fields"):
            getattr(reader, f"ReadAll{kind}On")()
        if _ends_in_number(path):
            reader.ReadFromInputStringOn()
            # Every byte is a character of Latin-1, so that no title is refused.
            reader.SetInputString(path.read_text(encoding="latin-1") + "\n")
    else:
        _check_whole(path)
        parallel = f"P{_XML[PIECE_OF[suffix]]}" if suffix in PIECE_OF else ""
        reader = vtk_class("vtkIOXML", f"vtkXML{parallel or _XML[suffix]}Reader")()
    reader.SetFileName(str(path))
    with reporting(path, reader):
        reader.UpdateInformation()
    return reader


def _times_in_head(path: Path) -> bool:
    """Return whether the field data, before the first piece, hold a time."""
    head = b""
    with open(path, "rb") as file:
        while b"<Piece" not in head and (block := file.read(2**16)):
            head += block
    names = (f'Name="{name}"'.encode() for name in (*TIME_FIELDS, TIME_ARRAY))
    return any(name in head for name in names)


def _ends_in_number(path: Path) -> bool:
    """Return whether a text ends without a blank: VTK takes such an end for a value."""
    with open(path, "rb") as file:
        head = file.read(512)
        file.seek(-1, os.SEEK_END)
        return _TEXT.match(head) is not None and not file.read().isspace()


def _legacy_time(path: Path) -> StatedTime:
    """Return the first value of the arrays of a legacy file named like a time."""
    found: dict[bytes, float] = {}
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for match in _LEGACY_TIME.finditer(content):
            kind, data = match[2] or match[4], content[match.end() : match.end() + 64]
            if _TEXT.match(content):
                values = [float(word) for word in data.split()[:1]]
            else:
                dtype = _BIG_ENDIAN.get(kind)  # of other types, no time is known
                whole = dtype and len(data) >= int(dtype[-1])
                values = [float(np.frombuffer(data, dtype, 1)[0])] if whole else []
            if values:
                found.setdefault(match[1] or match[3], values[0])
    field = [found[name.encode()] for name in TIME_FIELDS if name.encode() in found]
    return StatedTime(field[0] if field else None, found.get(TIME_ARRAY.encode()))


def _check_whole(path: Path) -> None:
    """Raise ValueError if an XML file, or one that it refers to, is cut.

    VTK leaves the values of such a file unset.
    """
    parts = [path]
    if path.suffix.lower().startswith((".pv", ".vtm")):
        names = re.findall(rb'(?:Source|file)="([^"]+)"', path.read_bytes())
        parts += [path.parent / os.fsdecode(name) for name in names]
    for part in filter(Path.is_file, parts):
        with open(part, "rb") as file:
            head = file.read(2**16)
            file.seek(-min(1024, part.stat().st_size), os.SEEK_END)
            if b"<VTKFile" in head and _LAST_TAG not in file.read():
                raise ValueError(
                    f"{part}: the file is truncated, {_LAST_TAG.decode()} is not at "
                    "its end"
                )


def snapshot_of(*data: Any, name: str, assembled: bool = False) -> Snapshot:
    """Return the snapshot of data objects read from `name`; ValueError if empty.

    Ghost and hidden cells, and those of hidden points, are left out; kinds of cells
    without a rule here - polygons, polyhedra, strips, the larger quadratic cells - are
    split into simplices.
    """
    parts = [leaf for one in data for leaf in leaves(one)]
    if sum(part.GetNumberOfPoints() for part in parts) == 0:
        raise ValueError(f"{name}: no points in the file")
    heads = (data[0].GetFieldData(), parts[0].GetFieldData())
    fields = named_arrays(heads[0]) | named_arrays(heads[1])
    dataset = parts[0]
    if len(parts) > 1 or dataset.IsA("vtkPolyData"):
        join = vtk_class("vtkFiltersCore", "vtkAppendFilter")()
        for part in parts:
            join.AddInputData(part)
        join.Update()
        dataset = join.GetOutput()
    mixed = dataset.IsA("vtkUnstructuredGrid")
    if mixed and not np.isin(cell_types(dataset), list(DIMENSIONS)).all():
        split = vtk_class("vtkFiltersGeneral", "vtkDataSetTriangleFilter")()
        split.SetInputData(dataset)
        split.Update()
        dataset = split.GetOutput()
    arrays = _rows(dataset.GetPointData(), dataset.GetNumberOfPoints(), name)
    cell_arrays = _rows(dataset.GetCellData(), dataset.GetNumberOfCells(), name)
    visible = np.ones(dataset.GetNumberOfCells(), bool)
    if GHOSTS in cell_arrays:
        visible = (cell_arrays.pop(GHOSTS)[:, 0] & (_COPY | _HIDDEN)) == 0
    blank = arrays.pop(GHOSTS, np.zeros((1, 1), np.uint8))[:, 0] & _HIDDEN_POINT > 0
    available = (*arrays, *cell_arrays)
    if is_tensor(dataset) and visible.all() and not blank.any():
        axes, shape = axes_of(dataset), dimensions_of(dataset)
        check_values(np.concatenate(axes), "the coordinates", name, False)
        nx, ny, nz = (max(n - 1, 1) for n in shape)
        arrays = {k: grid_order(v, shape) for k, v in arrays.items()}
        cell_arrays = {k: grid_order(v, (nx, ny, nz)) for k, v in cell_arrays.items()}
        cell_arrays = ascending(axes, cell_arrays)[1]
        axes, arrays = ascending(axes, arrays)
        geometry = TensorGrid(axes)
    else:
        structured = hasattr(dataset, "GetDimensions")
        mesh = curvilinear_mesh(dataset) if structured else mesh_of(dataset, name)
        if blank.any():
            met = np.concatenate([[0], np.cumsum(blank[mesh.connectivity])])
            visible = visible & (met[mesh.offsets[1:]] == met[mesh.offsets[:-1]])
        geometry = keep_cells(mesh, visible)
        if not visible.all():
            cell_arrays = {k: v[visible] for k, v in cell_arrays.items()}
    joined = assembled or len(parts) > 1
    return Snapshot(geometry, arrays, cell_arrays, name, joined, available, fields)


def leaves(data: Any) -> list[Any]:
    """Return the data sets inside a composite one; a plain data set is its own leaf."""
    if not data.IsA("vtkCompositeDataSet"):
        return [data]
    iterator, found = data.NewIterator(), []
    iterator.InitTraversal()
    while not iterator.IsDoneWithTraversal():
        found.append(iterator.GetCurrentDataObject())
        iterator.GoToNextItem()
    return [
        part for part in found if part.IsA("vtkDataSet") and part.GetNumberOfPoints()
    ]


def to_numpy(array: Any) -> np.ndarray:
    """Return a VTK array as NumPy sees it, without a copy."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    values = vtk_to_numpy(array)
    # Numbers of eight bytes have two names in C; NumPy's own is the one wanted.
    return values.view(np.dtype(f"{values.dtype.kind}{values.dtype.itemsize}"))


def named_arrays(attributes: Any) -> dict[str, np.ndarray]:
    """Return the numeric arrays of point, cell or field data by name."""
    found = {}
    for index in range(attributes.GetNumberOfArrays()):
        # Arrays of strings are none of our business; VTK answers None for them.
        array = attributes.GetArray(index)
        if array is not None:
            found[array.GetName() or f"array_{index}"] = to_numpy(array)
    return found


def _rows(attributes: Any, rows: int, name: str) -> dict[str, np.ndarray]:
    """Return the arrays as (rows, components); another length is an error."""
    arrays = named_arrays(attributes)
    for key, values in arrays.items():
        if values.shape[0] != rows:
            raise ValueError(
                f"{name}: array {key!r} has {values.shape[0]} rows where {rows} are "
                "needed; the file is damaged or was written wrongly"
            )
    return {key: values.reshape(rows, -1) for key, values in arrays.items()}


def cell_types(grid: Any) -> np.ndarray:
    """Return the VTK code of every cell of an unstructured grid."""
    version = vtk_class("vtkCommonCore", "vtkVersion")
    number = version.GetVTKMajorVersion(), version.GetVTKMinorVersion()
    codes = grid.GetCellTypes() if number >= (9, 6) else grid.GetCellTypesArray()
    return np.zeros(0, np.uint8) if codes is None else to_numpy(codes)


def _stored_points(dataset: Any) -> np.ndarray:
    if dataset.GetNumberOfPoints() == 0:
        return np.zeros((0, 3))
    points = to_numpy(dataset.GetPoints().GetData())
    return points if points.dtype.kind == "f" else points.astype(np.float64)


def mesh_of(grid: Any, name: str) -> Cells:
    """Return nodes and cells of an unstructured grid, checked against each other."""
    types, points = cell_types(grid), _stored_points(grid)
    if types.size == 0:
        return Cells(points, np.zeros(0, np.int64), np.zeros(1, np.int64), types)
    cells = grid.GetCells()
    connectivity = to_numpy(cells.GetConnectivityArray())
    low, high = connectivity.min(initial=0), connectivity.max(initial=0)
    if low < 0 or high >= len(points):
        raise ValueError(
            f"{name}: cells refer to nodes {low} to {high} of {len(points)}; "
            "the file is damaged or in another byte order than it says"
        )
    return Cells(points, connectivity, to_numpy(cells.GetOffsetsArray()), types)


def axes_of(grid: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes of an image, before its rotation, or of a rectilinear grid."""
    if grid.IsA("vtkRectilinearGrid"):
        stored = (getattr(grid, f"Get{axis}Coordinates")() for axis in "XYZ")
        x, y, z = (to_numpy(axis).astype(np.float64) for axis in stored)
    else:
        origin, spacing, extent = grid.GetOrigin(), grid.GetSpacing(), grid.GetExtent()
        x, y, z = (
            origin[i] + spacing[i] * np.arange(extent[2 * i], extent[2 * i + 1] + 1)
            for i in range(3)
        )
    return x, y, z


def is_tensor(dataset: Any) -> bool:
    """Return whether the nodes are the product of three axes along x, y and z."""
    if dataset.IsA("vtkImageData"):
        return bool(dataset.GetDirectionMatrix().IsIdentity())
    return bool(dataset.IsA("vtkRectilinearGrid"))


def dimensions_of(dataset: Any) -> tuple[int, int, int]:
    """Return number of nodes of a structured data set along its three directions."""
    shape = [0, 0, 0]
    dataset.GetDimensions(shape)
    return shape[0], shape[1], shape[2]


def curvilinear_mesh(dataset: Any) -> Cells:
    """Return the cells of a structured data set of any shape."""
    if dataset.IsA("vtkStructuredGrid"):
        points = _stored_points(dataset)
    else:
        points = grid_points(axes_of(dataset))
    if dataset.IsA("vtkImageData"):
        matrix, origin = dataset.GetDirectionMatrix(), np.array(dataset.GetOrigin())
        turn = [[matrix.GetElement(i, j) for j in range(3)] for i in range(3)]
        points = origin + (points - origin) @ np.array(turn).T
    return structured_cells(points, dimensions_of(dataset))
