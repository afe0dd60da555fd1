"""Fields from whatever is at hand: arrays, functions, dictionaries and files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from jaxtrace.fields.base import Sampled
from jaxtrace.fields.cells import VTK_THIN
from jaxtrace.fields.changing import MeshSlice, make_changing_field
from jaxtrace.fields.structured import (
    StructuredGridSampler,
    create_structured_field_from_arrays,
    create_structured_field_from_vtk_data,
)
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.fields.unstructured import (
    UnstructuredField,
    create_unstructured_from_vtk_data,
)
from jaxtrace.fields.unstructured_mesh import UnstructuredMesh
from jaxtrace.files.patterns import PathSpec
from jaxtrace.files.series import GridSeries, MeshSeries, read_series
from jaxtrace.files.snapshot import Cells

FIELD_TYPES = ("time_series", "structured", "unstructured")
# What a field takes; anything else that comes with files is for their reader.
FIELD_OPTIONS = ("interpolation", "extrapolation", "outside", "spatial_interpolation")


def create_time_series_from_arrays(
    velocity_snapshots: Any, time_points: Any, positions: Any, **options: Any
) -> TimeSeriesField:
    """A time series from velocities (T, N, 3), or a list of (N, 3), at positions."""
    if isinstance(velocity_snapshots, list | tuple):
        velocity_snapshots = np.stack([np.asarray(v) for v in velocity_snapshots])
    return TimeSeriesField(velocity_snapshots, time_points, positions, **options)


def create_time_series_from_function(
    positions: Any,
    time_points: Sequence[float] | np.ndarray,
    velocity: Callable[[Any, float], Any],
    **options: Any,
) -> TimeSeriesField:
    """A time series of `velocity(positions, t) -> (N, 3)` at nodes and instants."""
    nodes = np.asarray(positions)
    slices = [np.asarray(velocity(nodes, float(t))) for t in time_points]
    return create_time_series_from_arrays(slices, time_points, nodes, **options)


def detect_field_type(data: Any) -> str:
    """Which kind of field data make: "time_series", "structured" or "unstructured".

    Dictionaries are told by their keys, arrays by their axes.
    """
    if not isinstance(data, Mapping):
        found = {3: "time_series", 4: "structured", 5: "structured"}
        axes = np.ndim(data)
        if axes not in found:
            raise ValueError(
                f"an array of {axes} axes is no field: give (T, N, 3), (Nx, Ny, Nz, 3) "
                "or (T, Nx, Ny, Nz, 3)"
            )
        return found[axes]
    if "grid_x" in data or "dimensions" in data:
        return "structured"
    if "points" in data:
        return "unstructured"
    if {"velocity_data", "times", "positions"} <= set(data):
        return "time_series"
    raise ValueError(
        f"data with {', '.join(map(str, data))} are no field: give velocity_data with "
        "times and positions, or with grid_x, grid_y and grid_z, or points with "
        "connectivity"
    )


def create_field_from_data(
    data: Any, field_type: str = "auto", **options: Any
) -> Sampled:
    """A field from a dictionary or an array; see `detect_field_type` for which.

    Arrays need the rest as options: `positions` and `times` for a time series,
    `x_coords`, `y_coords` (and `z_coords`, `times`) for a grid.
    """
    kind = detect_field_type(data) if field_type == "auto" else _known(field_type)
    given = dict(data) if isinstance(data, Mapping) else {"velocity_data": data}
    return _FROM_DATA[kind](given, options)


def _known(field_type: str) -> str:
    if field_type not in FIELD_TYPES:
        raise ValueError(
            f"field_type {field_type!r}: choose one of auto, {', '.join(FIELD_TYPES)}"
        )
    return field_type


def _series_from_data(given: dict[str, Any], options: dict[str, Any]) -> Sampled:
    given = given | {n: options.pop(n) for n in ("times", "positions") if n in options}
    _require(given, "velocity_data", "times", "positions")
    velocity, times = given.pop("velocity_data"), given.pop("times")
    return TimeSeriesField(velocity, times, **given, **options)


def _structured_from_data(given: dict[str, Any], options: dict[str, Any]) -> Sampled:
    if "dimensions" in given:
        name = "velocity_data" if "velocity_data" in given else "velocity"
        options.setdefault("velocity_field_name", name)
        return create_structured_field_from_vtk_data(given, **options)
    axes = {f"{axis}_coords": given.pop(f"grid_{axis}", None) for axis in "xyz"}
    axes = {name: options.pop(name, nodes) for name, nodes in axes.items()}
    _require(given | axes, "velocity_data", "x_coords", "y_coords")
    return create_structured_field_from_arrays(**given, **axes, **options)


def _unstructured_from_data(given: dict[str, Any], options: dict[str, Any]) -> Sampled:
    name = "velocity_data" if "velocity_data" in given else "velocity"
    options.setdefault("velocity_field_name", name)
    return create_unstructured_from_vtk_data(given, **options)


_FROM_DATA: dict[str, Callable[[dict[str, Any], dict[str, Any]], Sampled]] = {
    "time_series": _series_from_data,
    "structured": _structured_from_data,
    "unstructured": _unstructured_from_data,
}


def _require(given: Mapping[str, Any], *names: str) -> None:
    missing = [name for name in names if given.get(name) is None]
    if missing:
        raise ValueError(f"{missing[0]} is missing: give {', '.join(names)}")


def create_time_series_from_vtk_files(
    pattern: PathSpec,
    velocity_field_name: Any = None,
    max_time_steps: int | None = None,
    **options: Any,
) -> Sampled:
    """A time series from files: a name, a glob, a list, a folder or a .pvd file.

    Without a name the usual names of a velocity are tried, "velocity" first. Of more
    than `max_time_steps` slices so many are taken, evenly, the first and the last among
    them. Other options are those of `jaxtrace.files.series.open_series` and of the
    field. Meshes that change between slices make a `ChangingMeshField`.
    """
    chosen = {n: options.pop(n) for n in FIELD_OPTIONS if n in options}
    series = read_series(pattern, velocity_field_name, max_time_steps, **options)
    return field_from_series(series, **chosen)


def create_field_from_vtk(
    pattern: PathSpec, field_type: str = "auto", **options: Any
) -> Sampled:
    """A field from files: several slices make a time series, one makes a steady field.

    A steady field is structured if its file holds a grid with straight axes, else
    unstructured; `field_type` asks for one of "time_series", "structured" and
    "unstructured". Other options are those of `create_time_series_from_vtk_files`.
    """
    chosen = {n: options.pop(n) for n in FIELD_OPTIONS if n in options}
    name = options.pop("velocity_field_name", None)
    series = read_series(pattern, name, **options)
    kind = field_type if field_type == "auto" else _known(field_type)
    if kind == "auto" and len(series.times) == 1:
        kind = "structured" if isinstance(series, GridSeries) else "unstructured"
    if kind == "structured":
        return _structured_from_series(series, chosen)
    if kind == "unstructured":
        return _unstructured_from_series(series, chosen)
    return field_from_series(series, **chosen)


def field_from_series(series: MeshSeries | GridSeries, **options: Any) -> Sampled:
    """The time series of what files held; its source is told in `_source_info`."""
    if isinstance(series, MeshSeries) and series.changes:
        return _changing(series, options)
    source = {"files": list(series.files), "notes": list(series.notes)}
    if isinstance(series, GridSeries):
        axes = (series.geometry.x, series.geometry.y, series.geometry.z)
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
        values = series.velocities.reshape(len(series.times), -1, 3)
        return TimeSeriesField(
            values, series.times, nodes, _source_info=source, **options
        )
    cells = _cells(cast(Cells, series.geometry))
    return TimeSeriesField(
        series.velocities, series.times, _source_info=source, **cells, **options
    )


def _cells(mesh: Cells) -> dict[str, Any]:
    """Nodes and cells as arguments; a mesh of loose points has no cells."""
    found: dict[str, Any] = {"positions": mesh.points}
    if not np.isin(mesh.types, list(VTK_THIN)).all():
        found["connectivity"] = mesh.connectivity
        found["cell_types"], found["cell_offsets"] = mesh.types, mesh.offsets
    return found


def _changing(series: MeshSeries, options: dict[str, Any]) -> Sampled:
    if options.pop("spatial_interpolation", "auto") == "nearest":
        raise ValueError("the nearest node of meshes that change is not offered")
    meshes = cast(tuple[Cells, ...], series.geometry)
    slices = [
        MeshSlice(mesh.points, mesh.connectivity, values, mesh.offsets, mesh.types)
        for mesh, values in zip(meshes, series.velocities, strict=True)
    ]
    return make_changing_field(slices, series.times, **options)


def _structured_from_series(
    series: MeshSeries | GridSeries, options: dict[str, Any]
) -> StructuredGridSampler:
    if not isinstance(series, GridSeries):
        raise ValueError(f"{series.files[0]} holds a mesh, not a grid of straight axes")
    grid = series.geometry
    options.pop("spatial_interpolation", None)
    rule = options.pop("outside", "clamp")
    return StructuredGridSampler(
        series.velocities, grid.x, grid.y, grid.z, rule, times=series.times, **options
    )


def _unstructured_from_series(
    series: MeshSeries | GridSeries, options: dict[str, Any]
) -> UnstructuredField:
    if isinstance(series, GridSeries) or series.changes:
        what = "a grid" if isinstance(series, GridSeries) else "meshes that change"
        raise ValueError(f"{series.files[0]} holds {what}, not one mesh")
    if options.pop("spatial_interpolation", "auto") == "nearest":
        options["knn_k"] = 1
    cells = _cells(cast(Cells, series.geometry))
    mesh = UnstructuredMesh(
        cells.pop("positions"), cells.pop("connectivity", None), **cells
    )
    return UnstructuredField(mesh, series.velocities, series.times, **options)
