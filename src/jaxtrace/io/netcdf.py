"""Labeled grids - xarray datasets, netCDF files, zarr stores - as velocity series."""

import dataclasses
import importlib
import importlib.util
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.machine import import_extra
from jaxtrace.fields.curved_grid import CurvilinearGrid, closed_cells
from jaxtrace.fields.grid import SHORE_ALIASES, SHORES
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.io.cf import (
    GRID_VELOCITIES,
    axis_role,
    label_dimensions,
    only_counts,
    split_vector,
    velocity_variables,
)
from jaxtrace.io.decoding import Times, count_seconds, first_date, read_dates
from jaxtrace.io.geometry import Geometry
from jaxtrace.io.grid_part import Choices, Part
from jaxtrace.io.mesh_part import MeshPart, find_topology
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.staggered import (
    CORNERS,
    LayeredPart,
    StaggeredPart,
    find_staggering,
    has_layers,
)
from jaxtrace.io.steps import PathSpec, find_files
from jaxtrace.sphere import GEOMETRIES
from jaxtrace.types import check_choice, is_url

NETCDF_EXTENSIONS = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf")
ZARR_EXTENSION = ".zarr"


class GridSlices(Slices):
    """The velocity of an xarray dataset, netCDF files or a zarr store, slice by slice.

    Longitudes and latitudes in degrees with speeds (m/s, cm/s, ...) are a sphere:
    positions are (longitude, latitude, z), z in meters upward, velocities in m/s east,
    north and up. `geometry` "flat" or "sphere" decides in place of the file, `radius`
    is that of the sphere, `velocity_units` stand for units the file does not give.
    `land` says what masked points become: "zero", "nan", or "error" to refuse them. On
    a sphere they are zero, and particles that would reach them "beach" (or "stop":
    stay, and are marked), "slide" along the shore, "reflect" from it, go back to their
    "previous" position, are gone ("absorb"), or are "free" to pass.
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
        land = SHORE_ALIASES.get(land, land) if land else None
        check_choice("land", land or "zero", (*SHORES, "zero", "nan", "error"))
        if geometry is not None:
            check_choice("geometry", geometry, GEOMETRIES)
        self._dtype = float_dtype(dtype)
        choices = Choices(velocity_field_name, geometry, radius, velocity_units)
        opened = list(_open(source, engine))
        first = opened[0][0]
        self._held = [str(n) for n in first.data_vars if _time_of(first[n]) is not None]
        self._parts = [_make_part(data, label, choices) for data, label in opened]
        for part in self._parts[1:]:
            part.check_like(self._parts[0])
        self.geometry: TensorGrid | CurvilinearGrid = self._parts[0].axes
        round_ = self._parts[0].radius is not None
        faces = getattr(self.geometry, "faces", False)
        self._land = land or ("beach" if round_ or faces else "zero")
        if self._land in SHORES and not (round_ or faces):
            raise ValueError(
                f"land={land!r} is for a sphere; on a flat grid masked points become "
                '"zero" or "nan", or are an "error"'
            )
        times = self._sort()
        places = [(p, row) for p in self._parts for row in range(p.raw_times.size)]
        self.time_source, self.time_units = times.words, times.units
        self.calendar = times.calendar
        # Of files that overlap, the first has what both have.
        order = np.argsort(times.seconds, kind="stable")
        kept = np.diff(times.seconds[order], prepend=-np.inf) > 0
        if not kept.all():
            self._said.append(f"{int((~kept).sum())} slices that overlap left out")
        order = order[kept]
        self.times: Float[np.ndarray, " steps"] = times.seconds[order]
        self._places = places = [places[i] for i in order]
        self.labels = tuple(f"{part.label}, slice {row}" for part, row in places)
        if self._land in SHORES:
            self._find_land(land is not None)

    def held(self) -> tuple[str, ...]:
        """Return the variables over time beside the velocity."""
        return tuple(n for n in self._held if n not in self.velocity_name.split(", "))

    def _sort(self) -> Times:
        """Bring files into the order of their times, and return these."""
        self._said: list[str] = []
        times = count_seconds(self._parts)
        ends = np.cumsum([part.raw_times.size for part in self._parts])
        own = np.split(times.seconds, ends[:-1])
        for part, seconds in zip(self._parts, own, strict=True):
            for i in np.flatnonzero(~(np.diff(seconds) > 0)).tolist():
                raise ValueError(
                    f"{part.label}: times must increase, but slice {i + 1} follows "
                    f"slice {i} with t = {seconds[i + 1]:g} after {seconds[i]:g}"
                )
        order = np.argsort([seconds[0] for seconds in own], kind="stable")
        if (order == np.arange(order.size)).all():
            return times
        self._parts = [self._parts[i] for i in order]
        self._said.append("files brought into the order of their times")
        return count_seconds(self._parts)

    def _find_land(self, asked: bool) -> None:
        """Mark the nodes that are masked, or else those that never move.

        The rim of a mesh is a coast where land is asked for or the mesh goes round.
        """
        grid = self.geometry
        if isinstance(grid, CurvilinearGrid) and grid.triangles is not None:
            coast = self._land not in ("free", "absorb") and (asked or grid.span[2])
            self.geometry = dataclasses.replace(grid, coast=coast, shore=self._land)
        looked = {0, len(self._places) // 2, len(self._places) - 1}
        slices = [
            self._places[i][0].read(self._places[i][1], self._dtype) for i in looked
        ]
        closed = np.isnan(slices[0][..., :2])
        if any((np.isnan(s[..., :2]) != closed).any() for s in slices[1:]):
            self._said.append(
                "what is masked differs between slices: no flow there, and what is "
                f"masked in {self.labels[min(looked)]} counts as land"
            )
        self._coast = "masked"
        if not closed.any():
            still = [values[..., :2] == 0 for values in slices]
            closed, self._coast = np.logical_and.reduce(still), "without any flow"
        land = closed.any(-1) if self._coast == "masked" else closed.all(-1)
        if isinstance(self.geometry, CurvilinearGrid) and self.geometry.faces:
            land = closed_cells(closed)
            if not land[:-1, :-1, : max(land.shape[2] - 1, 1)].any():
                return
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
        words, grid = self._land, self.geometry
        land, what = getattr(grid, "land", None), "nodes"
        if land is not None:
            if getattr(grid, "faces", False):
                land, what = land[:-1, :-1, : max(land.shape[2] - 1, 1)], "cells"
            share = f"{int(land.sum()):,} of {land.size:,}"
            words = f"{share} {what} {self._coast}; particles there: {self._land}"
        elif self._land in SHORES:
            words = "none found"
        if isinstance(grid, CurvilinearGrid) and grid.triangles is not None:
            rim = "all of the rim" if grid.coast else "islands, the rim is open"
            words = f"{rim}; particles there: {self._land}; nodes: {words}"
        return (
            *self._parts[0].notes(self.calendar),
            *self._said,
            f"land: {words}",
        )

    def read_slice(self, index: int) -> tuple[Geometry, np.ndarray]:
        """Return the grid or mesh, which is the same for all, and one velocity."""
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
        if self._land != "nan" and missing[..., :2].all():
            raise ValueError(
                f"{self.labels[index]}: no value of {self.velocity_name} is finite: "
                "give other variables as velocity_field_name=, or leave the file out"
            )
        part.check_speed(values, self.labels[index])
        if self._land not in ("nan", "error"):
            values[missing] = 0
        return self.geometry, values


def _open(source: Any, engine: str | None) -> list[tuple[Any, str]]:
    """Return datasets, opened lazily, and what to call them."""
    xarray = import_extra("xarray", "labeled grids", "trace")
    if isinstance(source, xarray.Dataset):
        return [(source, str(source.encoding.get("source", "the dataset")))]
    files = _grid_files(source)
    opened = [(_open_file(xarray, file, engine), str(file)) for file in files]
    return join_files(opened, xarray)


def _make_part(dataset: Any, label: str, choices: Choices) -> Part:
    """Return one dataset as what it is: a mesh, a staggered grid, or a plain one."""
    dataset, names = split_vector(dataset, choices.names)
    choices = choices._replace(names=names)
    topology = find_topology(dataset)
    if topology is not None:
        return MeshPart(dataset, label, choices, topology)
    dataset = label_dimensions(dataset)
    names = velocity_variables(dataset, choices.names, label)
    if choices.geometry != "flat":
        if (found := find_staggering(dataset, names)) is not None:
            return StaggeredPart(dataset, label, choices, found)
        if has_layers(dataset, names):
            return LayeredPart(dataset, label, choices)
    return Part(dataset, label, choices)


def _grid_files(source: PathSpec) -> Sequence[Path | str]:
    names = [source] if isinstance(source, str | os.PathLike) else list(source)
    if any(map(is_url, names)):
        return [str(name) for name in names]
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        if path.suffix.lower() == ZARR_EXTENSION:
            if not path.exists():
                raise FileNotFoundError(f"{path}: no such store")
            return [path]
    return find_files(source, NETCDF_EXTENSIONS)


def _open_file(xarray: Any, path: Path | str, engine: str | None) -> Any:
    """Open one file lazily; what cannot be read is a ValueError that names it."""
    # Times are decoded here: xarray rounds them to dates, and knows fewer units.
    options: dict[str, Any] = {"engine": engine}
    remote = is_url(path) and _DODS not in str(path)
    if remote and not importlib.util.find_spec("fsspec"):
        raise ImportError(
            f"{path}: addresses need fsspec: pip install fsspec, and aiohttp for "
            "https, s3fs for s3 or gcsfs for gs; or download the files"
        )
    source: Any = path
    if Path(path).suffix.lower() == ZARR_EXTENSION:
        # Stores without consolidated metadata read just as well, without a warning.
        options = {"engine": "zarr", "consolidated": None if remote else False}
    try:
        if remote and options["engine"] != "zarr":
            # Read by ranges of bytes, as slices are asked for.
            source = importlib.import_module("fsspec").open(str(path), "rb").open()
        return xarray.open_dataset(source, decode_times=False, **options)
    except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise ValueError(
            f"{path}: cannot be read as a labeled grid: {error}"
        ) from error


_DODS = "/dodsC/"  # in addresses of OPeNDAP servers, which netCDF reads by itself


def join_files(opened: list[tuple[Any, str]], xarray: Any) -> list[tuple[Any, str]]:
    """Return one dataset per instant or run of them, with all variables in it.

    Files that differ in their variables - u, v and w apart, the mesh - are put together
    by their times; files with the same variables follow each other.
    """
    groups: dict[frozenset[str], list[tuple[Any, str]]] = {}
    fixed: list[tuple[Any, str]] = []
    for data, label in opened:
        moving = {str(n) for n in data.data_vars if _time_of(data[n]) is not None}
        if moving and not _is_mesh(data, moving):
            groups.setdefault(frozenset(moving), []).append((data, label))
        else:
            fixed.append((data.squeeze(drop=True), label))
    if len(groups) + bool(fixed) < 2 or not groups:
        return opened
    start = lambda file: _times(file[0]).flat[0]
    series = [sorted(files, key=start) for files in groups.values()]
    clocks = [np.concatenate([_times(d).ravel() for d, _ in files]) for files in series]
    for files, clock in zip(series, clocks, strict=True):
        if not np.array_equal(clock, clocks[0]):
            raise ValueError(
                f"{files[0][1]}: its times differ from those of {series[0][0][1]} (or "
                "those of files like them do); give files of the same instants"
            )
    starts = [start(file) for files in series for file in files]
    pieces = [_cut(files, starts) for files in series]
    return [
        (_merge([*row, *fixed], xarray), row[0][1]) for row in zip(*pieces, strict=True)
    ]


def _cut(files: list[tuple[Any, str]], starts: list[Any]) -> list[tuple[Any, str]]:
    """Return files cut at times, where those of another variable begin."""
    pieces = []
    for data, label in files:
        name, times = _time_dimension(data), _times(data)
        if times.ndim == 0:  # counted, not told
            pieces.append((data, label))
            continue
        at = np.unique([0, *np.searchsorted(times, starts), times.size])
        for low, high in itertools.pairwise(at):
            pieces.append((data.isel({name: slice(low, high)}), label))
    return pieces


def _is_mesh(data: Any, moving: set[str]) -> bool:
    """Return whether a file has positions for an instant in name only."""
    known = {name for names in GRID_VELOCITIES for name in names}
    placed = any(all(name in data.variables for name in pair) for pair in CORNERS)
    return placed and not moving & known and _times(data).size == 1


def _time_of(variable: Any) -> str | None:
    """Return the dimension of time of a variable."""
    for name in variable.dims:
        attributes = variable.coords[name].attrs if name in variable.coords else {}
        if axis_role(str(name), attributes) == "t" and variable.ndim > 1:
            return str(name)
    return None


def _time_dimension(data: Any) -> str:
    names = (_time_of(data[n]) for n in data.data_vars)
    return next(n for n in names if n is not None)


def _times(data: Any) -> np.ndarray:
    """Return the instants of a file, dates as whole milliseconds since one for all."""
    name = _time_dimension(data)
    if name not in data.coords:
        return np.asarray(data.sizes[name])
    values = np.asarray(data[name].values)
    dates = read_dates(data[name], values, str(name))
    if dates is None:
        return values
    if dates.reference is None:
        return dates.seconds
    first = first_date(dates)
    midnight = dict.fromkeys(("hour", "minute", "second", "microsecond"), 0)
    since = first - first.replace(year=1900, month=1, day=1, **midnight)
    return np.rint(1e3 * (since.total_seconds() + dates.seconds - dates.seconds[0]))


def _merge(parts: list[tuple[Any, str]], xarray: Any) -> Any:
    """Return files as one dataset; positions of the same name get that of a variable.

    NEMO calls the positions of u, v and T alike, others the axes of a staggered grid.
    """
    seen: dict[str, Any] = {}
    renamed = []
    for data, _ in parts:
        main = next((str(n) for n in data.data_vars if data[n].ndim > 2), "")
        names = {}
        for name in data.variables:
            there = data[name]
            if name in seen and there.ndim in (1, 2) and _moved(there, seen[name]):
                names[name] = f"{name}_{main}"
            seen.setdefault(name, there)
        renamed.append(data.rename(names))
    try:
        return xarray.merge(renamed, compat="override", join="override")
    except ValueError as error:
        labels = ", ".join(label for _, label in parts)
        raise ValueError(f"{labels}: cannot be put together: {error}") from error


def _moved(there: Any, seen: Any) -> bool:
    """Return whether positions differ by more than rounding; times may, by units."""
    if axis_role(str(there.name), there.attrs) == "t" or there.dtype.kind not in "iuf":
        return False
    if there.ndim == 1 and (only_counts(there) or only_counts(seen)):
        return False
    one, other = np.asarray(there.values), np.asarray(seen.values)
    return not (
        there.dims == seen.dims
        and one.shape == other.shape
        and np.allclose(one, other, rtol=1e-6, atol=1e-6, equal_nan=True)
    )


FORMAT = FileFormat(
    "grid", (*NETCDF_EXTENSIONS, ZARR_EXTENSION), ("xarray",), GridSlices
)
