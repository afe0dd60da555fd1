"""VTK XML files (.vtp, .vtu, .vti, .vtr) and .pvd collections, without VTK.

Arrays are written block by block, never copied whole, as raw appended bytes to a
temporary file that is renamed: there is never half a file.
"""

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from jaxrig.atomic import atomic_write

BLOCK = 8 * 2**20  # bytes per block: large enough to stream, small beside the data
KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")

Filename = str | os.PathLike[str]
Arrays = Mapping[str, Any]

_TYPES = {"f": "Float", "i": "Int", "u": "UInt"}


class CellArrays(NamedTuple):
    """Cells as VTK has them: node numbers, the end of each cell, its type numbers."""

    connectivity: Any
    offsets: Any
    types: Any = None


class _Array(NamedTuple):
    """An array of a file: `rows` tuples of `components`, of the marked rows if any."""

    name: str
    values: np.ndarray
    shown: np.ndarray | None
    rows: int
    components: int

    @property
    def nbytes(self) -> int:
        return self.rows * self.components * self.values.dtype.itemsize

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the rows in order, contiguous and little-endian."""
        step = max(1, BLOCK // max(1, self.values[:1].nbytes))
        for begin in range(0, len(self.values), step):
            block = self.values[begin : begin + step]
            if self.shown is not None:
                marks = self.shown[begin : begin + step]
                block = block if marks.all() else block[marks]
            yield np.ascontiguousarray(block, block.dtype.newbyteorder("<"))


def _array(name: str, values: Any, shown: np.ndarray | None = None) -> _Array:
    """Return an array (rows, components...), or (..., components...) where it is shown.

    A bool is stored as a byte; a TypeError says which types cannot be stored.
    """
    values = np.asarray(values)
    lead = 1 if shown is None else shown.ndim
    if values.ndim < lead or (shown is not None and values.shape[:lead] != shown.shape):
        due = "an array" if shown is None else f"{shown.shape}"
        raise ValueError(f"{name!r} has shape {values.shape}, it needs {due}")
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    if values.dtype.str[1:] not in KINDS:
        raise TypeError(
            f"{name!r} has dtype {values.dtype}, which these files cannot hold: "
            "convert it to float32, float64 or an integer type"
        )
    rows = len(values) if shown is None else int(np.count_nonzero(shown))
    return _Array(name, values, shown, rows, int(np.prod(values.shape[lead:])))


def as_points(positions: Any, name: str = "positions") -> np.ndarray:
    """Return an array (..., 3) of floats; two columns get a third of zeros."""
    array = np.asarray(positions)
    if array.ndim == 0 or array.shape[-1] not in (2, 3):
        raise ValueError(f"{name} has shape {array.shape}, it needs (..., 3)")
    if array.dtype.type not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    if array.shape[-1] == 2:
        array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)])
    return array


def index_kind(top: int) -> np.dtype:
    """Return the smaller of int32 and int64 that holds `top`."""
    return np.dtype("i4" if top < 2**31 else "i8")


def vertices(count: int) -> CellArrays:
    """Return one vertex cell per point."""
    kind = index_kind(count)
    nodes = np.arange(count, dtype=kind)
    return CellArrays(nodes, nodes + kind.type(1), np.ones(count, np.uint8))


def write_vtp(
    path: Filename,
    positions: Any,
    *,
    verts: CellArrays | None = None,
    lines: CellArrays | None = None,
    point_data: Arrays | None = None,
    shown: np.ndarray | None = None,
) -> Path:
    """Write points, vertices and polylines.

    With marks `shown` (...), positions are (..., 3) and `point_data` (..., C), and the
    marked points are written.
    """
    points = _array("Points", as_points(positions), shown)
    size, sections = {"NumberOfPoints": points.rows}, {"Points": [points]}
    for tag, cells in (("Verts", verts), ("Lines", lines)):
        if cells is not None:
            size[f"NumberOf{tag}"] = len(cells.offsets)
            sections[tag] = _cell_arrays(cells)
    sections["PointData"] = _point_data(point_data, points.rows, shown)
    return _write(path, "PolyData", {}, size, sections, None)


def write_vtu(
    path: Filename,
    positions: Any,
    cells: CellArrays,
    *,
    point_data: Arrays | None = None,
    field_data: Arrays | None = None,
) -> Path:
    """Write an unstructured grid; the cells carry their VTK type numbers."""
    if cells.types is None:
        raise ValueError("the cells of an unstructured grid need their type numbers")
    points = _array("Points", as_points(positions))
    size = {"NumberOfPoints": points.rows, "NumberOfCells": len(cells.offsets)}
    sections = {
        "Points": [points],
        "Cells": _cell_arrays(cells),
        "PointData": _point_data(point_data, points.rows),
    }
    return _write(path, "UnstructuredGrid", {}, size, sections, field_data)


def write_nodes(
    path: Filename,
    axes: Sequence[Any],
    spacing: Sequence[float] | None = None,
    *,
    point_data: Arrays | None = None,
    field_data: Arrays | None = None,
) -> Path:
    """Write a grid spanned by three axes, or the even one of a spacing.

    The rows of the data run x fastest.
    """
    shape = [len(axis) for axis in axes]
    extent = " ".join(f"0 {n - 1}" for n in shape)
    whole, piece = {"WholeExtent": extent}, {"Extent": extent}
    sections = {"PointData": _point_data(point_data, int(np.prod(shape)))}
    if spacing is None:
        columns = [_array(name, a) for name, a in zip("xyz", axes, strict=True)]
        sections = {"Coordinates": columns, **sections}
        return _write(path, "RectilinearGrid", whole, piece, sections, field_data)
    numbers = lambda values: " ".join(repr(float(value)) for value in values)
    whole |= {"Origin": numbers(a[0] for a in axes), "Spacing": numbers(spacing)}
    return _write(path, "ImageData", whole, piece, sections, field_data)


def _cell_arrays(cells: CellArrays) -> list[_Array]:
    given = {k: v for k, v in cells._asdict().items() if v is not None}
    return [_array(name, values) for name, values in given.items()]


def _point_data(
    arrays: Arrays | None, rows: int, shown: np.ndarray | None = None
) -> list[_Array]:
    made = [_array(name, values, shown) for name, values in (arrays or {}).items()]
    for one in made:
        if one.rows != rows:
            shape = one.values.shape
            raise ValueError(f"{one.name!r} has shape {shape}, it needs {rows} rows")
    return made


def _write(
    path: Filename,
    kind: str,
    whole: Mapping[str, object],
    piece: Mapping[str, object],
    sections: Mapping[str, Sequence[_Array]],
    field_data: Arrays | None,
) -> Path:
    """Write a file of one piece; the arrays follow the XML in its order."""
    stored: list[_Array] = []

    def element(array: _Array, **more: object) -> str:
        described = {
            "type": f"{_TYPES[array.values.dtype.kind]}{8 * array.values.itemsize}",
            "Name": array.name,
            "NumberOfComponents": array.components,
            **more,
            "format": "appended",
            "offset": sum(8 + one.nbytes for one in stored),
        }
        stored.append(array)
        return f"<DataArray{_attributes(described)}/>"

    head = {"type": kind, "version": "1.0", "byte_order": "LittleEndian"}
    head["header_type"] = "UInt64"
    lines = ['<?xml version="1.0"?>', f"<VTKFile{_attributes(head)}>"]
    lines.append(f"<{kind}{_attributes(whole)}>")
    if field_data:
        facts = [_array(name, np.atleast_1d(v)) for name, v in field_data.items()]
        rows = (element(fact, NumberOfTuples=fact.rows) for fact in facts)
        lines += ["<FieldData>", *rows, "</FieldData>"]
    lines.append(f"<Piece{_attributes(piece)}>")
    for tag, arrays in sections.items():
        lines += [f"<{tag}>", *map(element, arrays), f"</{tag}>"]
    lines += ["</Piece>", f"</{kind}>", '<AppendedData encoding="raw">', "_"]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write("\n".join(lines).encode())
        for array in stored:
            file.write(struct.pack("<Q", array.nbytes))
            for block in array.blocks():
                file.write(block.data)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")
    return path


def _attributes(attributes: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(str(v))}" for name, v in attributes.items())


def write_collection(path: Filename, steps: Iterable[tuple[float, str]]) -> Path:
    """Write a .pvd of (time, file) steps; files are named relative to its folder."""
    head = {"type": "Collection", "version": "0.1", "byte_order": "LittleEndian"}
    lines = ['<?xml version="1.0"?>', f"<VTKFile{_attributes(head)}>", "<Collection>"]
    for time, name in steps:
        entry = {"timestep": repr(float(time)), "part": 0}
        entry["file"] = Path(name).as_posix()
        lines.append(f"<DataSet{_attributes(entry)}/>")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write("\n".join([*lines, "</Collection>", "</VTKFile>", ""]).encode())
    return path
