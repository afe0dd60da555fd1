"""`VTKFieldWriter`: fields on grids, meshes and points to VTK files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxtrace.files.collection import write_collection
from jaxtrace.files.columns import Cells, as_points, column, integers, vertices
from jaxtrace.files.formats import choose_format
from jaxtrace.files.lattice import flatten, lattice

Filename = str | os.PathLike[str]

# Nodes of a cell -> VTK type number: vertex, line, triangle, tetra, pyramid, wedge,
# hexahedron, quadratic tetra.
CELL_TYPES = {1: 1, 2: 3, 3: 5, 4: 10, 5: 14, 6: 13, 8: 12, 10: 24}


class VTKFieldWriter:
    """Writes fields; every method returns the file it wrote.

    File names are relative to `output_dir` where one is given.
    """

    def __init__(self, output_dir: Filename = "") -> None:
        self.output_dir = Path(output_dir)

    def write_structured_2d(
        self,
        X: Any,
        Y: Any,
        field_data: Any,
        filename: Filename,
        field_name: str = "field",
        format: str = "xml",
    ) -> Path:
        """Write values on a planar mesh grid, in either order of its two axes."""
        X, Y, values = (np.asarray(array) for array in (X, Y, field_data))
        deep = [array[..., np.newaxis] for array in (X, Y, np.zeros_like(X))]
        if values.shape[:2] != X.shape:
            raise ValueError(f"{field_name!r} is {values.shape} on a grid {X.shape}")
        values = values[:, :, np.newaxis]
        return self._write_lattice(deep, values, filename, field_name, format)

    def write_structured_3d(
        self,
        X: Any,
        Y: Any,
        Z: Any,
        field_data: Any,
        filename: Filename,
        field_name: str = "field",
        format: str = "xml",
    ) -> Path:
        """Write values on a mesh grid, in any order of its three axes."""
        mesh = [np.asarray(array) for array in (X, Y, Z)]
        values = np.asarray(field_data)
        return self._write_lattice(mesh, values, filename, field_name, format)

    def _write_lattice(
        self,
        mesh: list[np.ndarray],
        values: np.ndarray,
        filename: Filename,
        field_name: str,
        format: str,
    ) -> Path:
        grid = lattice(mesh, values, Path(filename).suffix.lower())
        kind = choose_format(format, grid.kind)
        data = {field_name: flatten(grid.values)}
        path = kind.name(self.output_dir / filename)
        return kind.write(path, *grid.arguments, point_data=data)

    def write_structured_field(
        self,
        grid_data: Any,
        origin: Any,
        spacing: Any,
        filename: Filename = "structured_field.vti",
        field_name: str = "velocity",
        time_value: float | None = None,
    ) -> Path:
        """Write values (Nx,Ny,Nz,C) of an even grid; three components add a magnitude.

        The array `<field_name>_magnitude` is that addition.
        """
        values = np.asarray(grid_data)
        if values.ndim != 4:
            raise ValueError(f"grid_data has shape {values.shape}, it needs (x,y,z,C)")
        kind = choose_format("xml", "image")
        flat = flatten(values)
        return kind.write(
            kind.name(self.output_dir / filename),
            values.shape[:3],
            origin,
            spacing,
            **_described(field_name, flat, time_value),
        )

    def write_unstructured_field(
        self,
        positions: Any,
        field_data: Any = None,
        filename: Filename = "velocity_field.vtu",
        field_name: str | Mapping[str, Any] | None = None,
        format: str = "xml",
        *,
        velocity_data: Any = None,
        scalar_data: Mapping[str, Any] | None = None,
        time_value: float | None = None,
        cell_connectivity: Any = None,
    ) -> Path:
        """Write values (N,) or (N,C) at positions, on cells or as vertices.

        Three components are called "velocity" unless named, and add
        `<field_name>_magnitude`. Rows of `cell_connectivity` with 3, 4 or 8 nodes are
        triangles, tetrahedra or hexahedra. A mapping in the place of `field_name` is
        taken as `scalar_data`.
        """
        if isinstance(field_name, Mapping):
            field_name, scalar_data = None, field_name
        values = np.asarray(velocity_data if field_data is None else field_data)
        place = as_points(positions)
        if values.shape[:1] != place.shape[:1] or values.ndim not in (1, 2):
            raise ValueError(
                f"the field has shape {values.shape}, {len(place)} positions need "
                f"(N,) or (N,C): write a series with write_time_series_collection"
            )
        kind = choose_format(format, "grid")
        name = field_name or ("velocity" if values.shape[1:] == (3,) else "field")
        described = _described(name, values, time_value)
        described["point_data"] |= scalar_data or {}
        cells = _cells(cell_connectivity, len(place))
        path = kind.name(self.output_dir / filename)
        return kind.write(path, place, cells, **described)

    def write_time_series_collection(
        self,
        time_series_data: Mapping[str, Any],
        collection_name: str = "velocity_time_series",
        max_time_steps: int | None = None,
        field_name: str = "velocity",
    ) -> Path:
        """Write `velocity_data` (T,N,3) at `positions` (N,3) and `times` (T,).

        One .vtu per step and a .pvd, which is returned; `connectivity` (M,nodes) in
        the data gives the cells. Of more than `max_time_steps` steps, evenly spaced
        ones are taken, the first and the last included.
        """
        data = time_series_data
        times = np.asarray(data["times"])
        last = len(times) - 1
        chosen = np.arange(last + 1)
        if max_time_steps is not None and max_time_steps <= last:
            chosen = np.linspace(0, last, max_time_steps).round().astype(int)
        steps = []
        for step, index in enumerate(chosen.tolist()):
            path = self.write_unstructured_field(
                data["positions"],
                data["velocity_data"][index],
                f"{collection_name}_{step:04d}.vtu",
                field_name,
                time_value=float(times[index]),
                cell_connectivity=data.get("connectivity"),
            )
            steps.append((float(times[index]), path.name))
        return write_collection(self.output_dir / f"{collection_name}.pvd", steps)


def _described(
    name: str, values: np.ndarray, time: float | None
) -> dict[str, dict[str, Any]]:
    data: dict[str, Any] = {name: values}
    if values.shape[1:] == (3,):
        data[f"{name}_magnitude"] = np.linalg.norm(values, axis=1)
    if time is None:
        return {"point_data": data}
    data["Time"] = np.full(len(values), time)
    return {"point_data": data, "field_data": {"TimeValue": np.float64(time)}}


def _cells(connectivity: Any, nodes: int) -> Cells:
    if connectivity is None:
        return vertices(nodes)
    array = np.asarray(connectivity)
    if array.ndim != 2 or array.shape[1] not in CELL_TYPES:
        raise ValueError(
            f"cell_connectivity has shape {array.shape}: it needs one row per cell of "
            f"{', '.join(map(str, CELL_TYPES))} nodes"
        )
    if array.size and not 0 <= array.min() <= array.max() < nodes:
        raise ValueError(
            f"cell_connectivity names node {array.max()}, there are {nodes}: "
            f"nodes are numbered from 0"
        )
    count, size = array.shape
    return Cells(
        column("connectivity", array.reshape(-1)),
        integers("offsets", count, count * size, start=size, step=size),
        column("types", np.full(count, CELL_TYPES[size], np.uint8)),
    )
