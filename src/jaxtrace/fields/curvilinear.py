"""Velocities on curvilinear grids: at their nodes, or on the faces of their cells.

At nodes (Arakawa A) a velocity is a vector in space, bilinear in a cell: nothing is
special at a pole. On faces (C) the transport through each is kept: it is linear across
the cell (Delandmeter and van Sebille, 2019), so that a closed face lets nothing pass
and a flow without divergence has none inside cells.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import dtypes, lax
from jaxtyping import Array, Bool, Float

from jaxtrace.fields.base import CellHint, Corner
from jaxtrace.fields.clock import Clock, Instant
from jaxtrace.fields.grid import (
    Axis,
    Shore,
    TableField,
    field_clock,
    hold_levels,
    make_axis,
)
from jaxtrace.fields.quads import (
    EDGE,
    NOWHERE,
    WALL,
    Cells,
    Place,
    Quads,
    make_quads,
    unit_vectors,
)
from jaxtrace.sphere import Sphere, angle, make_sphere

Positions = Float[Array, "n 3"]


@dataclass(frozen=True, eq=False)
class CurvilinearGrid:
    """Rows and columns of positions, and levels: where values of a grid are.

    Without `faces` values are at the positions, which are nodes, and on the levels `z`.
    With `faces` the positions are corners of cells, `z` the faces between levels (one
    number where there are none), and the value [j, i, k] has the velocities through the
    faces of cell [j, i, k] that come first along i, j and z. Flat grids have no radius.
    """

    x: Float[np.ndarray, "rows columns"]
    y: Float[np.ndarray, "rows columns"]
    z: Float[np.ndarray, " levels"]
    radius: float | None = None
    land: Bool[np.ndarray, "rows columns levels"] | None = None  # nodes, or cells
    shore: str = "beach"
    faces: bool = False
    scalar: bool = False  # components are no vectors: a variable and its mask
    #: Meters along the faces first along i and j; without, those between corners.
    lengths: tuple[np.ndarray, np.ndarray] | None = None
    terrain: Any = None  # a Terrain, where levels follow it; `z` are then the deepest

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return rows, columns and levels."""
        return (*self.x.shape, self.z.size)  # type: ignore[return-value]

    @property
    def n_points(self) -> int:
        """Number of values."""
        return self.x.size * self.z.size

    @property
    def vectors(self) -> bool:
        """Return whether values are stored as vectors in space."""
        return self.radius is not None and not self.faces and not self.scalar

    @cached_property
    def corners(self) -> Float[np.ndarray, "rows columns 3"]:
        """Return positions in space: on the unit sphere, or at height 1."""
        if self.radius is not None:
            return unit_vectors(self.x, self.y)
        return np.stack([self.x, self.y, np.ones_like(self.x)], -1)

    def points(self) -> Float[np.ndarray, "nodes 3"]:
        """Return the positions of all values, levels fastest."""
        columns = [np.broadcast_to(a[..., None], self.shape) for a in (self.x, self.y)]
        z = np.broadcast_to(self.z, self.shape)
        return np.stack([*columns, z], -1).reshape(-1, 3)

    @cached_property
    def span(self) -> tuple[float, float, bool]:
        """Return the ends of the longitudes, and whether they go all the way round."""
        x = self.x[np.isfinite(self.x)]
        if self.radius is None:
            return float(x.min()), float(x.max()), False
        at = np.unique(np.mod(x, 360))
        gaps = np.diff(at, append=at[0] + 360)
        widest = int(np.argmax(gaps))
        if gaps[widest] < 20:
            west = 0.0 if x.min() >= 0 and x.max() > 180 else -180.0
            return west, west + 360, True
        west = at[(widest + 1) % at.size]
        east = west + 360 - gaps[widest]
        turn = 360 * np.round((x.min() - west) / 360) if x.min() < 0 else 0.0
        return float(west + turn), float(east + turn), False

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the lowest and the highest corner around all positions."""
        west, east, _ = self.span
        low, high = np.nanmin(self.y), np.nanmax(self.y)
        return np.array([west, low, self.z[0]]), np.array([east, high, self.z[-1]])

    def sphere(self, top: float) -> Sphere | None:
        """Return the sphere, whose longitudes begin where the grid does."""
        if self.radius is None:
            return None
        west, east, closed = self.span
        return make_sphere(
            self.radius, west if closed else (west + east) / 2 - 180, top
        )

    def spacing(self) -> Float[np.ndarray, "2 rows columns"]:
        """Return meters to the next position along i and along j, the last held."""
        unit = self.radius or 1.0
        along = [np.linalg.norm(np.diff(self.corners, axis=a), axis=-1) for a in (1, 0)]
        if self.radius is not None:
            along = [2 * np.arcsin(np.minimum(chord / 2, 1)) for chord in along]
        columns = np.pad(along[0], ((0, 0), (0, 1)), mode="edge")
        rows = np.pad(along[1], ((0, 1), (0, 0)), mode="edge")
        return unit * np.stack([columns, rows])


class CurvilinearField(TableField):
    """Velocities at the nodes of a curvilinear grid, bilinear in its cells."""

    values: Float[Array, "slices components places"]
    quads: Quads
    levels: Axis
    clock: Clock
    box: Float[np.ndarray, "2 3"]
    sphere: Sphere | None = None  # type: ignore[override]
    land: Bool[Array | np.ndarray, " places"] | None = None  # cells
    shore: Shore = eqx.field(static=True, default="beach")  # type: ignore[override]
    #: Values are along three axes in space, then upward; else as they are given.
    vectors: bool = eqx.field(static=True, default=False)

    searches = True

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the corners of the box around all nodes."""
        return np.asarray(self.box)[0], np.asarray(self.box)[1]

    def start(self, positions: Positions) -> Cells:
        """Return the cell of every position."""
        return self.quads.start(positions)

    def velocity(
        self, positions: Positions, instant: Instant, cell_hint: CellHint
    ) -> tuple[Positions, Cells]:
        """Return bilinear in cells, linear between levels, blended in time."""
        sight = self.quads.sight(positions)
        place, hint = self.quads.locate(sight, cell_hint)
        level, share = self._level(positions)
        count, dtype = self.levels.nodes.shape[0], self.values.dtype
        xi, eta = (jnp.clip(x, 0, 1).astype(dtype) for x in (place.xi, place.eta))
        corners = self.quads.corners(place.cell)
        at = [(c * count + level).astype(np.uint32) for c in corners]

        def blend(component: int) -> Array:
            def layer(step: int) -> Array:
                a, b, c, d = (
                    self._load(component, i + np.uint32(step), instant) for i in at
                )
                low, high = a + xi * (b - a), c + xi * (d - c)
                return low + eta * (high - low)

            lower = layer(0)
            return lower if count == 1 else lower + share * (layer(1) - lower)

        east, north, *up = (blend(c) for c in range(self.values.shape[1]))
        if self.vectors:
            x, y, (z, *up) = east, north, up
            along = lambda to: x * to[0] + y * to[1] + z * to[2]
            east, north = (
                along([t.astype(dtype) for t in d]) for d in (sight.east, sight.north)
            )
        found = jnp.stack([east, north, up[0] if up else jnp.zeros_like(east)], 1)
        known = (hint != NOWHERE)[:, None]
        return jnp.where(known, found, 0).astype(positions.dtype), hint

    def _level(self, positions: Positions) -> tuple[Cells, Array]:
        level, share = self.levels.place(positions[:, 2], "clamp")
        return level, share.astype(self.values.dtype)

    def inside(self, positions: Positions, cell_hint: CellHint) -> Bool[Array, " n"]:
        """Return who is in a cell, and between the ends of the levels."""
        return (cell_hint >= 0) & self.levels.holds(positions[:, 2])

    def order(self, positions: Positions, cell_hint: CellHint) -> Cells:
        """Return the cells: those close in number are close in memory."""
        del positions
        return jnp.maximum(cell_hint, 0)

    def on_land(
        self, positions: Positions, cell_hint: CellHint | None = None
    ) -> Bool[Array, " n"] | None:
        """Return which positions are in cells of land."""
        if self.land is None:
            return None
        cell = self.start(positions) if cell_hint is None else cell_hint
        at = jnp.maximum(cell, 0) * self._shelves + self._level(positions)[0]
        return (cell >= 0) & jnp.asarray(self.land).at[at].get(mode="clip")

    @property
    def _shelves(self) -> int:
        """Return how many values are above each other."""
        return self.levels.nodes.shape[0]


class StaggeredField(CurvilinearField):
    """Transports through the faces of cells, each linear across its cell.

    Stored are speeds times the lengths of faces (of their area, for those between
    levels): a velocity is (x_xi F + x_eta G) / J, J the area per unit of xi and eta.
    """

    def velocity(
        self, positions: Positions, instant: Instant, cell_hint: CellHint
    ) -> tuple[Positions, Cells]:
        """Return the velocity that carries the transports through the cell."""
        level, share = self._level(positions)
        place, hint = self._find(positions, cell_hint, level)
        dtype = self.values.dtype
        xi, eta = (jnp.clip(x, 0, 1).astype(dtype) for x in (place.xi, place.eta))
        along = self._transport(0, place.cell, level, self._shelves, xi, instant)
        row = self.quads.width * self._shelves
        across = self._transport(1, place.cell, level, row, eta, instant)
        unit = 1.0 if self.sphere is None else jnp.asarray(self.sphere.radius, dtype)
        e_xi, e_eta, n_xi, n_eta = (unit * s.astype(dtype) for s in place.slopes)
        area = jnp.abs(e_xi * n_eta - e_eta * n_xi)
        known = (hint != NOWHERE) & (area > 0)
        per = jnp.where(known, 1 / jnp.where(area > 0, area, 1), 0)
        up = jnp.zeros_like(along)
        if self.values.shape[1] > 2:
            up = self._transport(2, place.cell, level, 1, share, instant)
        found = [e_xi * along + e_eta * across, n_xi * along + n_eta * across, up]
        return jnp.stack([per * c for c in found], 1).astype(positions.dtype), hint

    def settle(
        self, positions: Positions, cell_hint: CellHint
    ) -> tuple[Positions, Cells]:
        """Return positions with those beyond a closed face put back onto it."""
        place, hint = self._find(positions, cell_hint, self._level(positions)[0])
        across = (hint >= 0) & ~place.held
        positions = self._hold(positions, place)

        def put_back() -> Positions:
            x, y, z = self.quads.patch_point(place)
            there = (x, y)
            if self.sphere is not None:
                lon = angle(y, x)
                turn = 360 * jnp.round((positions[:, 0] - lon) / 360)
                there = lon + turn, angle(z, jnp.sqrt(x * x + y * y))
            back = jnp.stack([*there, positions[:, 2]], 1).astype(positions.dtype)
            return jnp.where(across[:, None], back, positions)

        return lax.cond(jnp.any(across), put_back, lambda: positions), hint

    def _hold(self, positions: Positions, place: Place) -> Positions:
        """Return positions between the bottom and the surface."""
        del place
        return positions

    def _find(
        self, positions: Positions, cell_hint: CellHint, level: Cells
    ) -> tuple[Place, Cells]:
        sight = self.quads.sight(positions)
        return self.quads.locate(sight, cell_hint, self.land, level, self._shelves)

    def _transport(
        self,
        component: int,
        cell: Cells,
        level: Cells,
        step: int,
        share: Array,
        instant: Instant,
    ) -> Array:
        """Return what passes between two opposite faces of cells."""
        at = (cell * self._shelves + level).astype(np.uint32)
        first = self._load(component, at, instant)
        return first + share * (
            self._load(component, at + np.uint32(step), instant) - first
        )


def pack_curvilinear(
    grid: CurvilinearGrid, values: Any, dtype: Any
) -> Float[np.ndarray, "slices components places"]:
    """Return velocities (T, rows * columns * levels, 3) as the field stores them."""
    values = np.asarray(values).reshape(-1, *grid.shape, 3)
    u, v, w = (values[..., c] for c in range(3))
    parts: list[np.ndarray] = [u, v]
    if grid.faces:
        columns, rows = grid.spacing() if grid.lengths is None else grid.lengths[::-1]
        parts = [u * rows[..., None], v * columns[..., None]]
        if grid.terrain is not None:
            thick = grid.terrain.face_thickness()
            parts = [np.nan_to_num(p) * t for p, t in zip(parts, thick, strict=True)]
            parts.append(grid.terrain.rise(*parts))
        elif grid.z.size > 1:
            parts.append(w * cell_areas(grid)[..., None])
    else:
        if grid.vectors:
            x, y = np.radians(np.nan_to_num(grid.x)), np.radians(np.nan_to_num(grid.y))
            sin, cos, high = (f[..., None] for f in (np.sin(x), np.cos(x), np.sin(y)))
            parts = [-sin * u - high * cos * v, cos * u - high * sin * v]
            parts.append(np.cos(y)[..., None] * v)
        if w.any() or grid.z.size > 1:
            parts.append(w)
    table = np.stack([np.nan_to_num(p) for p in parts], 1)
    return table.reshape(len(values), len(parts), -1).astype(dtype)


def unpack_curvilinear(grid: CurvilinearGrid, stored: Any) -> Array:
    """Return velocities (T, rows * columns * levels, 3) that a field stores."""
    parts = jnp.asarray(stored).reshape(*stored.shape[:2], *grid.shape)
    if grid.faces:
        columns, rows = grid.spacing() if grid.lengths is None else grid.lengths[::-1]
        sizes = [s[..., None] for s in (rows, columns, cell_areas(grid))]
        if grid.terrain is not None:
            thick = (*grid.terrain.face_thickness(), 1.0)
            sizes = [s * t for s, t in zip(sizes, thick, strict=True)]
        found = [
            parts[:, c] / jnp.asarray(np.where(s > 0, s, 1), parts.dtype)
            for c, s in enumerate(sizes[: parts.shape[1]])
        ]
    else:
        x, y = np.radians(np.nan_to_num(grid.x)), np.radians(np.nan_to_num(grid.y))
        turn = lambda a: jnp.asarray(a[..., None], parts.dtype)
        sin, cos, high, wide = map(turn, (np.sin(x), np.cos(x), np.sin(y), np.cos(y)))
        found = [parts[:, c] for c in range(parts.shape[1])]
        if grid.vectors:
            east = cos * parts[:, 1] - sin * parts[:, 0]
            radial = cos * parts[:, 0] + sin * parts[:, 1]
            found = [east, wide * parts[:, 2] - high * radial, *found[3:]]
    found += [jnp.zeros_like(found[0])] * (3 - len(found))
    return jnp.stack(found, -1).reshape(len(parts), -1, 3)


def cell_areas(grid: CurvilinearGrid) -> Float[np.ndarray, "rows columns"]:
    """Return the areas of cells, of the bilinear patch between their corners."""
    p = grid.corners
    across = p[:-1, 1:] + p[1:, 1:] - p[:-1, :-1] - p[1:, :-1]
    along = p[1:, :-1] + p[1:, 1:] - p[:-1, :-1] - p[:-1, 1:]
    area = np.linalg.norm(np.cross(across, along), axis=-1) / 4
    return (grid.radius or 1.0) ** 2 * np.pad(np.nan_to_num(area), ((0, 1), (0, 1)))


def closed_cells(closed: Bool[np.ndarray, "rows columns levels 2"]) -> np.ndarray:
    """Return the cells (rows, columns, levels) whose four upright faces are closed."""
    u, v = closed[..., 0], closed[..., 1]
    cells = np.ones(u.shape, bool)
    cells[:-1, :-1] = u[:-1, :-1] & u[:-1, 1:] & v[:-1, :-1] & v[1:, :-1]
    return cells


def make_curvilinear_field(
    grid: CurvilinearGrid,
    values: Any,
    times: Any = None,
    *,
    interpolation: str = "linear",
    extrapolation: str = "constant",
    dtype: Any = None,
) -> CurvilinearField:
    """Make the field of velocities ([T,] rows, columns, levels, 3) on a grid."""
    values = np.asarray(values)
    if times is None:
        values = values[None]
    clock = field_clock(values, times, interpolation, extrapolation)
    dtype = dtypes.canonicalize_dtype(values.dtype if dtype is None else dtype)
    quads = make_quads(grid.corners, dtype, grid.radius is None)
    levels, top = make_axis(grid.z, "z", "clamp"), np.inf
    land = grid.land
    if grid.faces:
        # Nothing passes the lowest and the highest face, so that nobody is beyond.
        top = grid.z[-1] if grid.z.size > 1 else np.inf
        levels = eqx.tree_at(lambda a: a.ends, levels, np.array([-np.inf, np.inf]))
    else:
        levels, top = hold_levels(levels)
        land = None if land is None else _all_land(land)
    table = pack_curvilinear(grid, values, dtype)
    if grid.faces:
        quads = _close_rim(quads, table, grid)
    return (StaggeredField if grid.faces else CurvilinearField)(
        jnp.asarray(table),
        quads,
        levels,
        clock,
        np.stack(grid.bounds()),
        grid.sphere(top),
        None if land is None else jnp.asarray(land.reshape(-1)),
        cast(Shore, grid.shore),
        grid.vectors,
    )


def _close_rim(quads: Quads, table: np.ndarray, grid: CurvilinearGrid) -> Quads:
    """Return cells at the ends of the grid closed where nothing passes these."""
    flow = np.abs(table[:, :2]).max(0).reshape(2, *grid.shape).max(-1)
    u, v = flow[0], flow[1]
    after = np.pad(u[:, 1:], ((0, 0), (0, 1))), np.pad(v[1:], ((0, 1), (0, 0)))
    passes = np.stack([u, after[0], v, after[1]], -1).reshape(-1) > 0
    sides = np.asarray(quads.neighbors)
    sides = np.where((sides == EDGE) & ~passes, WALL, sides).astype(np.int32)
    return eqx.tree_at(lambda q: q.neighbors, quads, sides)


def _all_land(land: Bool[np.ndarray, "rows columns levels"]) -> np.ndarray:
    """Return the cells that have land at every corner."""
    for axis in range(3):
        if land.shape[axis] > 1:
            following = np.roll(land, -1, axis)
            end = [slice(None)] * 3
            end[axis] = slice(-1, None)
            following[tuple(end)] = land[tuple(end)]
            land = land & following
    return land
