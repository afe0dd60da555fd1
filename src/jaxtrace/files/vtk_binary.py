"""The older VTK format (.vtk): text headings between big-endian binary blocks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

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
from jaxtrace.files.vtk_write import Arrays, Filename

HEADING = "# vtk DataFile Version 5.1\nparticle tracking\nBINARY\n"

_TYPES = {
    "f4": "float",
    "f8": "double",
    "i1": "signed_char",
    "i2": "short",
    "i4": "int",
    "i8": "vtktypeint64",
    "u1": "unsigned_char",
    "u2": "unsigned_short",
    "u4": "unsigned_int",
    "u8": "vtktypeuint64",
}
Parts = Iterable[str | Column]


def write_binary_polydata(
    path: Filename,
    positions: Any,
    *,
    verts: Cells | None = None,
    lines: Cells | None = None,
    point_data: Arrays = None,
    cell_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write what `vtk_write.write_vtp` writes, as a .vtk file."""
    place = points("Points", positions)
    parts = [(t, c) for t, c in (("VERTICES", verts), ("LINES", lines)) if c]
    count = sum(cells.ends.rows for _, cells in parts)
    return _write(
        path,
        "POLYDATA",
        field_data,
        _points(place),
        *[_cells(tag, cells) for tag, cells in parts],
        _data("POINT_DATA", place.rows, point_data),
        _data("CELL_DATA", count, cell_data),
    )


def write_binary_grid(
    path: Filename,
    positions: Any,
    cells: Cells,
    *,
    point_data: Arrays = None,
    cell_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write what `vtk_write.write_vtu` writes, as a .vtk file."""
    place = points("Points", positions)
    if cells.types is None:
        raise ValueError("the cells of an unstructured grid need their type numbers")
    count = cells.ends.rows
    return _write(
        path,
        "UNSTRUCTURED_GRID",
        field_data,
        _points(place),
        _cells("CELLS", cells),
        [f"CELL_TYPES {count}\n", _as(cells.types, "i4")],
        _data("POINT_DATA", place.rows, point_data),
        _data("CELL_DATA", count, cell_data),
    )


def write_binary_image(
    path: Filename,
    shape: Sequence[int],
    origin: Any,
    spacing: Any,
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write what `vtk_write.write_vti` writes, as a .vtk file."""
    place = f"ORIGIN {numbers(origin)}\nSPACING {numbers(spacing)}\n"
    data = _data("POINT_DATA", int(np.prod(shape)), point_data)
    parts = [_dimensions(shape), place]
    return _write(path, "STRUCTURED_POINTS", field_data, parts, data)


def write_binary_axes(
    path: Filename,
    axes: Sequence[Any],
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write what `vtk_write.write_vtr` writes, as a .vtk file."""
    shape = [len(axis) for axis in axes]
    parts: list[str | Column] = [_dimensions(shape)]
    for name, axis in zip("XYZ", axes, strict=True):
        span = column(name, axis)
        parts += [f"{name}_COORDINATES {span.rows} {_type(span)}\n", span]
    data = _data("POINT_DATA", int(np.prod(shape)), point_data)
    return _write(path, "RECTILINEAR_GRID", field_data, parts, data)


def write_binary_curved(
    path: Filename,
    shape: Sequence[int],
    positions: Any,
    *,
    point_data: Arrays = None,
    field_data: Arrays = None,
) -> Path:
    """Write what `vtk_write.write_vts` writes, as a .vtk file."""
    place = points("Points", positions)
    parts = [_dimensions(shape), *_points(place)]
    data = _data("POINT_DATA", place.rows, point_data)
    return _write(path, "STRUCTURED_GRID", field_data, parts, data)


def _write(path: Filename, kind: str, field_data: Arrays, *parts: Parts) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    head = [f"{HEADING}DATASET {kind}\n"]
    with atomic_write(path) as file:
        for part in chain(head, _field(field_data), *parts):
            if isinstance(part, str):
                file.write(part.encode("ascii"))
                continue
            for block in part.stream(">"):
                file.write(block)
            file.write(b"\n")
    return path


def _points(place: Column) -> list[str | Column]:
    return [f"POINTS {place.rows} {_type(place)}\n", place]


def _cells(tag: str, cells: Cells) -> list[str | Column]:
    return [
        f"{tag} {cells.ends.rows + 1} {cells.connectivity.rows}\n",
        "OFFSETS vtktypeint64\n",
        _as(cells.ends, "i8", lead=[0]),
        "CONNECTIVITY vtktypeint64\n",
        _as(cells.connectivity, "i8"),
    ]


def _as(source: Column, dtype: str, lead: Sequence[int] = ()) -> Column:
    def blocks() -> Iterator[np.ndarray]:
        yield np.array(lead, dtype)
        yield from source.blocks()

    rows = len(lead) + source.rows
    return Column(source.name, np.dtype(dtype), rows, source.components, blocks)


def _field(arrays: Arrays) -> Iterator[str | Column]:
    if arrays:
        yield from _arrays(whole_columns(arrays))


def _data(tag: str, rows: int, arrays: Arrays) -> Iterator[str | Column]:
    members = columns(arrays, rows)
    if members:
        yield f"{tag} {rows}\n"
        yield from _arrays(members)


def _arrays(members: Sequence[Column]) -> Iterator[str | Column]:
    yield f"FIELD FieldData {len(members)}\n"
    for member in members:
        size = f"{member.components} {member.rows}"
        # A name is one word there; VTK decodes the percent signs again.
        yield f"{quote(member.name, safe='')} {size} {_type(member)}\n"
        yield member


def _type(member: Column) -> str:
    return _TYPES[member.dtype.str[1:]]


def _dimensions(shape: Sequence[int]) -> str:
    return f"DIMENSIONS {' '.join(map(str, shape))}\n"
