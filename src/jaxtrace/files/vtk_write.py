"""VTK XML files (.vtp, .vtu, .vti, .vtr, .vts): raw appended bytes, written whole.

A file is streamed to a temporary and renamed, so there is never a half of one. No VTK
is needed to write.
"""

import io
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from jaxrig.atomic import atomic_write
from jaxtrace.files.columns import (
    Cells,
    Column,
    column,
    columns,
    numbers,
    points,
    whole_columns,
)

Filename = str | os.PathLike[str]
Arrays = Mapping[str, Any] | None

_TYPES = {"f": "Float", "i": "Int", "u": "UInt"}
_NUMBER_OF = {"Verts": "NumberOfVerts", "Lines": "NumberOfLines"}


@dataclass
class _Document:
    """The XML text so far and the columns whose bytes will follow it."""

    lines: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    offset: int = 0

    @contextmanager
    def element(self, tag: str, **attributes: object) -> Iterator[None]:
        self.lines.append(f"<{tag}{_attributes(attributes)}>")
        yield
        self.lines.append(f"</{tag}>")

    def array(self, column: Column, **attributes: object) -> None:
        described = {
            "type": f"{_TYPES[column.dtype.kind]}{8 * column.dtype.itemsize}",
            "Name": column.name,
            "NumberOfComponents": column.components,
            **attributes,
            "format": "appended",
            "offset": self.offset,
        }
        self.lines.append(f"<DataArray{_attributes(described)}/>")
        self.columns.append(column)
        self.offset += 8 + column.nbytes

    def section(self, tag: str, members: Sequence[Column]) -> None:
        with self.element(tag):
            for member in members:
                self.array(member)

    def field(self, arrays: Arrays) -> None:
        if not arrays:
            return
        with self.element("FieldData"):
            for whole in whole_columns(arrays):
                self.array(whole, NumberOfTuples=whole.rows)

    def write(self, file: io.BufferedIOBase) -> None:
        file.write("\n".join(self.lines).encode())
        file.write(b'\n<AppendedData encoding="raw">\n_')
        for member in self.columns:
            file.write(struct.pack("<Q", member.nbytes))
            for part in member.stream("<"):
                file.write(part)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


def _attributes(attributes: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(str(v))}" for name, v in attributes.items())


def write_vtp(
    path: Filename,
    positions: Any,
    *,
    verts: Cells | None = None,
    lines: Cells | None = None,
    point_data: Arrays = None,
    cell_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write points, vertices and polylines; cell rows: the vertices, then the lines."""
    place = points("Points", positions)
    parts = {tag: c for tag, c in (("Verts", verts), ("Lines", lines)) if c is not None}
    sizes = {_NUMBER_OF[tag]: cells.ends.rows for tag, cells in parts.items()}
    document = _Document()
    with (
        document.element("PolyData"),
        _piece(document, field_data, NumberOfPoints=place.rows, **sizes),
    ):
        document.section("Points", [place])
        for tag, cells in parts.items():
            document.section(tag, [cells.connectivity, cells.ends])
        _attach(document, place.rows, point_data, sum(sizes.values()), cell_data)
    return _finish(document, path, "PolyData")


def write_vtu(
    path: Filename,
    positions: Any,
    cells: Cells,
    *,
    point_data: Arrays = None,
    cell_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write an unstructured grid; the cells carry their VTK type numbers."""
    if cells.types is None:
        raise ValueError("the cells of an unstructured grid need their type numbers")
    place, count = points("Points", positions), cells.ends.rows
    document = _Document()
    sizes = {"NumberOfPoints": place.rows, "NumberOfCells": count}
    with (
        document.element("UnstructuredGrid"),
        _piece(document, field_data, **sizes),
    ):
        document.section("Points", [place])
        document.section("Cells", [cells.connectivity, cells.ends, cells.types])
        _attach(document, place.rows, point_data, count, cell_data)
    return _finish(document, path, "UnstructuredGrid")


def write_vti(
    path: Filename,
    shape: Sequence[int],
    origin: Any,
    spacing: Any,
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write an even grid of `shape` nodes; the rows of the data run x fastest."""
    placed = {"Origin": numbers(origin), "Spacing": numbers(spacing)}
    document = _Document()
    with _grid(document, "ImageData", shape, point_data, field_data, **placed):
        pass
    return _finish(document, path, "ImageData")


def write_vtr(
    path: Filename,
    axes: Sequence[Any],
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write a grid spanned by three axes; the rows of the data run x fastest."""
    shape = [len(axis) for axis in axes]
    document = _Document()
    with _grid(document, "RectilinearGrid", shape, point_data, field_data):
        spans = zip("xyz", axes, strict=True)
        document.section("Coordinates", [column(name, axis) for name, axis in spans])
    return _finish(document, path, "RectilinearGrid")


def write_vts(
    path: Filename,
    shape: Sequence[int],
    positions: Any,
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write a curved grid of `shape` nodes; positions and data run x fastest."""
    document = _Document()
    place = points("Points", positions)
    with _grid(document, "StructuredGrid", shape, point_data, field_data):
        document.section("Points", [place])
    return _finish(document, path, "StructuredGrid")


@contextmanager
def _piece(
    document: _Document, field_data: Arrays, **attributes: object
) -> Iterator[None]:
    document.field(field_data)
    with document.element("Piece", **attributes):
        yield


@contextmanager
def _grid(
    document: _Document,
    kind: str,
    shape: Sequence[int],
    point_data: Arrays,
    field_data: Arrays,
    **attributes: object,
) -> Iterator[None]:
    extent = " ".join(f"0 {n - 1}" for n in shape)
    with (
        document.element(kind, WholeExtent=extent, **attributes),
        _piece(document, field_data, Extent=extent),
    ):
        yield
        _attach(document, int(np.prod(shape)), point_data, 0, None)


def _attach(
    document: _Document, nodes: int, point_data: Arrays, count: int, cell_data: Arrays
) -> None:
    document.section("PointData", columns(point_data, nodes))
    document.section("CellData", columns(cell_data, count))


def _finish(document: _Document, path: Filename, kind: str) -> Path:
    head = {"type": kind, "version": "1.0", "byte_order": "LittleEndian"}
    head["header_type"] = "UInt64"
    document.lines[:0] = ['<?xml version="1.0"?>', f"<VTKFile{_attributes(head)}>"]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        document.write(file)
    return path
