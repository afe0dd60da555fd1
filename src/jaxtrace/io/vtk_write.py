"""VTK XML files (.vtp, .vtu, .vti, .vtr) and .pvd collections, without VTK.

Arrays are columns that are taken block by block, never whole, and written as raw
appended bytes to a temporary that is renamed: there is never half a file.
"""

import io
import math
import os
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from jaxrig.atomic import atomic_write

BLOCK = 8 * 2**20  # bytes per block: large enough to stream, small beside the data

KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
Blocks = Callable[[], Iterable[np.ndarray]]


@dataclass(frozen=True)
class Column:
    """One array of a file: `rows` tuples of `components`, made by `blocks` on demand.

    The blocks, one after the other, are the rows in order.
    """

    name: str
    dtype: np.dtype
    rows: int
    components: int
    blocks: Blocks

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.components * self.dtype.itemsize

    def stream(self) -> Iterator[memoryview]:
        """Yield the bytes, little-endian; ValueError if blocks have another size."""
        dtype, left = self.dtype.newbyteorder("<"), self.nbytes
        for block in self.blocks():
            data = np.ascontiguousarray(block, dtype)
            left -= data.nbytes
            if data.nbytes:
                yield data.reshape(-1).view(np.uint8).data
        if left:
            raise ValueError(f"{self.name!r} has {-left:+} bytes beyond its size")


@dataclass(frozen=True)
class CellColumns:
    """Cells as VTK has them: node numbers, the end of each cell, its type numbers."""

    connectivity: Column
    ends: Column
    types: Column | None = None


def as_kind(dtype: Any, name: str) -> np.dtype:
    """Return the stored dtype of an array: a bool is a byte; TypeError if none fits."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.dtype("u1")
    if dtype.str[1:] not in KINDS:
        raise TypeError(
            f"{name!r} has dtype {dtype}, which these files cannot hold: convert it "
            f"to float32, float64 or an integer type"
        )
    return dtype.newbyteorder("=")


def column(name: str, values: Any, rows: int | None = None) -> Column:
    """Return a column of an array (rows) or (rows, components...), checked against
    `rows`.
    """
    array = np.asarray(values)
    if array.ndim == 0 or (rows is not None and len(array) != rows):
        due = "an array" if rows is None else f"{rows} rows"
        raise ValueError(f"{name!r} has shape {array.shape}, it needs {due}")
    dtype = as_kind(array.dtype, name)
    components = math.prod(array.shape[1:])

    def blocks() -> Iterator[np.ndarray]:
        step = rows_per_block(components * dtype.itemsize)
        for begin in range(0, len(array), step):
            yield array[begin : begin + step]

    return Column(name, dtype, len(array), components, blocks)


def columns(arrays: Mapping[str, Any] | None, rows: int) -> list[Column]:
    """Return columns of named arrays; those that already are columns pass."""
    made = []
    for name, values in (arrays or {}).items():
        made.append(
            values if isinstance(values, Column) else column(name, values, rows)
        )
        if made[-1].rows != rows:
            raise ValueError(f"{name!r} has {made[-1].rows} rows, it needs {rows}")
    return made


def numbers(values: Any) -> str:
    """Return numbers as text that reads back as the same ones."""
    return " ".join(repr(float(value)) for value in values)


def points(name: str, positions: Any) -> Column:
    """Return a column of positions (N,3) in floating point; (N,2) gets z = 0.

    One that already is a column passes as it is.
    """
    if isinstance(positions, Column):
        return positions
    return column(name, as_points(positions, name))


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


def integers(name: str, count: int, top: int, start: int = 0, step: int = 1) -> Column:
    """Return the column start, start+step, ... of `count` numbers, none greater than
    `top`.
    """
    dtype = index_kind(top)

    def blocks() -> Iterator[np.ndarray]:
        rows = rows_per_block(dtype.itemsize)
        for begin in range(0, count, rows):
            end = min(begin + rows, count)
            yield start + step * np.arange(begin, end, dtype=dtype)

    return Column(name, dtype, count, 1, blocks)


def index_kind(top: int) -> np.dtype:
    """Return the smaller of int32 and int64 that holds `top`."""
    return np.dtype("i4" if top < 2**31 else "i8")


def rows_per_block(nbytes: int) -> int:
    """Return how many rows of `nbytes` bytes make one block."""
    return max(1, BLOCK // max(1, nbytes))


def vertices(count: int) -> CellColumns:
    """Return one vertex cell per point."""
    types = Column(
        "types", np.dtype("u1"), count, 1, lambda: iter([np.ones(count, np.uint8)])
    )
    return CellColumns(
        integers("connectivity", count, count),
        integers("offsets", count, count, start=1),
        types,
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
    def element(self, tag: str, **attributes: object) -> Generator[None, None, None]:
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
            for name, values in arrays.items():
                whole = column(name, np.atleast_1d(np.asarray(values)))
                self.array(whole, NumberOfTuples=whole.rows)

    def write(self, file: io.BufferedIOBase) -> None:
        file.write("\n".join(self.lines).encode())
        file.write(b'\n<AppendedData encoding="raw">\n_')
        for member in self.columns:
            file.write(struct.pack("<Q", member.nbytes))
            for part in member.stream():
                file.write(part)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


def _attributes(attributes: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(str(v))}" for name, v in attributes.items())


def write_vtp(
    path: Filename,
    positions: Any,
    *,
    verts: CellColumns | None = None,
    lines: CellColumns | None = None,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write points, vertices and polylines."""
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
        document.section("PointData", columns(point_data, place.rows))
    return _finish(document, path, "PolyData")


def write_vtu(
    path: Filename,
    positions: Any,
    cells: CellColumns,
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write an unstructured grid; the cells carry their VTK type numbers."""
    if cells.types is None:
        raise ValueError("the cells of an unstructured grid need their type numbers")
    place = points("Points", positions)
    document = _Document()
    sizes = {"NumberOfPoints": place.rows, "NumberOfCells": cells.ends.rows}
    with (
        document.element("UnstructuredGrid"),
        _piece(document, field_data, **sizes),
    ):
        document.section("Points", [place])
        document.section("Cells", [cells.connectivity, cells.ends, cells.types])
        document.section("PointData", columns(point_data, place.rows))
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


@contextmanager
def _piece(
    document: _Document, field_data: Arrays, **attributes: object
) -> Generator[None, None, None]:
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
) -> Generator[None, None, None]:
    extent = " ".join(f"0 {n - 1}" for n in shape)
    with (
        document.element(kind, WholeExtent=extent, **attributes),
        _piece(document, field_data, Extent=extent),
    ):
        yield
        document.section("PointData", columns(point_data, int(np.prod(shape))))


def _finish(document: _Document, path: Filename, kind: str) -> Path:
    head = {"type": kind, "version": "1.0", "byte_order": "LittleEndian"}
    head["header_type"] = "UInt64"
    document.lines[:0] = ['<?xml version="1.0"?>', f"<VTKFile{_attributes(head)}>"]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        document.write(file)
    return path


_HEAD = (
    '<?xml version="1.0"?>\n'
    '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n'
    "<Collection>\n"
)
_TAIL = "</Collection>\n</VTKFile>\n"


def write_collection(path: Filename, steps: Iterable[tuple[float, str]]) -> Path:
    """Write a .pvd of (time, file) steps; files are named relative to its folder."""
    lines = [
        f'<DataSet timestep="{float(time)!r}" part="0" '
        f"file={quoteattr(Path(name).as_posix())}/>\n"
        for time, name in steps
    ]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write("".join([_HEAD, *lines, _TAIL]).encode())
    return path
