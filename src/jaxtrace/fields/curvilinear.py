"""Velocities on curvilinear grids and on meshes of triangles on a sphere.

At nodes (Arakawa A) a velocity is a vector in space, (bi)linear in a cell: nothing is
special at a pole. On faces of a grid (C) the transport through each is kept: it is
linear across the cell (Delandmeter and van Sebille, 2019), so that a closed face lets
nothing pass and a flow without divergence has none inside cells.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import dtypes, lax
from jaxtyping import Array, Bool, Float, UInt8

from jaxtrace.fields.base import AbstractField, CellHint, Corner
from jaxtrace.fields.clock import Clock, Instant, Numbers, make_clock
from jaxtrace.fields.coast import land_cells, slide_vectors
from jaxtrace.fields.curved_grid import CurvilinearGrid, pack_curvilinear
from jaxtrace.fields.grid import Axis, TableField, hold_levels, make_axis
from jaxtrace.fields.quads import (
    EDGE,
    NOWHERE,
    SIDES,
    WALL,
    Cells,
    Place,
    Quads,
    entries,
    make_quads,
)
from jaxtrace.fields.terrain import Layer
from jaxtrace.fields.triangles import Triangles, make_triangles
from jaxtrace.sphere import Sphere, angle

Positions = Float[Array, "n 3"]


class CurvilinearField(TableField):
    """Velocities at the nodes of a curvilinear grid, bilinear in its cells.

    Levels may have `heights` of their own at every place; those of levels that are
    `moving` are the last component of the values. Beyond a closed `rim` there is land.
    """

    values: Float[Array, "slices components places"]
    quads: Quads
    levels: Axis
    clock: Clock
    box: Float[np.ndarray, "2 3"]
    sphere: Sphere | None = None  # type: ignore[override]
    land: Bool[Array | np.ndarray, " places"] | None = None  # cells
    shore: str = eqx.field(static=True, default="beach")  # type: ignore[override]
    #: Values are along three axes in space, then upward; else as they are given.
    vectors: bool = eqx.field(static=True, default=False)
    heights: Float[Array | np.ndarray, " places"] | None = None
    moving: bool = eqx.field(static=True, default=False)
    stay: bool = eqx.field(static=True, default=False)  # on levels: there is no w
    stepped: bool = eqx.field(static=True, default=False)  # level but at the bottom
    rim: bool = eqx.field(static=True, default=False)
    #: Levels are layers of constant values, w linear between the faces of a cell.
    layered: bool = eqx.field(static=True, default=False)
    walls: UInt8[Array | np.ndarray, " places"] | None = None  # faces that are land
    slip: float = eqx.field(static=True, default=0.0)
    rates: Float[Array, " places"] | None = None  # of heights, at one instant

    searches = True

    @property
    def slips(self) -> bool:
        """Return whether the flow can be made to slip along land at nodes."""
        return self.vectors and not isinstance(self.quads, Triangles)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return rows, columns and levels."""
        places, width = self.values.shape[2], self.quads.width
        return places // (width * self._shelves), width, self._shelves

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
        layer = self._layer(place, positions, instant) if self.folded else None
        if layer is not None:
            level, share = layer.level, layer.share
        xi, eta = (x.astype(dtype) for x in self.quads.within(place))
        corners = self.quads.corners(place.cell)
        at = [(c * count + level).astype(np.uint32) for c in corners]
        mix = lambda corners: _mix(corners, xi, eta)
        components = self.values.shape[1] - self.layered - self.moving
        steps = (0,) if count == 1 or self.layered else (0, 1)
        load = lambda c, step: self._load(c, [i + np.uint32(step) for i in at], instant)
        layers = [[load(c, step) for c in range(components)] for step in steps]
        if self.walls is not None:
            faces = entries(self.walls, place.cell * count + level)
            edges = self.quads.edges(place.cell, dtype)
            layers = slide_vectors(layers, edges, faces, self.slip)
        mixed = [[mix(corners) for corners in layer] for layer in layers]
        east, north, *up = (
            low if len(mixed) == 1 else low + share * (mixed[1][c] - low)
            for c, low in enumerate(mixed[0])
        )
        if self.layered:
            below = (place.cell * count + level).astype(np.uint32)
            low, high = self._load(components, (below, below + np.uint32(1)), instant)
            up.append(low + share * (high - low))
        if self.vectors:
            x, y, (z, *up) = east, north, up
            along = lambda to: x * to[0] + y * to[1] + z * to[2]
            east, north = (
                along([t.astype(dtype) for t in d]) for d in (sight.east, sight.north)
            )
        if layer is not None and self.stay:
            up = [self._follow(place, layer, east, north)]
        found = jnp.stack([east, north, up[0] if up else jnp.zeros_like(east)], 1)
        known = (hint != NOWHERE)[:, None]
        return jnp.where(known, found, 0).astype(positions.dtype), hint

    def _level(self, positions: Positions) -> tuple[Cells, Array]:
        """Return the level; over terrain the lowest, for what is dry is dry at all."""
        if self.folded and not self.stepped:
            zero = jnp.zeros_like(positions[:, 0])
            return zero.astype(np.int32), zero.astype(self.values.dtype)
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
        """Return which positions are in cells of land, or beyond a closed rim."""
        # Who slides is within the rim again.
        rim = self.rim and not self._slides
        if self.land is None and not rim:
            return None
        cell = self.start(positions) if cell_hint is None else cell_hint
        found = jnp.zeros(cell.shape, bool)
        if self.land is not None:
            at = jnp.maximum(cell, 0) * self._shelves + self._level(positions)[0]
            found = (cell >= 0) & jnp.asarray(self.land).at[at].get(mode="clip")
        if rim:
            held = self.quads.probe(self.quads.sight(positions), jnp.maximum(cell, 0))
            found |= (cell == NOWHERE) | (cell >= 0) & ~held.held
        return found

    def settle(
        self, positions: Positions, cell_hint: CellHint, instant: Instant | None = None
    ) -> tuple[Positions, Cells]:
        """Return positions in the water, and who slides put back onto its wall."""
        mesh = isinstance(self.quads, Triangles)
        if not (self.folded or mesh or self._slides):
            return positions, cell_hint
        place, hint = self._find(positions, cell_hint)
        if isinstance(self.quads, Triangles):
            place, hint = self.quads.look_again(positions, place, hint)
        if self.heights is not None or (self.moving and instant is not None):
            # A step across a kink of the bottom ends beside its level, by dt squared.
            ends = [jnp.full_like(place.cell, k) for k in (0, self._shelves - 1)]
            low, high = (self._height(place, k, instant) for k in ends)
            known = hint != NOWHERE
            z = positions[:, 2]
            within = jnp.clip(z, *(x.astype(z.dtype) for x in (low, high)))
            positions = positions.at[:, 2].set(jnp.where(known, within, z))
        if not self._slides:
            return positions, hint
        across = (hint >= 0) & ~place.held

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

    @property
    def _slides(self) -> bool:
        """Return whether positions beyond a wall are put back onto it."""
        return self.rim and self.shore == "slide"

    def _find(self, positions: Positions, cell_hint: CellHint) -> tuple[Place, Cells]:
        return self.quads.locate(self.quads.sight(positions), cell_hint)

    @property
    def folded(self) -> bool:
        """Return whether levels have heights of their own in each column."""
        return self.moving or self.heights is not None

    @property
    def moves(self) -> bool:
        """Return whether closed faces are elsewhere at another instant."""
        return self.moving

    def instant(self, time: Numbers) -> Instant:
        """Return slices, their weights and, where levels move, the rates of these."""
        return self.clock.instant(time, rates=self.moving)

    def at_instant(
        self, instant: Instant, particles: int
    ) -> tuple[AbstractField, Instant]:
        """Return the field blended at one instant, with the rates of its heights."""
        field, now = super().at_instant(instant, particles)
        if field is self or not self.moving:
            return field, now
        assert instant.rates is not None
        weights = jnp.asarray(instant.rates).astype(self.values.dtype)
        table = self.values[:, -1]
        parts = [weights[k] * table[instant.slices[k]] for k in range(weights.size)]
        blended: Any = field
        return dataclasses.replace(
            self,
            values=blended.values[:, :-1],
            clock=blended.clock,
            heights=blended.values[0, -1],
            rates=sum(parts[1:], start=parts[0]),
            moving=False,
        ), now

    def _corner_heights(
        self, place: Place, level: Cells, instant: Instant | None
    ) -> list[Array]:
        """Return the heights of levels at the corners of cells."""
        corners = self.quads.corners(place.cell)
        at = [(c * self._shelves + level).astype(np.uint32) for c in corners]
        if self.heights is not None:
            return [entries(self.heights, i) for i in at]
        assert instant is not None
        return self._load(self.values.shape[1] - 1, at, instant)

    def _height(self, place: Place, level: Cells, instant: Instant | None) -> Array:
        """Return the heights of levels at places."""
        dtype = self.values.dtype
        xi, eta = (x.astype(dtype) for x in self.quads.within(place))
        return _mix(self._corner_heights(place, level, instant), xi, eta)

    def below_floor(
        self, positions: Positions, instant: Instant
    ) -> Bool[Array, " n"] | None:
        """Return which positions are below the lowest of levels with heights."""
        if not self.folded:
            return None
        place, hint = self._find(positions, self.start(positions))
        ends = [jnp.full_like(place.cell, k) for k in (0, self._shelves - 1)]
        low, high = (self._height(place, k, instant) for k in ends)
        rounded = 1e-4 * (high - low)
        return (hint >= 0) & (positions[:, 2].astype(low.dtype) < low - rounded)

    def _layer(self, place: Place, positions: Positions, instant: Instant) -> Layer:
        """Return the levels of positions, by bisection: heights increase upward."""
        dtype = self.values.dtype
        z = positions[:, 2].astype(dtype)
        last = self._shelves - 2
        level = jnp.zeros(z.shape, np.int32)
        step = 1 << max(last, 1).bit_length()
        while step := step // 2:
            ahead = jnp.minimum(level + step, last)
            level = jnp.where(z >= self._height(place, ahead, instant), ahead, level)
        ends = [self._corner_heights(place, level + k, instant) for k in (0, 1)]
        xi, eta = (x.astype(dtype) for x in self.quads.within(place))
        low, high = (_mix(end, xi, eta) for end in ends)
        thick = jnp.maximum(high - low, 1e-6)
        share = jnp.clip((z - low) / thick, 0, 1)
        a, b, c, *d = (p + share * (q - p) for p, q in zip(*ends, strict=True))
        twist = a - b - c + d[0] if d else jnp.zeros_like(a)
        slopes = b - a + eta * twist, c - a + xi * twist
        rate = jnp.zeros_like(z)
        if self.rates is not None:
            still = dataclasses.replace(self, heights=self.rates)
            low, high = (still._height(place, level + k, None) for k in (0, 1))
            rate = low + share * (high - low)
        elif self.moving and self.values.shape[0] > 1:
            change = Instant(instant.time, instant.slices, instant.rates)  # pyright: ignore[reportArgumentType]
            low, high = (self._height(place, level + k, change) for k in (0, 1))
            rate = low + share * (high - low)
        return Layer(level, share, thick, slopes, rate)

    def _follow(self, place: Place, layer: Layer, east: Array, north: Array) -> Array:
        """Return how fast what is carried along a level rises with it."""
        dtype = east.dtype
        unit = 1.0 if self.sphere is None else jnp.asarray(self.sphere.radius, dtype)
        e_xi, e_eta, n_xi, n_eta = (unit * s.astype(dtype) for s in place.slopes)
        det = e_xi * n_eta - e_eta * n_xi
        per = jnp.where(det != 0, 1 / jnp.where(det != 0, det, 1), 0)
        d_xi, d_eta = n_eta * east - e_eta * north, e_xi * north - n_xi * east
        z_xi, z_eta = layer.slopes
        return layer.rate + per * (z_xi * d_xi + z_eta * d_eta)

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
        place, hint = self._find(positions, cell_hint)
        dtype = self.values.dtype
        xi, eta = (jnp.clip(x, 0, 1).astype(dtype) for x in (place.xi, place.eta))
        level, share = self._level(positions)
        layer = self._layer(place, positions, instant) if self.folded else None
        if layer is not None:
            level, share = layer.level, layer.share
        at = (place.cell * self._shelves + level).astype(np.uint32)

        def transport(component: int, step: int, share: Array) -> Array:
            """Return what passes between two opposite faces."""
            faces = at, at + np.uint32(step)
            first, second = self._load(component, faces, instant)
            return first + share * (second - first)

        along = transport(0, self._shelves, xi)
        across = transport(1, self.quads.width * self._shelves, eta)
        up = jnp.zeros_like(along)
        if self.values.shape[1] - self.moving > 2:
            up = transport(2, 1, share)
        unit = 1.0 if self.sphere is None else jnp.asarray(self.sphere.radius, dtype)
        e_xi, e_eta, n_xi, n_eta = (unit * s.astype(dtype) for s in place.slopes)
        area = jnp.abs(e_xi * n_eta - e_eta * n_xi)
        known = (hint != NOWHERE) & (area > 0)
        per = jnp.where(known, 1 / jnp.where(area > 0, area, 1), 0)
        if layer is None:
            found = [e_xi * along + e_eta * across, n_xi * along + n_eta * across, up]
            found = [per * c for c in found]
        else:
            d_xi, d_eta = along * per / layer.thickness, across * per / layer.thickness
            z_xi, z_eta = layer.slopes
            rise = layer.rate + z_xi * d_xi + z_eta * d_eta + up * per
            found = [e_xi * d_xi + e_eta * d_eta, n_xi * d_xi + n_eta * d_eta, rise]
        return _join_columns(found).astype(positions.dtype), hint

    @property
    def _slides(self) -> bool:
        """Return that closed faces are walls, along which everything slides."""
        return True

    def _find(self, positions: Positions, cell_hint: CellHint) -> tuple[Place, Cells]:
        sight, level = self.quads.sight(positions), self._level(positions)[0]
        return self.quads.locate(sight, cell_hint, self.land, level, self._shelves)


def _mix(corners: list[Array], xi: Array, eta: Array) -> Array:
    """Return what is bilinear between four corners, or linear between three."""
    a, b, c, *d = corners
    low = a + xi * (b - a)
    # Of a triangle the fourth corner is where the others lead to.
    high = c + xi * (d[0] - c) if d else low + (c - a)
    return low + eta * (high - low)


def _join_columns(columns: list[Array]) -> Positions:
    """Return columns side by side."""
    if jax.default_backend() != "cpu":
        return jnp.stack(columns, 1)
    # What a CPU stacks it computes one entry at a time, the look-ups once per column.
    out = jnp.zeros((columns[0].shape[0], len(columns)), columns[0].dtype)
    for c, column in enumerate(columns):
        out = lax.dynamic_update_slice(out, column[:, None], (0, c))
    return out


def make_curvilinear_field(
    grid: CurvilinearGrid,
    values: Any,
    times: Any = None,
    dtype: Any = None,
) -> CurvilinearField:
    """Make the field of velocities ([T,] rows, columns, levels, 3 or 4) on a grid."""
    values = np.asarray(values)
    if times is None:
        values = values[None]
    clock = make_clock(times, slices=len(values))
    dtype = dtypes.canonicalize_dtype(values.dtype if dtype is None else dtype)
    levels, between = make_axis(grid.z, "z", "clamp"), grid.faces or grid.layered
    if between or grid.folded:
        # Nothing passes the lowest and the highest face, so that nobody is beyond.
        top = grid.z[-1] if between and grid.z.size > 1 else np.inf
        top = np.inf if grid.moving else top
        levels = eqx.tree_at(lambda a: a.ends, levels, np.array([-np.inf, np.inf]))
    else:
        levels, top = hold_levels(levels)
    table = pack_curvilinear(grid, values, dtype)
    if grid.triangles is not None:
        nodes = grid.corners[:, 0]
        flat = grid.radius is None
        quads = make_triangles(nodes, grid.triangles, dtype, grid.coast, flat)
    else:
        quads = make_quads(grid.corners, dtype, grid.radius is None)
    if grid.faces:
        quads = _close_rim(quads, table, grid)
    land, heights = _land_of_cells(grid), grid.heights
    closed = np.asarray(quads.neighbors).reshape(-1, SIDES)[:, :3] == WALL
    parts = (
        jnp.asarray(table),
        quads,
        levels,
        clock,
        np.stack(grid.bounds()),
        grid.sphere(top),
        None if land is None else jnp.asarray(land.reshape(-1)),
        grid.shore,
        grid.vectors,
        None if heights is None else jnp.asarray(heights.reshape(-1), dtype),
        grid.moving,
        grid.stay,
        grid.stepped,
        grid.triangles is not None and bool(closed.any()),
        grid.layered,
    )
    return StaggeredField(*parts) if grid.faces else CurvilinearField(*parts)


def _land_of_cells(grid: CurvilinearGrid) -> Bool[np.ndarray, "..."] | None:
    """Return which cells are land: those given, or those without a corner at sea."""
    if grid.land is None or grid.faces:
        return grid.land
    if grid.triangles is None:
        axes = (0, 1) if grid.layered else (0, 1, 2)
        return land_cells(grid.land, grid.land.shape, axes)
    dry = grid.land[grid.triangles, 0].all(1)
    return land_cells(dry[None], (1, *dry.shape), (2,))


def _close_rim(quads: Quads, table: np.ndarray, grid: CurvilinearGrid) -> Quads:
    """Return cells at the ends of the grid closed where nothing passes these."""
    flow = np.abs(table[:, :2]).max(0).reshape(2, *grid.shape).max(-1)
    u, v = flow[0], flow[1]
    after = np.pad(u[:, 1:], ((0, 0), (0, 1))), np.pad(v[1:], ((0, 1), (0, 0)))
    passes = np.stack([u, after[0], v, after[1]], -1).reshape(-1) > 0
    sides = np.asarray(quads.neighbors)
    sides = np.where((sides == EDGE) & ~passes, WALL, sides).astype(np.int32)
    return eqx.tree_at(lambda q: q.neighbors, quads, sides)
