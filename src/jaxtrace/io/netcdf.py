"""Labeled grids - xarray datasets, netCDF files, zarr stores - as velocity series."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxrig.machine import missing_extra
from jaxtrace.fields.grid import SHORES
from jaxtrace.io.cf import (
    SPEEDS,
    TURNING,
    Dates,
    Vertical,
    axis_role,
    canonical,
    degrees,
    find_radius,
    first_date,
    is_geographic,
    read_dates,
    read_rise,
    read_vertical,
    velocity_variables,
)
from jaxtrace.io.geometry import GridAxes, ascending, same_geometry
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.steps import PathSpec, find_files
from jaxtrace.sphere import (
    EARTH_RADIUS,
    GEOMETRIES,
    close_longitudes,
    repeats_first,
    unwrap_longitudes,
)
from jaxtrace.types import check_choice

_OCEAN = {"uo", "water_u", "uvel", "UVEL", "vozocrtx", "ugos"}
FASTEST = {True: 50.0, False: 200.0}  # m/s, of the ocean and of the air: more is a fill


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
        if coordinate.dtype.kind in "mM":
            return "t"
    return axis_role(str(dimension), attributes)


NETCDF_EXTENSIONS = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf")
ZARR_EXTENSION = ".zarr"


class GridSlices(Slices):
    """The velocity of an xarray dataset, netCDF files or a zarr store, slice by slice.

    Longitudes and latitudes in degrees with speeds (m/s, cm/s, ...) are a sphere:
    positions are (longitude, latitude, z), z in meters upward, velocities in m/s east,
    north and up. `geometry` "flat" or "sphere" decides in place of the file, `radius`
    is that of the sphere, `velocity_units` stand for units the file does not give.
    `land` says what masked points become: "zero", "nan", or "error" to refuse them. On
    a sphere they are zero, and particles among them "beach" (stay, and are marked), go
    back to their "previous" position, or are gone ("absorb").
    Times are seconds since the first instant where the file has dates, and its own
    numbers otherwise.
    """

    def __init__(
        self,
        source: Any,
        *,
        velocity_field_name: Sequence[str] | None = None,
        dtype: str = "float32",
        land: str | None = None,
        engine: str | None = None,
        geometry: str | None = None,
        radius: float | None = None,
        velocity_units: str | None = None,
    ) -> None:
        check_choice("land", land or "zero", (*SHORES, "zero", "nan", "error"))
        if geometry is not None:
            check_choice("geometry", geometry, GEOMETRIES)
        self._dtype = float_dtype(dtype)
        choices = _Choices(velocity_field_name, geometry, radius, velocity_units)
        self._parts = [
            _Part(data, label, choices) for data, label in _open(source, engine)
        ]
        for part in self._parts[1:]:
            part.check_like(self._parts[0])
        self.geometry: GridAxes = self._parts[0].axes
        round_ = self.geometry.radius is not None
        self._land = land or ("beach" if round_ else "zero")
        if self._land in SHORES and not round_:
            raise ValueError(
                f"land={land!r} is for a sphere; on a flat grid masked points become "
                '"zero" or "nan", or are an "error"'
            )
        places = [(p, row) for p in self._parts for row in range(p.raw_times.size)]
        times = _seconds(self._parts)
        self.time_source, self.time_units = times.words, times.units
        self.calendar = times.calendar
        _check_increasing(times.seconds, [part.label for part, _ in places])
        self.times: Float[np.ndarray, " steps"] = times.seconds
        self._places = places
        self.labels = tuple(f"{part.label}, slice {row}" for part, row in places)
        if self._land in SHORES:
            self._find_land()

    def _find_land(self) -> None:
        """Mark the nodes that are masked, or else those that never move."""
        looked = {0, len(self._places) // 2, len(self._places) - 1}
        slices = [
            self._places[i][0].read(self._places[i][1], self._dtype) for i in looked
        ]
        land = np.isnan(slices[0][..., :2]).any(-1)
        self._coast = "masked"
        if not land.any():
            still = [np.all(values[..., :2] == 0, -1) for values in slices]
            land, self._coast = np.logical_and.reduce(still), "without any flow"
        if land.any() and not land.all():
            self.geometry = dataclasses.replace(
                self.geometry, land=land, shore=self._land
            )

    @property
    def velocity_name(self) -> str:
        """The variables that the velocity is read from."""
        return ", ".join(self._parts[0].names)

    def notes(self) -> tuple[str, ...]:
        """Return how the file was read: geometry, units, signs, and masked points."""
        words = self._land
        if self.geometry.land is not None:
            share = f"{int(self.geometry.land.sum()):,} of {self.geometry.n_points:,}"
            words = f"{share} nodes {self._coast}; particles there: {self._land}"
        elif self._land in SHORES:
            words = "none found"
        return (*self._parts[0].notes(self.calendar), f"land: {words}")

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
        part.check_speed(values, self.labels[index])
        if self._land not in ("nan", "error"):
            values[missing] = 0
        return self.geometry, values


class _Choices(NamedTuple):
    """What a user says in place of the file."""

    names: Sequence[str] | None
    geometry: str | None
    radius: float | None
    units: str | None


class _Part:
    """One dataset: its velocity variables, its axes and its instants."""

    def __init__(self, dataset: Any, label: str, choices: _Choices) -> None:
        self.label = label
        self.names = velocity_variables(dataset, choices.names, label)
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
        standard = str(first.attrs.get("standard_name", ""))
        self._ocean = "sea_" in standard or self.names[0] in _OCEAN
        self._factors, self._said = [1.0] * len(self.names), list[str]()
        self._vertical = Vertical()
        self._keep: list[slice] = [slice(None)] * 3
        stored = [self._coordinate(first, role) for role in "xyz"]
        self.radius = self._find_radius(dataset, choices)
        if self.radius is not None:
            stored = self._go_round(stored)
        self._stored = tuple(stored)
        axes, _ = ascending(self._stored, {})
        self.axes = GridAxes(*axes, radius=self.radius)
        self.raw_times = self._times(dataset, first)

    def _find_radius(self, dataset: Any, choices: _Choices) -> float | None:
        """Return the radius of a sphere, None for a flat grid, and read the units."""
        first = self._variables[0]
        axes = {r: first.coords[d] for r, d in self.roles.items() if d in first.coords}
        if choices.geometry == "flat":
            if choices.radius is not None:
                raise ValueError("radius= needs geometry='sphere'")
            return None
        found = is_geographic(axes, self.label)
        if not found.found and choices.geometry != "sphere":
            self._refuse_indices(axes)
            return None
        given = (choices.units or v.attrs.get("units", "") for v in self._variables)
        units = [canonical(unit) for unit in given]
        if units[0] in TURNING:
            return None
        if found.guessed:
            self._said.append(
                "guessed a sphere: only names say longitude and latitude; "
                "geometry='flat' if they are not"
            )
        if "z" in axes:
            self._vertical = read_vertical(axes["z"], self._ocean, self.label)
        self._factors = [self._factor(i, unit) for i, unit in enumerate(units)]
        stated = find_radius(dataset, first)
        if stated is not None and choices.radius is None:
            self._said.append("radius from the grid mapping of the file")
        return choices.radius or stated or EARTH_RADIUS

    def _factor(self, index: int, unit: str) -> float:
        """Return what turns a component into meters per second (or pascals)."""
        variable = self._variables[index]
        if not unit:
            unit = "m/s"
            self._said.append(f"{variable.name} has no units: m/s assumed")
        if index == 2:
            return read_rise(variable, unit, self._vertical, self.label)
        if unit not in SPEEDS:
            raise ValueError(
                f"{self.label}: the units {variable.attrs.get('units', unit)!r} of "
                f"{variable.name!r} are unknown; give velocity_units= one of "
                f"{', '.join(SPEEDS)}"
            )
        return SPEEDS[unit]

    def _refuse_indices(self, axes: dict[str, Any]) -> None:
        """Refuse a geophysical variable whose axes only count nodes."""
        standard = "standard_name" in self._variables[0].attrs
        if (self._ocean or standard) and not {"x", "y"} & set(axes):
            raise ValueError(
                f"{self.label}: {self.names[0]!r} has no coordinates for "
                f"{self._variables[0].dims[-2:]}; give it longitude and latitude, or "
                "geometry='flat' to count nodes"
            )

    def _go_round(self, stored: list[np.ndarray]) -> list[np.ndarray]:
        """Return axes in degrees and meters upward, without what repeats or breaks."""
        first = self._variables[0]
        for index, role in enumerate("xy"):
            if self.roles.get(role) in first.coords:
                stored[index] = degrees(first.coords[self.roles[role]])
        stored[0] = unwrap_longitudes(stored[0])
        if repeats_first(stored[0]):
            stored[0], self._keep[0] = stored[0][:-1], slice(0, -1)
        low, high = (self._breaks(stored[1], end) for end in (0, -1))
        if low or high:
            self._keep[1] = slice(int(low), -1 if high else None)
            stored[1] = stored[1][self._keep[1]]
            self._said.append("rows at the poles without a direction left out")
        stored[2] = self._vertical.factor * stored[2]
        return stored

    def _breaks(self, latitudes: np.ndarray, end: int) -> bool:
        """Return whether a row at a pole is masked, or one value for all longitudes."""
        if latitudes.size < 3 or abs(latitudes[end]) < 90 - 1e-6:
            return False
        where = {d: 0 for r, d in self.roles.items() if r in "tz"}
        where[self.roles["y"]] = end
        rows = [np.asarray(v.isel(where).values) for v in self._variables[:2]]
        return any(np.isnan(r).any() for r in rows) or all(np.ptp(r) == 0 for r in rows)

    def notes(self, calendar: str | None) -> tuple[str, ...]:
        """Return in words how the file was read."""
        if self.radius is None:
            return tuple(self._said)
        closed = close_longitudes(self.axes.x).closed
        ends = "longitudes wrap" if closed else "a region that particles may leave"
        facts = (
            f"sphere: grid of {' x '.join(map(str, self.axes.shape))}, radius "
            f"{self.radius:,.1f} m, velocity in m/s, {self._vertical.words}, {ends}"
            f", {'no dates' if calendar is None else f'{calendar} calendar'}"
        )
        return (facts, *self._said)

    def check_speed(self, values: np.ndarray, label: str) -> None:
        """Raise ValueError for speeds that no ocean and no wind has."""
        if self.radius is None:
            return
        fastest = float(np.nanmax(np.abs(values[..., :2]), initial=0.0))
        if fastest > FASTEST[self._ocean]:
            raise ValueError(
                f"{label}: {fastest:.4g} m/s is above {FASTEST[self._ocean]:g} m/s, a "
                f"fill value or another unit; correct the file, or give velocity_units="
            )

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

    def _times(self, dataset: Any, variable: Any) -> np.ndarray:
        self.dates: Dates | None = None
        dimension = self.roles.get("t")
        if dimension is None:
            return np.zeros(1)
        if dimension not in variable.coords:
            return np.arange(variable.sizes[dimension], dtype=np.float64)
        coordinate = variable.coords[dimension]
        values = np.asarray(coordinate.values)
        ends = dataset.get(coordinate.attrs.get("bounds", ""))
        mean = f"{dimension}: mean" in str(variable.attrs.get("cell_methods", ""))
        if mean and ends is not None and ends.ndim == 2 and values.dtype.kind in "fiu":
            values = np.asarray(ends.values, np.float64).mean(1)
            self._said.append("means are placed at the middle of their time bounds")
        if values.dtype.kind in "fiu":
            self.dates = read_dates(coordinate, values, self.label)
        return values

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
            values = variable.transpose(*order).values
            shape = [
                values.shape[order.index(self.roles[r])] if r in self.roles else 1
                for r in "xyz"
            ]
            kept = values.reshape(shape)[tuple(self._keep)]
            out[..., component] = kept
            if self._factors[component] != 1:
                out[..., component] *= self._factors[component]
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
    # Times are decoded here: xarray rounds them to dates, and knows fewer units.
    options: dict[str, Any] = {"engine": engine}
    if path.suffix.lower() == ZARR_EXTENSION:
        # Stores without consolidated metadata read just as well, without a warning.
        options = {"engine": "zarr", "consolidated": False}
    try:
        return xarray.open_dataset(path, decode_times=False, **options)
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise ValueError(
            f"{path}: cannot be read as a labeled grid: {error}"
        ) from error


class _Times(NamedTuple):
    """Instants in seconds, where they come from, and their units as CF writes them."""

    seconds: np.ndarray
    words: str
    units: str | None = None
    calendar: str | None = None


def _seconds(parts: list[_Part]) -> _Times:
    """Return times as numbers: dates and durations in seconds since the first."""
    times = np.concatenate([part.raw_times for part in parts])
    kind, dates = times.dtype.kind, [part.dates for part in parts]
    if kind == "m":
        return _Times((times - times[0]) / np.timedelta64(1, "s"), "durations")
    if kind in "MO":  # decoded by xarray, in the calendar of the dates
        gaps = times - times[0]
        seconds = [
            g / np.timedelta64(1, "s") if kind == "M" else g.total_seconds()
            for g in gaps
        ]
        calendar = str(getattr(times[0], "calendar", "standard"))
        return _dated(np.array(seconds, np.float64), times[0], calendar)
    known = [d for d in dates if d is not None]
    if len(known) < len(parts):
        return _Times(times.astype(np.float64), "the time coordinate")
    if len({d.calendar for d in known}) > 1:
        names = ", ".join(sorted({d.calendar for d in known}))
        raise ValueError(
            f"{parts[-1].label}: the files have different calendars ({names}), whose "
            "dates cannot be compared; track them apart"
        )
    if known[0].reference is None:
        return _Times(np.concatenate([d.seconds for d in known]), "the time coordinate")
    start, whole = first_date(known[0]), []
    for d in known:
        # Times of one reference are subtracted as numbers: no rounding to a date.
        base = known[0].seconds[0]
        if d.reference != known[0].reference:
            gap = first_date(d) - start
            ahead = (
                gap / np.timedelta64(1, "s")
                if isinstance(gap, np.timedelta64)
                else gap.total_seconds()
            )
            base = d.seconds[0] - ahead
        whole.append(d.seconds - base)
    return _dated(np.concatenate(whole), start, known[0].calendar)


def _dated(seconds: np.ndarray, start: Any, calendar: str) -> _Times:
    text = str(start).replace("T", " ")
    if isinstance(start, np.datetime64):
        text = str(start.astype("datetime64[s]")).replace("T", " ")
    words = f"seconds since {text}"
    return _Times(seconds, words, words, calendar)


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
