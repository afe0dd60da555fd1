"""What labeled files encode: dates in any calendar, levels, ranges of valid values."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxrig.machine import import_extra
from jaxtrace.fields.terrain import Stretching
from jaxtrace.io.cf import angle_role, axis_role

ROUNDED = 1e-6  # of a level that may be the floor or the surface
TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    # UDUNITS: a year of 365.242198781 days, a month a twelfth of it; the calendar of
    # 360 days has its own.
    **dict.fromkeys(("month", "months"), 365.242198781 * 7200.0),
    **dict.fromkeys(("year", "years"), 365.242198781 * 86400.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-9),
}
_PLAIN = ("standard", "gregorian", "proleptic_gregorian", "utc", "tai")
_ALIASES = {
    **{"360": "360_day", "365": "365_day", "366": "366_day"},
    "thirty_day_months": "360_day",
}
_DAYS = {"noleap": 365, "365_day": 365, "all_leap": 366, "366_day": 366, "360_day": 360}


@dataclass(frozen=True)
class Dates:
    """Times as seconds since a reference date of a calendar; no date, no calendar."""

    seconds: np.ndarray
    reference: str | None
    calendar: str


def split_units(units: Any) -> tuple[str, str]:
    """Return the unit of time and the date that it is counted from, "" without one."""
    unit, *reference = re.split(r"\s+since\s+", str(units), maxsplit=1, flags=re.I)
    return unit.strip(), "".join(reference).strip()


def read_dates(coordinate: Any, values: np.ndarray, label: str) -> Dates | None:
    """Return times in seconds; None where numbers have no unit of time."""
    if values.dtype.kind in "MO":  # decoded by xarray, in the calendar of the dates
        gaps, first = values - values[0], values[0]
        if values.dtype.kind == "M":
            seconds = gaps / np.timedelta64(1, "s")
        else:
            seconds = np.array([gap.total_seconds() for gap in gaps])
        return Dates(seconds, str(first), getattr(first, "calendar", "standard"))
    units = str(coordinate.attrs.get("units", ""))
    unit, reference = split_units(units)
    if "%Y%m%d" in unit:  # "day as %Y%m%d.%f": the numbers are dates
        whole = np.floor(np.asarray(values, np.float64) + 1e-9)
        names = [f"{number:08.0f}" for number in whole]
        days = [np.datetime64(f"{d[:4]}-{d[4:6]}-{d[6:8]}") for d in names]
        seconds = np.rint((values - whole) * 86400) * np.timedelta64(1, "s")
        return read_dates(coordinate, np.array(days, "M8[s]") + seconds, label)
    scale = TIME_UNITS.get(unit.lower())
    if scale is None:
        if reference:
            raise ValueError(
                f"{label}: the units {units!r} of {coordinate.name!r} are unknown; use "
                "seconds, minutes, hours, days, months or years since a date"
            )
        return None
    calendar = str(coordinate.attrs.get("calendar", "standard")).strip().lower()
    calendar = _ALIASES.get(calendar, calendar)
    if calendar not in (*_PLAIN, *_DAYS, "julian"):
        raise ValueError(
            f"{label}: the calendar {calendar!r} of {coordinate.name!r} is unknown; "
            f"use one of {', '.join((*_PLAIN[:3], 'julian', *_DAYS))}"
        )
    if calendar == "360_day" and unit.lower().startswith(("month", "year")):
        scale = 86400.0 * (30 if unit.lower().startswith("month") else 360)
    seconds = np.asarray(values, np.float64) * scale
    return Dates(
        seconds, reference or None, "standard" if calendar in _PLAIN else calendar
    )


def read_texts(texts: np.ndarray) -> np.ndarray:
    """Return dates such as "2020-01-01_06:00:00", as text or bytes."""
    plain = [t.decode() if isinstance(t, bytes) else str(t) for t in texts]
    return np.array([t.strip().replace("_", "T") for t in plain], "M8[s]")


def first_date(dates: Dates) -> Any:
    """Return the date of the first time, as cftime has it in any calendar."""
    what = f"dates in the calendar {dates.calendar} since {dates.reference}"
    cftime = import_extra("cftime", what, "trace")
    units = f"seconds since {dates.reference}"
    # Files count from a year 0 that the calendars of the world do not have.
    zero = dates.calendar in ("standard", "julian")
    zero = zero and re.match("0+-", str(dates.reference)) is not None
    year = {"has_year_zero": True} if zero else {}
    first = cftime.num2date(float(dates.seconds[0]), units, dates.calendar, **year)
    return first.replace(has_year_zero=False) if zero and first.year > 0 else first


class Times(NamedTuple):
    """Instants in seconds, where they come from, and their units as CF writes them."""

    seconds: np.ndarray
    words: str
    units: str | None = None
    calendar: str | None = None


def count_seconds(parts: Sequence[Any]) -> Times:
    """Return times as numbers: dates in seconds since the first."""
    known = [part.dates for part in parts if part.dates is not None]
    if len(known) < len(parts):
        own = np.concatenate([part.raw_times for part in parts])
        return Times(own.astype(np.float64), "the time coordinate")
    first = known[0]
    if len({d.calendar for d in known}) > 1:
        names = ", ".join(sorted({d.calendar for d in known}))
        raise ValueError(
            f"{parts[-1].label}: the files have different calendars ({names}), whose "
            "dates cannot be compared; track them apart"
        )
    if first.reference is None:
        return Times(np.concatenate([d.seconds for d in known]), "the time coordinate")
    start, whole = first_date(first), []
    for d in known:
        # Times of one reference are subtracted as numbers: no rounding to a date.
        base = first.seconds[0]
        if d.reference != first.reference:
            base = d.seconds[0] - (first_date(d) - start).total_seconds()
        whole.append(d.seconds - base)
    words = f"seconds since {start}"
    return Times(np.concatenate(whole), words, words, first.calendar)


def _valid_limits(variable: Any) -> list[Any]:
    """Return the least and the largest valid value, None where it is not stated."""
    stated = variable.attrs
    limits: Any = [stated.get("valid_min"), stated.get("valid_max")]
    given = stated.get("valid_range", limits)
    if isinstance(given, str):
        given = re.split(r"[\s,]+", given.strip())
    limits = list(np.ravel(given))
    try:
        limits = [float(x) if isinstance(x, str) else x for x in limits]
        np.array([0.0 if x is None else x for x in limits], np.float64)
    except (TypeError, ValueError):
        limits = []
    if len(limits) != 2:
        raise ValueError(
            f"the valid range of {variable.name!r} is stated as {given!r}: it must be "
            "two numbers; correct or delete the attribute"
        )
    return limits


def read_values(variable: Any) -> np.ndarray:
    """Return the values of a variable, NaN beyond the valid range that it states."""
    values, limits = np.asarray(variable.values), _valid_limits(variable)
    if values.dtype.kind != "f" or all(limit is None for limit in limits):
        return values
    packing = variable.encoding
    stored = np.dtype(packing.get("dtype", values.dtype))
    packed = stored.kind in "iu"
    scale, offset = packing.get("scale_factor", 1.0), packing.get("add_offset", 0.0)
    plain = np.array([np.nan if x is None else float(x) for x in limits])
    ends = (plain * scale + offset)[:: -1 if scale < 0 else 1]
    kinds = {np.asarray(limit).dtype for limit in limits if limit is not None}
    if packed and kinds != {stored}:
        # Limits are packed if they have the type of the packed numbers. Integers of
        # another type may mean either: then the wider range holds.
        whole = all(kind.kind in "iu" for kind in kinds)
        low, high = np.fmin(plain, ends), np.fmax(plain, ends)
        ends = np.array([low[0], high[1]]) if whole else plain
    # Rounding is no reason to leave a value out that is a limit itself.
    slack = abs(scale) / 2 if packed else 1e-6 * np.nanmax(np.abs(ends))
    wrong = (values < ends[0] - slack) | (values > ends[1] + slack)
    return np.where(wrong, np.nan, values) if wrong.any() else values


class Columns(NamedTuple):
    """How the levels of a file follow its terrain and its surface.

    Depths and surface are variables; `down` says that the first level is the highest,
    `surface` is None where the file has none.
    """

    depth: Any
    stretching: Stretching
    down: bool
    surface: Any


def read_stretching(dataset: Any, levels: Any, faces: bool, label: str) -> Columns:
    """Return depths, and how levels (of values, or `faces`) follow them.

    Names are those of ROMS and CROCO, or of formula_terms. A sigma coordinate is
    transform 2 without a critical depth.
    """
    standard = str(levels.attrs.get("standard_name", ""))
    stated = str(levels.attrs.get("formula_terms", ""))
    terms = dict(re.findall(r"(\w+):\s*(\w+)", stated))
    at = "w" if faces or levels.name == "s_w" else "rho"
    wanted = {"depth": ("h",), "s": (f"sc_{at[0]}", f"s_{at}"), "C": (f"Cs_{at[0]}",)}
    wanted["depth_c"] = ("hc",)
    if "sigma" in terms:
        wanted = {"depth": ("h",), "sigma": (str(levels.name),)}
    if not faces:  # the terms of levels are not those of the faces between
        wanted = {term: (terms.get(term, ""), *wanted[term]) for term in wanted}
    found = {term: _stated(dataset, *names) for term, names in wanted.items()}
    missing = [wanted[term][-1] for term in found if found[term] is None]
    if missing:
        raise ValueError(
            f"{label} has levels {levels.name!r} that follow the terrain, which needs "
            f"{', '.join(names[-1] for names in wanted.values())} "
            f"({', '.join(missing)} not found); add the file of the grid, or give a "
            "file of one level"
        )
    depth, s, *rest = found.values()
    s = np.ravel(s)
    down = bool(s[0] > s[-1])
    curve, critical = (np.ravel(x) for x in rest or (s, 0.0))
    order = slice(None, None, -1 if down else 1)
    form = _stated(dataset, "Vtransform")
    if form is None:
        new = "NEW" in str(dataset.attrs.get("VertCoordType", ""))
        form = 2 if new or "sigma" in terms or standard.endswith("g2") else 1
    stretching = Stretching(s[order], curve[order], critical[0], int(np.ravel(form)[0]))
    names = (terms.get("eta", ""), "zeta", "ssh")
    surface = next((dataset[n] for n in names if n in dataset.variables), None)
    return Columns(depth, stretching, down, surface)


def dimension_roles(
    variable: Any, source: str, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return which dimension is "t", "z", "y" and "x"; ValueError where one cannot be
    told.

    Some roles may be `known` already.
    """
    roles = dict(known or {})
    for dimension in variable.dims:
        if dimension in roles.values():
            continue
        coordinate = variable.coords.get(dimension)
        dated = coordinate is not None and coordinate.dtype.kind in "mM"
        attributes = {} if coordinate is None else coordinate.attrs
        role = "t" if dated else axis_role(str(dimension), attributes)
        if role is None or role in roles:
            beside = [c for c in variable.coords.values() if c.dims == (dimension,)]
            if role is None and variable.sizes[dimension] == 1:
                continue  # the member of an ensemble of one
            if len({angle_role(c) for c in beside} - {None}) == 2:
                raise ValueError(
                    f"{source}: {variable.name!r} has places along {dimension!r}, and "
                    "no cells between them: add the file of the mesh"
                )
            raise ValueError(
                f"{source}: cannot tell which of time, z, y and x the dimension "
                f"{dimension!r} of {variable.name!r} {tuple(variable.dims)} is; "
                "give it a coordinate with the attribute axis = T, Z, Y or X, choose "
                f"one of it, as xarray does by isel({dimension}=0), or give variables "
                "without it as velocity_field_name="
            )
        roles[role] = dimension
    return roles


class Levels(NamedTuple):
    """Levels that have heights of their own in each column.

    `heights` are those of an instant, or at rest without one, upward along the last
    axis. To the levels of values one is added at the bottom, at the surface, or both.
    """

    heights: Callable[[int | None], np.ndarray]
    moving: bool
    added: tuple[int, int] = (0, 0)

    def axis(self) -> Float[np.ndarray, " levels"]:
        """Return the heights at rest where it is deepest."""
        z = self.heights(None)
        z = z.reshape(-1, z.shape[-1])
        z = z[np.argmin(z[:, 0])]
        rises = bool((np.diff(z) > 0).all())
        return z if rises else np.linspace(z[0], z[-1], z.size)

    def complete(self, values: np.ndarray, row: int, axis: int) -> np.ndarray:
        """Return values, levels along an axis, held on added levels, with heights."""
        if any(self.added):
            room = [(0, 0)] * values.ndim
            room[axis] = self.added
            values = np.pad(values, room, "edge")
        if not self.moving:
            return values
        z = self.heights(row)[..., None].astype(values.dtype)
        return np.concatenate([values, z], -1)


def make_levels(
    columns: Columns,
    time: str | None,
    place: Callable[[np.ndarray], np.ndarray],
    keep: Callable[[np.ndarray], np.ndarray],
) -> tuple[Levels, str]:
    """Return levels that follow a terrain and its surface, and words for the latter.

    `place` brings what is known of columns to nodes, of which some are to `keep`.
    """
    depth, stretching, _, surface = columns
    h = place(np.nan_to_num(np.asarray(depth.values, np.float64)))
    s, curve = stretching.s, stretching.curve
    added = int(curve.min() > -1 + ROUNDED), int(curve.max() < -ROUNDED)
    pairs = zip(added, (-1.0, 0.0), strict=True)
    ends = [np.full((*curve.shape[:-1], count), at) for count, at in pairs]
    pad = lambda a: np.concatenate([ends[0], a, ends[1]], -1)
    stretching = dataclasses.replace(stretching, s=pad(s), curve=pad(curve))
    lacks = "there is no zeta beside them"
    if surface is not None and set(surface.dims) - {time} != set(depth.dims):
        lacks = f"{surface.name} {surface.dims} does not fit h {depth.dims}"
        surface = None
    moving = surface is not None and time in surface.dims
    if surface is not None:
        surface = surface.transpose(..., *depth.dims)

    def heights(row: int | None) -> np.ndarray:
        zeta = np.zeros_like(h)
        if row is not None and surface is not None:
            now = surface.isel({time: row}) if moving else surface
            zeta = place(np.asarray(read_values(now), np.float64))
        return keep(stretching.heights(h, np.nan_to_num(zeta)))

    at_rest = f"levels at rest: {lacks}"
    said = at_rest if surface is None else f"levels follow the surface {surface.name}"
    return Levels(heights, moving, added), said


#: Thickness of cells, and of the faces that u and v go through: of NEMO in meters, of
#: MITgcm as shares of that of levels.
_THICKNESS = (("e3t_0", "e3u_0", "e3v_0", ""), ("e3t", "e3u", "e3v", ""),
              ("hFacC", "hFacW", "hFacS", "drF"))  # fmt: skip
_PARTIAL = ("e3u", "e3u_0", "e3t_ps", "hFacW")  # what says that there are thin cells


def read_thickness(
    dataset: Any,
    levels: int,
    falls: bool,
    places: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[tuple[Any, ...] | None, list[str]]:
    """Return the thickness of cells and of faces of u and v, and words about it.

    The thickness of whole levels comes first. Tables are (rows, columns, levels),
    upward, at rows and columns of `places`; a cell of land is 0 where the file says so.
    Faces may be None, and so may be all of them.
    """

    def read(name: str, unit: str, place: tuple[Any, Any]) -> np.ndarray | None:
        if name not in dataset.variables or (unit and unit not in dataset.variables):
            return None
        there = dataset[name].squeeze(drop=True)
        if there.ndim != 3 or there.shape[0] != levels:
            return None  # one that moves
        values = np.nan_to_num(np.asarray(there.values, np.float64))
        if unit:
            values = values * np.asarray(dataset[unit].values)[:, None, None]
        values = np.moveaxis(values, 0, -1)[np.ix_(*place)]
        return values[..., ::-1] if falls else values

    for *names, unit in _THICKNESS:
        cells, *faces = (read(n, unit, p) for n, p in zip(names, places, strict=True))
        if cells is None:
            continue
        sea = read("tmask", "", places[0])
        for name in ("mbathy", "bottom_level"):
            lowest = dataset.get(name)
            if sea is None and lowest is not None and lowest.squeeze().ndim == 2:
                number = lowest.squeeze().values[np.ix_(*places[0])]
                sea = np.arange(levels)[:: -1 if falls else 1] < number[..., None]
        whole = cells.max((0, 1))
        if unit:
            whole = np.asarray(dataset[unit].values, np.float64)[:: -1 if falls else 1]
        whole = np.where(whole > 0, whole, 1.0)  # of a level that is nowhere wet
        cells = cells if sea is None else np.where(sea > 0, cells, 0)
        return (whole, cells, *faces), [f"thin cells at the bottom: {names[0]}"]
    known = [name for name in _PARTIAL if name in dataset.variables]
    lacks = " or ".join(of[0] for of in _THICKNESS)
    words = "cells taken as whole: {} is not enough without {} at rest"
    return None, [words.format(name, lacks) for name in known[:1]]


def _stated(dataset: Any, *names: str) -> Any:
    """Return the numbers of the first name that is a variable or an attribute."""
    for name in names:
        if name in dataset.variables:
            return dataset[name].squeeze(drop=True).astype(np.float64)
        if name in dataset.attrs:
            return np.asarray(dataset.attrs[name], np.float64)
    return None
