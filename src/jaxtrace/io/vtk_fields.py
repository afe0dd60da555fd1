"""Fields to VTK files: values on grids, on the nodes of a mesh, or at points."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.io.vtk_export import with_suffix
from jaxtrace.io.vtk_write import (
    CellColumns,
    as_points,
    column,
    integers,
    vertices,
    write_vti,
    write_vtr,
    write_vts,
    write_vtu,
)

Filename = str | os.PathLike[str]

# Nodes of a cell -> VTK type number: vertex, line, triangle, tetra, pyramid, wedge,
# hexahedron, quadratic tetra.
CELL_TYPES = {1: 1, 2: 3, 3: 5, 4: 10, 5: 14, 6: 13, 8: 12, 10: 24}


def write_grid(
    path: Filename,
    coordinates: Sequence[Any],
    values: Any,
    name: str = "velocity",
    time: float | None = None,
) -> Path:
    """Write values on a grid and return the file.

    `coordinates` are two or three axes, or as many arrays of a mesh grid in any order
    of its axes; `values` are (Nx, Ny[, Nz]) or (Nx, Ny[, Nz], C). The suffix .vti, .vtr
    or .vts asks for one kind of grid; another name gets the plainest kind, and its
    suffix, that holds the grid exactly to rounding.
    """
    mesh = [np.asarray(array) for array in coordinates]
    if all(array.ndim == 1 for array in mesh):
        mesh = list(np.meshgrid(*mesh, indexing="ij"))
    data = np.asarray(values)
    if len(mesh) == 2:
        mesh = [array[..., np.newaxis] for array in (*mesh, np.zeros_like(mesh[0]))]
        data = data[:, :, np.newaxis]
    shapes = {array.shape for array in mesh} | {data.shape[:3]}
    if len(shapes) != 1 or mesh[0].ndim != 3:
        raise ValueError(f"coordinates and {name!r} have the shapes {sorted(shapes)}")
    order = _order(mesh)
    kinds = [".vts"] if order is None else [".vtr", ".vts"]
    order = order or (0, 1, 2)
    mesh = [array.transpose(order) for array in mesh]
    data = data.transpose(*order, *range(3, data.ndim))
    axes = [np.moveaxis(array, i, 0)[:, 0, 0] for i, array in enumerate(mesh)]
    if ".vtr" in kinds and all(_is_even(axis) for axis in axes):
        kinds = [".vti", *kinds]
    suffix = Path(path).suffix.lower()
    suffix = suffix if suffix in (".vti", ".vtr", ".vts") else kinds[0]
    if suffix not in kinds:
        raise ValueError(
            f"a {suffix} file cannot hold this grid, its lines are not straight and "
            f"evenly spaced enough: use {' or '.join(kinds)}"
        )
    path, shape = with_suffix(path, suffix), data.shape[:3]
    described = _described(name, _x_fastest(data), time)
    if suffix == ".vtr":
        return write_vtr(path, axes, **described)
    if suffix == ".vts":
        return write_vts(path, shape, _x_fastest(np.stack(mesh, axis=-1)), **described)
    origin = [float(axis[0]) for axis in axes]
    return write_vti(path, shape, origin, [_spacing(a) for a in axes], **described)


def write_points(
    path: Filename,
    positions: Any,
    values: Any,
    name: str = "velocity",
    cells: Any = None,
    time: float | None = None,
) -> Path:
    """Write values (N,) or (N, C) at positions as a .vtu file and return it.

    Rows of `cells` are node numbers: 3 of a triangle, 4 of a tetrahedron, 8 of a
    hexahedron, and so on; without them every point is a vertex.
    """
    place, data = as_points(positions), np.asarray(values)
    if data.shape[:1] != place.shape[:1] or data.ndim not in (1, 2):
        raise ValueError(
            f"{name!r} has shape {data.shape}, {len(place)} positions need (N,) or "
            "(N, C): write one file per instant, and write_collection for their times"
        )
    shapes = vertices(len(place)) if cells is None else _cells(cells, len(place))
    return write_vtu(
        with_suffix(path, ".vtu"), place, shapes, **_described(name, data, time)
    )


def _described(
    name: str, values: np.ndarray, time: float | None
) -> dict[str, dict[str, Any]]:
    facts = {} if time is None else {"TimeValue": np.float64(time)}
    return {"point_data": {name: values}, "field_data": facts}


def _x_fastest(values: np.ndarray) -> np.ndarray:
    """Return values (Nx, Ny, Nz, ...) as rows in VTK's order."""
    rest = values.shape[3:]
    return values.transpose(2, 1, 0, *range(3, values.ndim)).reshape(-1, *rest)


def _cells(connectivity: Any, nodes: int) -> CellColumns:
    array = np.asarray(connectivity)
    if array.ndim != 2 or array.shape[1] not in CELL_TYPES:
        raise ValueError(
            f"cells have shape {array.shape}: give one row per cell of "
            f"{', '.join(map(str, CELL_TYPES))} nodes"
        )
    if array.size and not 0 <= array.min() <= array.max() < nodes:
        raise ValueError(
            f"cells name node {array.max()}, there are {nodes}: nodes are numbered "
            "from 0"
        )
    count, size = array.shape
    return CellColumns(
        column("connectivity", array.reshape(-1)),
        integers("offsets", count, count * size, start=size, step=size),
        column("types", np.full(count, CELL_TYPES[size], np.uint8)),
    )


def _order(mesh: Sequence[np.ndarray]) -> tuple[int, ...] | None:
    """Return which array axis is x, y and z; None if coordinates follow no one axis."""
    order: list[int | None] = []
    for array in mesh:
        moving = [i for i in range(3) if _varies(array, i)]
        if len(moving) > 1:
            return None
        order.append(moving[0] if moving else None)
    used = [i for i in order if i is not None]
    if len(set(used)) < len(used):
        return None
    # An axis of one node does not vary; the flat axes left over go to it in order.
    free = [i for i in range(3) if i not in used]
    return tuple(free.pop(0) if i is None else i for i in order)


def _varies(array: np.ndarray, axis: int) -> bool:
    first = np.take(array, [0], axis)
    return bool(array.shape[axis] > 1 and np.any(array != first))


def _spacing(axis: np.ndarray) -> float:
    if len(axis) < 2:
        return 1.0
    return (float(axis[-1]) - float(axis[0])) / (len(axis) - 1)


def _is_even(axis: np.ndarray) -> bool:
    if len(axis) < 2:
        return True
    exact = np.linspace(float(axis[0]), float(axis[-1]), len(axis))
    rounding = 4 * np.finfo(np.result_type(axis, np.float32)).eps * np.abs(exact).max()
    return bool(_spacing(axis) > 0 and np.all(np.abs(axis - exact) <= rounding))
