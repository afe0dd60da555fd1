"""Labeled grids - xarray datasets, netCDF files, zarr stores - as velocity series."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxrig.machine import missing_extra
from jaxtrace.fields.curvilinear import CurvilinearGrid, closed_cells
from jaxtrace.fields.grid import SHORE_ALIASES, SHORES
from jaxtrace.io.cf import first_date, velocity_variables
from jaxtrace.io.geometry import GridAxes
from jaxtrace.io.grid_part import Choices, Part
from jaxtrace.io.series import FileFormat, Slices, float_dtype
from jaxtrace.io.staggered import StaggeredPart, find_staggering, join_files
from jaxtrace.io.steps import PathSpec, find_files
from jaxtrace.sphere import GEOMETRIES
from jaxtrace.types import check_choice

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
        self._parts = [
            _make_part(data, label, choices) for data, label in _open(source, engine)
        ]
        for part in self._parts[1:]:
            part.check_like(self._parts[0])
        self.geometry: GridAxes | CurvilinearGrid = self._parts[0].axes
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
        closed = np.isnan(slices[0][..., :2])
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
        words = self._land
        if self.geometry.land is not None:
            land, what = self.geometry.land, "nodes"
            if getattr(self.geometry, "faces", False):
                land, what = land[:-1, :-1, : max(land.shape[2] - 1, 1)], "cells"
            share = f"{int(land.sum()):,} of {land.size:,}"
            words = f"{share} {what} {self._coast}; particles there: {self._land}"
        elif self._land in SHORES:
            words = "none found"
        return (*self._parts[0].notes(self.calendar), f"land: {words}")

    def read_slice(self, index: int) -> tuple[GridAxes | CurvilinearGrid, np.ndarray]:
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
    try:
        import xarray
    except ImportError as error:
        raise missing_extra("reading labeled grids needs xarray", "trace") from error
    if isinstance(source, xarray.Dataset):
        return [(source, str(source.encoding.get("source", "the dataset")))]
    files = _grid_files(source)
    opened = [(_open_file(xarray, file, engine), str(file)) for file in files]
    return join_files(opened, xarray)


def _make_part(dataset: Any, label: str, choices: Choices) -> Part:
    """Return one dataset as the grid it is: velocities on faces, or at nodes."""
    names = velocity_variables(dataset, choices.names, label)
    found = None
    if choices.geometry != "flat":
        found = find_staggering(dataset, names)
    if found is None:
        return Part(dataset, label, choices)
    return StaggeredPart(dataset, label, choices, found)


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


def _seconds(parts: list[Part]) -> _Times:
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
