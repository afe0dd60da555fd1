"""One labeled grid: its velocity, where it is, and what its attributes say of it."""

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.fields.quads import (
    close_columns,
    grid_angles,
    lattice_axes,
    unit_vectors,
)
from jaxtrace.fields.terrain import Stretching
from jaxtrace.io.cf import (
    LENGTHS,
    SPEEDS,
    TURNING,
    Vertical,
    canonical,
    degrees,
    find_angle,
    find_positions,
    find_radius,
    follows_terrain,
    is_geographic,
    only_counts,
    place_nodes,
    points_east,
    read_rise,
    read_vertical,
    velocity_variables,
)
from jaxtrace.io.decoding import (
    Columns,
    Dates,
    Levels,
    dimension_roles,
    make_levels,
    read_dates,
    read_stretching,
    read_texts,
    read_values,
)
from jaxtrace.io.geometry import ascending, same_geometry
from jaxtrace.sphere import (
    EARTH_RADIUS,
    RADIAN,
    close_longitudes,
    repeats_first,
)

_OCEAN = {"uo", "water_u", "uvel", "UVEL", "vozocrtx", "ugos"}
_TEXTS = ("Times", "xtime")  # dates as text, of WRF, FVCOM and MPAS
FASTEST = {True: 50.0, False: 200.0}  # m/s, of the ocean and of the air: more is a fill
FILLS = 1e19  # of a variable: 1e20, 9.97e36 and 1e37 circulate


class Sites(NamedTuple):
    """Two-dimensional longitudes and latitudes, rows first, and their dimensions.

    `axes` are one-dimensional ones where rows and columns are parallels and meridians.
    """

    lon: Any
    lat: Any
    x: np.ndarray
    y: np.ndarray
    roles: dict[str, str]
    axes: tuple[np.ndarray, np.ndarray] | None


class Choices(NamedTuple):
    """What a user says in place of the file."""

    names: Sequence[str] | None
    geometry: str | None
    radius: float | None
    units: str | None


class Part:
    """One dataset: its velocity variables, its axes and its instants."""

    _guesses = True  # whether names alone are a reason to warn
    _between = False  # whether values are between levels, not on them

    def __init__(self, dataset: Any, label: str, choices: Choices) -> None:
        self.label = label
        self.names = velocity_variables(dataset, choices.names, label)
        self._variables = [dataset[name] for name in self.names]
        # A scalar to be sampled is read as both components.
        self.scalar = self.names[0] == self.names[1]
        first = self._variables[0]
        standard = str(first.attrs.get("standard_name", ""))
        self._ocean = "sea_" in standard or self.names[0] in _OCEAN
        self._factors, self._said = [1.0] * len(self.names), list[str]()
        self._vertical = Vertical()
        self._terrain: Levels | None = None
        self._keep: list[Any] = [slice(None)] * 3
        self._find_dimensions(dataset, choices)
        self.radius = self._find_radius(dataset, choices)
        self.axes: TensorGrid | CurvilinearGrid = self._place(dataset)
        self.raw_times = self._times(dataset, first)

    def _find_dimensions(self, dataset: Any, choices: Choices) -> None:
        """Find what the dimensions are, and where their nodes are."""
        first, label = self._variables[0], self.label
        self._sites: Sites | None = None
        flat = choices.geometry == "flat"
        if not flat and (found := find_positions(dataset, first)) is not None:
            lon, lat = found
            x, y = place_nodes(lon, lat.transpose(*lon.dims))
            known = dict(zip("yx", lon.dims, strict=True))
            self._sites = Sites(lon, lat, x, y, known, lattice_axes(x, y))
        self.roles = dimension_roles(first, label, self._sites and self._sites.roles)
        for variable in self._variables[1:]:
            if set(variable.dims) != set(first.dims):
                raise ValueError(
                    f"{label}: {variable.name!r} has the dimensions {variable.dims} "
                    f"and {first.name!r} has {first.dims}; bring the components to the "
                    "same points first, or to stay on levels give velocity_field_name= "
                    "the two horizontal variables only"
                )
        if not flat:
            self._find_terrain(dataset)
            if self._terrain is not None:
                self._as_sites()

    def _as_sites(self) -> None:
        """Take straight axes as positions of two dimensions too."""
        first, sites = self._variables[0], self._sites
        if sites is None:
            names = [self.roles.get(role) for role in "xy"]
            if not set(names) <= set(first.coords):
                raise ValueError(
                    f"{self.label}: {self.names[0]!r} has no longitudes and latitudes; "
                    "add the file of the grid"
                )
            lon, lat = (first.coords[name] for name in names)
            x, y = np.meshgrid(degrees(lon), degrees(lat))
            sites = Sites(lon, lat, x, y, {}, None)
        self._sites = sites._replace(axes=None)

    def _find_terrain(self, dataset: Any) -> None:
        """Find levels that follow the terrain: s- and sigma-coordinates of CF."""
        first, dimension = self._variables[0], self.roles.get("z")
        if dimension is None or first.sizes[dimension] == 1:
            return
        known = dimension in first.coords
        levels = first.coords[dimension] if known else first[dimension]
        if not follows_terrain(levels) or re.search(
            "hybrid|sigma_z", str(levels.attrs)
        ):
            return
        label = f"{self.label}: {first.name!r}"
        depth, stretching, self._falls, surface = read_stretching(
            dataset, levels, self._between, label
        )
        order = [self.roles[role] for role in "yx"]
        if set(order) == set(depth.dims):
            depth = depth.transpose(*order)
        words = f"transform {stretching.transform}"
        self._follow_terrain(depth, stretching, surface, words)

    def _follow_terrain(
        self, depth: Any, stretching: Stretching, surface: Any, words: str
    ) -> None:
        """Take levels that follow the terrain, and the surface where there is one."""
        columns = Columns(depth, stretching, self._falls, surface)
        place = lambda values: self._at_nodes(values)
        keep = lambda z: z[:, self._keep[0]]
        self._terrain, said = make_levels(columns, self.roles.get("t"), place, keep)
        self._said.append(said)
        self._vertical = Vertical(words=f"z up, depth = -z, levels of {words}")

    def _at_nodes(self, columns: np.ndarray) -> np.ndarray:
        """Return what is known of columns at the nodes of the grid."""
        return columns

    def _place(self, dataset: Any) -> TensorGrid | CurvilinearGrid:
        """Return the grid of the velocity, and keep how its values are laid out."""
        self._turn: tuple[np.ndarray, np.ndarray] | None = None
        stored = [self._coordinate(self._variables[0], role) for role in "xyz"]
        terrain = self._terrain
        if terrain is not None:
            z = terrain.axis()
            stored[2] = z[::-1] if self._falls else z
        sites = self._sites
        curved = sites is not None and sites.axes is None
        if self.radius is not None:
            stored = [*stored[:2], self._vertical.factor * stored[2]]
            if not curved:
                stored = self._go_round(stored)
        self._stored = tuple(stored)
        axes, _ = ascending(self._stored, {})
        if sites is None or not curved:
            return TensorGrid(axes, radius=self.radius)
        x, y = sites.x, sites.y
        repeated, open_ = close_columns(unit_vectors(x, y))
        columns = np.arange(x.shape[1] - max(repeated - 1, 0))
        self._keep[0] = np.append(columns, 0) if open_ else columns
        self._turn = self._turned(dataset, sites)
        x, y = x[:, self._keep[0]], y[:, self._keep[0]]
        return CurvilinearGrid(
            x, y, axes[2], self.radius, scalar=self.scalar, **self._folds()
        )

    def _folds(self) -> dict[str, Any]:
        """Return what a grid has to know of levels with heights of their own."""
        levels = self._terrain
        if levels is None:
            return {}
        heights = None if levels.moving else levels.heights(0)
        stay = len(self._variables) == 2 and not self.scalar
        return {"heights": heights, "moving": levels.moving, "stay": stay}

    def _turned(
        self, dataset: Any, sites: Sites
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return cosine and sine of the angle from east to the grid's own direction."""
        first = self._variables[0]
        if self.scalar or points_east(first):
            return None
        self._said.append(f"{self.names[0]}, {self.names[1]} along the grid: turned")
        angles = find_angle(dataset, first)
        if angles is None:
            angles = grid_angles(sites.x, sites.y)
        order = [self.roles[r] for r in "yx"]
        if not isinstance(angles, np.ndarray):
            angles = degrees(angles.transpose(*order)) / RADIAN
        angles = angles[:, self._keep[0]].T[..., None]
        return np.cos(angles), np.sin(angles)

    def _find_radius(self, dataset: Any, choices: Choices) -> float | None:
        """Return the radius of a sphere, None for a flat grid, and read the units."""
        first = self._variables[0]
        axes = {r: first.coords[d] for r, d in self.roles.items() if d in first.coords}
        if self._sites is not None:
            axes |= {"x": self._sites.lon, "y": self._sites.lat}
        if choices.geometry == "flat":
            if choices.radius is not None:
                raise ValueError("radius= needs geometry='sphere'")
            self._factors = self._flat_factors(axes, choices)
            return None
        found = is_geographic(axes, self.label)
        if found is None and choices.geometry != "sphere":
            self._refuse_indices(axes)
            self._factors = self._flat_factors(axes, choices)
            return None
        units = [choices.units or v.attrs.get("units", "") for v in self._variables]
        if canonical(units[0]) in TURNING:
            return None
        if found == "guessed" and choices.geometry is None and self._guesses:
            names = ", ".join(str(axes[role].name) for role in "xy")
            words = f"only the names {names} say longitude and latitude"
            self._said.append(f"guessed a sphere: {words}")
            warnings.warn(
                f"{self.label}: guessed a sphere: {words}; give geometry='sphere', or "
                "'flat' if they are not",
                stacklevel=2,
            )
        if "z" in axes and self._terrain is None:
            self._vertical = read_vertical(axes["z"], self._ocean, self.label)
        self._factors = [self._factor(i, unit) for i, unit in enumerate(units)]
        stated = find_radius(dataset, first)
        if stated is not None and choices.radius is None:
            self._said.append("radius from the grid mapping of the file")
        return choices.radius or stated or EARTH_RADIUS

    def _flat_factors(self, axes: Mapping[str, Any], choices: Choices) -> list[float]:
        """Return what turns components into units of the axes per second.

        They are 1 where the file does not say both units.
        """
        if self._between and "z" in axes and self._terrain is None:
            self._vertical = read_vertical(axes["z"], self._ocean, self.label)
        if any("projection" in str(a.attrs) for a in axes.values()):
            self._said.append("projected positions: the scale of the map is left out")
        factors = []
        for role, variable in zip("xyz", self._variables, strict=False):
            attributes = axes[role].attrs if role in axes else {}
            length = LENGTHS.get(canonical(attributes.get("units", "")), 0.0)
            unit, down = canonical(choices.units or variable.attrs.get("units", "")), 1
            if role == "z" and self._between:
                length = 1.0  # z is in meters upward already
            elif role == "z" and attributes.get("positive") == "down":
                down = 1 if "downward" in str(variable.attrs) else -1
            scale = SPEEDS[unit] / length if length and unit in SPEEDS else 1.0
            factors.append(scale * down)
        if factors != [1.0] * len(factors):
            self._said.append("velocity in units of the axes per second")
        return factors

    def _factor(self, index: int, stated: str) -> float:
        """Return what turns a component into meters per second (or pascals)."""
        variable, unit = self._variables[index], canonical(stated)
        if not unit:
            unit = "m/s"
            self._said.append(f"{variable.name} has no units: m/s assumed")
        if index == 2:
            return read_rise(variable, unit, self._vertical, self.label)
        if unit not in SPEEDS:
            raise ValueError(
                f"{self.label}: the units {stated!r} of {variable.name!r} are unknown; "
                "give velocity_units= one of "
                f"{', '.join(SPEEDS)}"
            )
        return SPEEDS[unit]

    def _refuse_indices(self, axes: dict[str, Any]) -> None:
        """Refuse a geophysical variable whose axes only count nodes."""
        first = self._variables[0]
        known = self._ocean or "standard_name" in first.attrs
        known |= any(str(d).lower().startswith(("lon", "lat")) for d in first.dims)
        there = [axes[role] for role in "xy" if role in axes]
        blank = points_east(first) and not any("units" in a.attrs for a in there)
        if known and (blank or all(map(only_counts, there))):
            raise ValueError(
                f"{self.label}: {self.names[0]!r} has no coordinates for "
                f"{first.dims[-2:]} with units; give it longitude and latitude, or "
                "geometry='sphere' if they are, 'flat' if not"
            )

    def _go_round(self, stored: list[np.ndarray]) -> list[np.ndarray]:
        """Return axes in degrees and meters upward, without what repeats or breaks."""
        first = self._variables[0]
        for index, role in enumerate("xy" if self._sites is None else ""):
            if self.roles.get(role) in first.coords:
                stored[index] = degrees(first.coords[self.roles[role]])
        stored[0] = np.unwrap(stored[0], period=360)
        if repeats_first(stored[0]):
            stored[0], self._keep[0] = stored[0][:-1], slice(0, -1)
        low, high = (self._breaks(stored[1], end) for end in (0, -1))
        if low or high:
            self._keep[1] = slice(int(low), -1 if high else None)
            stored[1] = stored[1][self._keep[1]]
            self._said.append("rows at the poles without a direction left out")
        return stored

    def _breaks(self, latitudes: np.ndarray, end: int) -> bool:
        """Return whether a row at a pole is masked, or one value for all longitudes."""
        if latitudes.size < 3 or abs(abs(latitudes[end]) - 90) > 1e-6:
            return False
        where = {d: 0 for r, d in self.roles.items() if r in "tz"}
        where[self.roles["y"]] = end
        rows = [read_values(v.isel(where)) for v in self._variables[:2]]
        return any(np.isnan(r).any() for r in rows) or all(np.ptp(r) == 0 for r in rows)

    def notes(self, calendar: str | None) -> tuple[str, ...]:
        """Return in words how the file was read."""
        if self.radius is None:
            return tuple(self._said)
        if isinstance(self.axes, CurvilinearGrid):
            closed = self.axes.span[2]
        else:
            closed = close_longitudes(self.axes.axes[0]).closed
        ends = "longitudes wrap" if closed else "a region that particles may leave"
        facts = (
            f"sphere: {self.axes.words}, radius "
            f"{self.radius:,.1f} m, velocity in m/s, {self._vertical.words}, {ends}"
            f", {'no dates' if calendar is None else f'{calendar} calendar'}"
        )
        return (facts, *self._said)

    def check_speed(self, values: np.ndarray, label: str) -> None:
        """Raise ValueError for speeds that no ocean and no wind has."""
        largest = np.abs(values[..., : 1 if self.scalar else 2])
        fastest = float(np.nanmax(largest, initial=0.0))
        if self.scalar and fastest > FILLS:
            raise ValueError(
                f"{label}: {self.names[0]} is {fastest:.4g} at most, a fill value that "
                "the file does not state: give it the attribute _FillValue"
            )
        if self.radius is None or self.scalar:
            return
        if fastest > FASTEST[self._ocean]:
            raise ValueError(
                f"{label}: {fastest:.4g} m/s is above {FASTEST[self._ocean]:g} m/s, a "
                f"fill value or another unit; correct the file, or give velocity_units="
            )

    def _coordinate(self, variable: Any, role: str) -> np.ndarray:
        dimension = self.roles.get(role)
        if dimension is None:
            return np.zeros(1)
        if role in "xy" and self._sites is not None:
            axes = self._sites.axes
            return np.zeros(1) if axes is None else axes["xy".index(role)]
        if dimension in variable.coords:
            return np.asarray(variable.coords[dimension].values, np.float64)
        flat = [n for n, c in variable.coords.items() if dimension in c.dims]
        if any(variable.coords[name].ndim > 1 for name in flat):
            raise ValueError(
                f"{self.label}: dimension {dimension!r} is placed by the curvilinear "
                f"coordinates {', '.join(map(str, flat))}, which are not longitude and "
                "latitude; regrid to straight axes"
            )
        return np.arange(variable.sizes[dimension], dtype=np.float64)

    def _times(self, dataset: Any, variable: Any) -> np.ndarray:
        self.dates: Dates | None = None
        dimension = self.roles.get("t")
        if dimension is None:
            return np.zeros(1)
        if dimension not in variable.coords:
            for name in _TEXTS:
                texts = dataset.variables.get(name)
                if texts is not None and texts.dims == (dimension,):
                    values = read_texts(texts.values)
                    self.dates = read_dates(texts, values, self.label)
                    return values
            if self.radius is not None and variable.sizes[dimension] > 1:
                raise ValueError(
                    f"{self.label}: the dimension {dimension!r} of {variable.name!r} "
                    "has no times: give it a coordinate with units, or choose one of "
                    f"it, as xarray does by isel({dimension}=0)"
                )
            return np.arange(variable.sizes[dimension], dtype=np.float64)
        coordinate = variable.coords[dimension]
        values = np.asarray(coordinate.values)
        bounds = coordinate.attrs.get("bounds", coordinate.encoding.get("bounds", ""))
        ends, methods = dataset.get(bounds), str(variable.attrs.get("cell_methods", ""))
        # XIOS says time whatever the dimension is called.
        mean = any(f"{name}: mean" in methods for name in (dimension, "time"))
        if mean and ends is not None and ends.ndim == 2:
            low, high = (np.asarray(ends.values)[:, end] for end in (0, 1))
            values = low + (high - low) / 2  # numbers, or dates if xarray decoded them
            self._said.append("means are placed at the middle of their time bounds")
        if values.dtype.kind == "m":  # durations, counted from the first
            return (values - values[0]) / np.timedelta64(1, "s")
        self.dates = read_dates(coordinate, values, self.label)
        units = str(coordinate.attrs.get("units", ""))
        if self.dates is None and units not in ("", "1"):
            self._said.append(f"the units {units!r} of time are unknown: s assumed")
        return values

    def check_like(self, first: "Part") -> None:
        """Raise ValueError unless grid and variables are those of the first dataset."""
        if self.names != first.names or not same_geometry(self.axes, first.axes):
            raise ValueError(
                f"{self.label}: {self.axes.words} with {self.names} differs from "
                f"{first.axes.words} with {first.names} in {first.label}"
            )

    def read(self, row: int, dtype: np.dtype) -> np.ndarray:
        """Return one instant as (Nx, Ny, Nz, 3) on increasing axes.

        Curvilinear grids have their rows first.
        """
        parts = [
            self._slab(variable, self.roles, "xyz", row, dtype)[tuple(self._keep)]
            * dtype.type(factor)
            for variable, factor in zip(self._variables, self._factors, strict=True)
        ]
        out = np.stack([*parts, *[np.zeros_like(parts[0])] * (3 - len(parts))], axis=-1)
        if isinstance(self.axes, CurvilinearGrid):
            if self._turn is not None:
                cos, sin = self._turn
                u, v = out[..., 0].copy(), out[..., 1].copy()
                out[..., 0], out[..., 1] = u * cos - v * sin, u * sin + v * cos
            levels = self._stored[2]
            falls = levels.size > 1 and levels[1] < levels[0]
            out = out.transpose(1, 0, 2, 3)
            out = (out[:, :, ::-1] if falls else out).copy()
            levels = self._terrain
            return out if levels is None else levels.complete(out, row, 2)
        return ascending(self._stored, {"": out})[1][""].copy()

    def _slab(
        self, variable: Any, roles: dict[str, str], order: str, row: int, dtype: Any
    ) -> np.ndarray:
        """Return a variable at one instant, its axes in the order of their roles."""
        if "t" in roles:
            variable = variable.isel({roles["t"]: row})
        names = [roles[role] for role in order if role in roles]
        extra = [d for d in variable.dims if d not in names]  # of one, as models have
        values = read_values(variable.squeeze(extra, drop=True).transpose(*names))
        flat = tuple(i for i, role in enumerate(order) if role not in roles)
        return np.expand_dims(values.astype(dtype), flat)
