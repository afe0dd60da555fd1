"""Labeled grids - xarray datasets, netCDF files, zarr stores - as velocity series."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.machine import missing_extra
from jaxtrace.io.geometry import GridAxes, ascending, same_geometry
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.steps import PathSpec, find_files
from jaxtrace.types import check_choice

#: Variables that together are a velocity, in the order tried; the third may be absent.
GRID_VELOCITIES = (
    ("u", "v", "w"), ("U", "V", "W"), ("uo", "vo", "wo"), ("ua", "va", "wa"),
    ("water_u", "water_v", "water_w"), ("uvel", "vvel", "wvel"),
    ("UVEL", "VVEL", "WVEL"), ("vozocrtx", "vomecrty", "vovecrtz"),
    ("ugos", "vgos", ""), ("u10", "v10", ""), ("ux", "uy", "uz"), ("vx", "vy", "vz"),
    ("velocity_x", "velocity_y", "velocity_z"),
)  # fmt: skip
_STANDARD_NAMES = (
    ("eastward_sea_water_velocity", "northward_sea_water_velocity",
     "upward_sea_water_velocity"),
    ("sea_water_x_velocity", "sea_water_y_velocity", "upward_sea_water_velocity"),
    ("eastward_wind", "northward_wind", "upward_air_velocity"),
    ("x_wind", "y_wind", "upward_air_velocity"),
)  # fmt: skip
_DIMENSIONS = {
    "t": {"t", "time", "times", "time_counter", "ocean_time", "valid_time"},
    "z": {"z", "depth", "depthu", "depthv", "deptht", "depthw", "lev", "level", "nz",
          "height", "altitude", "zc", "zt", "k", "zlev", "elevation"},
    "y": {"y", "lat", "latitude", "ny", "nlat", "yc", "yt", "yu", "j", "yh", "rlat"},
    "x": {"x", "lon", "longitude", "nx", "nlon", "xc", "xt", "xu", "i", "xh", "rlon"},
}  # fmt: skip
_AXIS_UNITS = {"degrees_east": "x", "degrees_north": "y", "degree_east": "x"}
_STANDARD_AXES = {"longitude": "x", "latitude": "y", "depth": "z", "time": "t"}


def velocity_variables(
    dataset: Any, names: Sequence[str] | None, source: str
) -> tuple[str, ...]:
    """Return the two or three variables of the velocity; ValueError lists what there
    is.
    """
    if names is not None:
        missing = [name for name in names if name not in dataset]
        if not missing and len(names) in (2, 3):
            return tuple(names)
    else:
        named = {str(dataset[n].attrs.get("standard_name")): n for n in dataset}
        tables = [dict(zip(t, t, strict=True)) for t in GRID_VELOCITIES]
        for table in [
            *tables,
            *({s: named.get(s, "") for s in t} for t in _STANDARD_NAMES),
        ]:
            found = [name for name in table.values() if name and name in dataset]
            if found[:2] == list(table.values())[:2]:
                return tuple(found)
    there = ", ".join(str(name) for name in dataset) or "none"
    asked = "velocity variables" if names is None else f"variables {tuple(names)}"
    raise ValueError(
        f"{source}: no two or three {asked}; the variables are {there}: give them as "
        'velocity_field_name=("u", "v")'
    )


def dimension_roles(variable: Any, source: str) -> dict[str, str]:
    """Return which dimension is "t", "z", "y" and "x"; ValueError where one cannot be
    told.
    """
    roles: dict[str, str] = {}
    for dimension in variable.dims:
        role = _role(variable, dimension)
        if role is None or role in roles:
            raise ValueError(
                f"{source}: cannot tell which of time, z, y and x the dimension "
                f"{dimension!r} of {variable.name!r} {tuple(variable.dims)} is; "
                "give it a coordinate with the attribute axis = T, Z, Y or X"
            )
        roles[role] = dimension
    return roles


def _role(variable: Any, dimension: str) -> str | None:
    attributes: dict[str, Any] = {}
    if dimension in variable.coords:
        coordinate = variable.coords[dimension]
        attributes = coordinate.attrs
        if np.issubdtype(coordinate.dtype, np.datetime64):
            return "t"
    axis = str(attributes.get("axis", "")).lower()
    if axis in _DIMENSIONS:
        return axis
    standard = str(attributes.get("standard_name", ""))
    units = str(attributes.get("units", ""))
    by_name = (r for r, names in _DIMENSIONS.items() if dimension.lower() in names)
    return _STANDARD_AXES.get(standard) or _AXIS_UNITS.get(units) or next(by_name, None)


NETCDF_EXTENSIONS = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf")
ZARR_EXTENSION = ".zarr"


class GridSlices(Slices):
    """The velocity of an xarray dataset, netCDF files or a zarr store, slice by slice.

    `land` says what masked points become: "zero", "nan", or "error" to refuse them.
    Times are seconds since the first instant where the file has dates, and its own
    numbers otherwise.
    """

    def __init__(
        self,
        source: Any,
        *,
        velocity_field_name: Sequence[str] | None = None,
        dtype: str = "float32",
        land: str = "zero",
        engine: str | None = None,
    ) -> None:
        check_choice("land", land, ("zero", "nan", "error"))
        self._land, self._dtype = land, float_dtype(dtype)
        self._parts = [
            _Part(data, label, velocity_field_name)
            for data, label in _open(source, engine)
        ]
        for part in self._parts[1:]:
            part.check_like(self._parts[0])
        self.geometry: GridAxes = self._parts[0].axes
        places = [(p, row) for p in self._parts for row in range(p.raw_times.size)]
        times, self.time_source = _seconds([part.raw_times for part in self._parts])
        _check_increasing(times, [part.label for part, _ in places])
        self.times: Float[np.ndarray, " steps"] = times
        self._places = places
        self.labels = tuple(f"{part.label}, slice {row}" for part, row in places)

    @property
    def velocity_name(self) -> str:
        """The variables that the velocity is read from."""
        return ", ".join(self._parts[0].names)

    def notes(self) -> tuple[str, ...]:
        """Return what masked points become."""
        return (f"land: {self._land}",)

    def read_slice(self, index: int) -> tuple[GridAxes, np.ndarray]:
        """Return the grid, which is the same for all, and one velocity."""
        part, row = self._places[index]
        values = part.read(row, self._dtype)
        missing = np.isnan(values)
        bad = int(np.count_nonzero(np.isinf(values)))
        bad += int(missing.sum()) if self._land == "error" else 0
        if bad:
            raise ValueError(
                f"{self.labels[index]}: {bad} of {values.size} values of the velocity "
                'are not finite; masked points are kept with land="zero" or "nan"'
            )
        if self._land == "zero":
            values[missing] = 0
        return self.geometry, values


class _Part:
    """One dataset: its velocity variables, its axes and its instants."""

    def __init__(
        self, dataset: Any, label: str, velocity_name: Sequence[str] | None
    ) -> None:
        self.label = label
        self.names = velocity_variables(dataset, velocity_name, label)
        self._variables = [dataset[name] for name in self.names]
        first = self._variables[0]
        self.roles = dimension_roles(first, label)
        for variable in self._variables[1:]:
            if set(variable.dims) != set(first.dims):
                raise ValueError(
                    f"{label}: {variable.name!r} has the dimensions {variable.dims} "
                    f"and {first.name!r} has {first.dims}; bring the components to the "
                    "same points first"
                )
        self._stored = tuple(self._coordinate(first, role) for role in "xyz")
        axes, _ = ascending(self._stored, {})
        self.axes = GridAxes(*axes)
        self.raw_times = self._times(first)

    def _coordinate(self, variable: Any, role: str) -> np.ndarray:
        dimension = self.roles.get(role)
        if dimension is None:
            return np.zeros(1)
        if dimension in variable.coords:
            return np.asarray(variable.coords[dimension].values, np.float64)
        flat = [n for n, c in variable.coords.items() if dimension in c.dims]
        if any(variable.coords[name].ndim > 1 for name in flat):
            raise ValueError(
                f"{self.label}: dimension {dimension!r} is placed by the curvilinear "
                f"coordinates {', '.join(map(str, flat))}; regrid to straight axes"
            )
        return np.arange(variable.sizes[dimension], dtype=np.float64)

    def _times(self, variable: Any) -> np.ndarray:
        dimension = self.roles.get("t")
        if dimension is None:
            return np.zeros(1)
        if dimension in variable.coords:
            return np.asarray(variable.coords[dimension].values)
        return np.arange(variable.sizes[dimension], dtype=np.float64)

    def check_like(self, first: "_Part") -> None:
        """Raise ValueError unless grid and variables are those of the first dataset."""
        if self.names != first.names or not same_geometry(self.axes, first.axes):
            raise ValueError(
                f"{self.label}: grid {self.axes.shape} with {self.names} differs from "
                f"{first.axes.shape} with {first.names} in {first.label}"
            )

    def read(self, row: int, dtype: np.dtype) -> np.ndarray:
        """Return one instant as (Nx, Ny, Nz, 3) on increasing axes."""
        out = np.zeros((*self.axes.shape, 3), dtype)
        order = [self.roles[role] for role in "xyz" if role in self.roles]
        for component, variable in enumerate(self._variables):
            if "t" in self.roles:
                variable = variable.isel({self.roles["t"]: row})
            values = variable.transpose(*order).values.reshape(self.axes.shape)
            out[..., component] = values
        return ascending(self._stored, {"": out})[1][""].copy()


def _open(source: Any, engine: str | None) -> list[tuple[Any, str]]:
    """Return datasets, opened lazily, and what to call them."""
    try:
        import xarray
    except ImportError as error:
        raise missing_extra("reading labeled grids needs xarray", "trace") from error
    if isinstance(source, xarray.Dataset):
        return [(source, str(source.encoding.get("source", "the dataset")))]
    files = _grid_files(source)
    return [(_open_file(xarray, file, engine), str(file)) for file in files]


def _grid_files(source: PathSpec) -> list[Path]:
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        if path.suffix.lower() == ZARR_EXTENSION:
            if not path.exists():
                raise FileNotFoundError(f"{path}: no such store")
            return [path]
    return find_files(source, NETCDF_EXTENSIONS)


def _open_file(xarray: Any, path: Path, engine: str | None) -> Any:
    """Open one file lazily; what cannot be read is a ValueError that names it."""
    options: dict[str, Any] = {"engine": engine}
    if path.suffix.lower() == ZARR_EXTENSION:
        # Stores without consolidated metadata read just as well, without a warning.
        options = {"engine": "zarr", "consolidated": False}
    try:
        return xarray.open_dataset(path, **options)
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise ValueError(
            f"{path}: cannot be read as a labeled grid: {error}"
        ) from error


def _seconds(parts: list[np.ndarray]) -> tuple[np.ndarray, str]:
    """Return times as numbers: dates and durations in seconds since the first."""
    times = np.concatenate(parts)
    if times.dtype.kind in "mM":
        return (times - times[0]) / np.timedelta64(1, "s"), f"seconds since {times[0]}"
    if times.dtype.kind == "O":
        gaps = [gap.total_seconds() for gap in times - times[0]]
        return np.array(gaps), f"seconds since {times[0]}"
    return times.astype(np.float64), "the time coordinate"


def _check_increasing(times: np.ndarray, labels: list[str]) -> None:
    wrong = np.flatnonzero(~(np.diff(times) > 0))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"times must increase, but {labels[i + 1]} follows {labels[i]} with "
            f"t = {times[i + 1]:g} after {times[i]:g}"
        )


FORMAT = FileFormat(
    "grid",
    (*NETCDF_EXTENSIONS, ZARR_EXTENSION),
    ("xarray",),
    "labeled grids: netCDF files, zarr stores, xarray datasets",
    GridSlices,
)
