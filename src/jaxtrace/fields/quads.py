"""Quadrilateral cells of curvilinear grids, on a sphere or flat, and who is in which.

A cell is the bilinear patch S(xi, eta) between its corners in space; a position is
where the ray from the center of the sphere through it meets the patch. Cells that share
an edge then agree on it, at poles and at the date line too. A flat grid lies at height
1, so that its rays are the positions themselves.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.spatial import KDTree

from jaxtrace.fields.box_tree import Tree, build_tree, in_groups, select, traverse
from jaxtrace.fields.faces import pair_faces
from jaxtrace.sphere import sine

NOWHERE = np.iinfo(np.int32).min  # the hint of particles that no cell holds
EDGE, WALL = -1, -2  # in place of a neighbor: the grid ends, or nothing passes
PATCH = 12  # numbers per cell: four vectors
SIDES = 4  # -xi, +xi, -eta, +eta
RING = 3  # rows and columns along the rim that may be there twice
MATCH = 0.02  # of an edge, how far corners of one place may be apart
ROOM = 16  # roundings that a position may be off
LAST = 1e-6  # of what a position is beyond a side, how much counts at a rim
WALKING = 32  # groups of positions that are looked for
HOPS = 4096  # a walk longer than this goes round in circles
MOST_ITERATIONS = 13

Columns = Float[Array, " n"]
Vector = tuple[Columns, Columns, Columns]
Cells = Int[Array, " n"]


class Sight(NamedTuple):
    """Two directions across the ray of each position, and the way up along it."""

    east: Vector
    north: Vector
    ray: Vector


class Place(NamedTuple):
    """Cells, coordinates in them (xi, eta), and the changes of position with these.

    `slopes` are of meters east by xi and by eta, then of meters north, for a radius
    of 1.
    """

    cell: Cells
    xi: Columns
    eta: Columns
    slopes: tuple[Columns, Columns, Columns, Columns]
    held: Bool[Array, " n"]


class Quads(eqx.Module):
    """Patches of all cells, the cells beyond their sides, and a tree over them.

    A cell has the number of its first corner, rows of corners being `width` long.
    """

    #: A table for each number of a patch, of three vectors where there is no twist: one
    #: of records takes a CPU half as long again.
    patches: tuple[Float[Array | np.ndarray, " cells"], ...]
    neighbors: Int[Array | np.ndarray, " sides"]
    tree: Tree
    width: int = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    flat: bool = eqx.field(static=True)

    def sight(self, positions: Float[Array, "n 3"]) -> Sight:
        """Return the directions of positions, columns of degrees on a sphere."""
        x, y = positions[:, 0], positions[:, 1]
        zero, one = jnp.zeros_like(x), jnp.ones_like(x)
        if self.flat:
            return Sight((one, zero, -x), (zero, one, -y), (zero, zero, one))
        turn = x - 360 * jnp.round(x / 360)
        fold = jnp.where(jnp.abs(turn) > 90, jnp.sign(turn) * 180 - turn, turn)
        sin, cos = sine(fold), sine(90 - jnp.abs(turn))
        high, wide = sine(y), sine(90 - jnp.abs(y))
        found = Sight(
            (-sin, cos, zero),
            (-high * cos, -high * sin, wide),
            (wide * cos, wide * sin, high),
        )
        return lax.optimization_barrier(found)

    def start(self, positions: Float[Array, "n 3"]) -> Cells:
        """Return the cell of every position by the tree, nowhere if there is none."""
        sight = self.sight(positions)
        at = jnp.stack(sight.ray, 1)
        if self.flat:
            at = positions.at[:, 2].set(1)

        def touches(lanes: Any, boxes: Array) -> Array:
            del lanes
            boxes = boxes.astype(at.dtype)
            return jnp.all((at >= boxes[:, :3]) & (at <= boxes[:, 3:]), -1)

        def visit(lanes: Cells, item: Array, here: Array) -> tuple[Cells, Array]:
            held = self.probe(sight, item).held
            return select(here & held, item, lanes), held

        none = jnp.full(positions.shape[0], NOWHERE, np.int32)
        known = jnp.all(jnp.isfinite(at), 1)
        return traverse(self.tree, none, known, touches, visit, costly=True)

    def probe(self, sight: Sight, cell: Cells) -> Place:
        """Return coordinates in given cells, which may lie beyond these."""
        vectors = self._patch(cell, sight.ray[0].dtype)
        east, north, (r0, rx, ry, rxy) = (
            [_dot(direction, v) for v in vectors] for direction in sight
        )
        xi, eta, det = _invert(jnp, east, north, self.iterations)
        height = r0 + xi * rx + eta * (ry + xi * rxy)
        # A rounding of positions, of size one or of the flat coordinates, in cells.
        size = 1.0
        if self.flat:
            size = jnp.abs(sight.east[2]) + jnp.abs(sight.north[2])
        eps = ROOM * jnp.finfo(r0.dtype).eps
        room = eps * (size * lax.rsqrt(jnp.abs(det)) + 1)
        over = functools.reduce(jnp.maximum, self.beyond(xi, eta))
        held = (over <= room) & (height > 0)
        per = 1 / jnp.where(height > 0, height, 1)
        (_, ex, ey, exy), (_, nx, ny, nxy) = east, north
        one, two = (ex + exy * eta) * per, (ey + exy * xi) * per
        three, four = (nx + nxy * eta) * per, (ny + nxy * xi) * per
        return Place(cell, xi, eta, (one, two, three, four), held)

    def _patch(self, cell: Cells, dtype: Any) -> list[Vector]:
        """Return the first corner of cells, two edges from it, and their twist."""
        v = [entries(jnp.asarray(table, dtype), cell) for table in self.patches]
        v += [jnp.zeros_like(v[0])] * (PATCH - len(v))
        return [(v[k], v[k + 1], v[k + 2]) for k in range(0, PATCH, 3)]

    def locate(
        self,
        sight: Sight,
        cell_hint: Cells,
        dry: Bool[Array | np.ndarray, " places"] | None = None,
        level: Cells | None = None,
        levels: int = 1,
    ) -> tuple[Place, Cells]:
        """Return where positions are, by a walk from hints, and new hints.

        Cells that are `dry` at the level of a position are not walked into: a position
        beyond such a side counts as in the cell before it, with xi and eta outside 0
        to 1. A hint of -1 - cell says that a position left the grid from there.
        """
        begun = jnp.where(cell_hint < 0, -1 - cell_hint, cell_hint)
        begun = jnp.where(cell_hint == NOWHERE, 0, begun)
        place = self.probe(sight, begun)
        hint = jnp.where(cell_hint == NOWHERE, NOWHERE, begun)
        lost = ~place.held & (cell_hint != NOWHERE)
        lost &= jnp.isfinite(sight.east[1] + sight.east[2] + sight.north[2])
        if level is None:
            level = jnp.zeros_like(begun)

        def work(given: Any, active: Array) -> tuple[Place, Cells]:
            sight, place, level = given
            return self._walk(sight, place, level, active, dry, levels)

        # Nearly all are where their hint says: the others are gathered in groups.
        given = sight, place, level
        return in_groups(lost, given, (place, hint), work, WALKING)

    def _walk(
        self, sight: Sight, place: Place, level: Cells, active: Array, dry: Any, n: int
    ) -> tuple[Place, Cells]:
        """Hop across the side that a position is farthest beyond and that is open."""

        def hop(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            place, left, moving, hops = carry
            far, onward = jnp.zeros_like(place.xi), jnp.full_like(place.cell, WALL)
            for side, over in enumerate(self.beyond(place.xi, place.eta)):
                there = entries(self.neighbors, place.cell * SIDES + side)
                if dry is not None:
                    closed = entries(dry, jnp.maximum(there, 0) * n + level)
                    there = jnp.where((there >= 0) & closed, WALL, there)
                # The grid is left only where no other side leads on.
                over = jnp.where(there == EDGE, LAST * over, over)
                better = (over > far) & (there != WALL)
                far = jnp.where(better, over, far)
                onward = jnp.where(better, there, onward)
            going = moving & (onward >= 0)
            there = self.probe(sight, jnp.where(going, onward, place.cell))
            left |= moving & (onward == EDGE)
            return there, left, going & ~there.held, hops + 1

        start = (place, jnp.zeros_like(active), active, jnp.zeros((), np.int32))
        going = lambda carry: jnp.any(carry[2]) & (carry[3] < HOPS)
        place, left, moving, _ = lax.while_loop(going, hop, start)
        return place, jnp.where(left | moving, -1 - place.cell, place.cell)

    def beyond(self, xi: Columns, eta: Columns) -> tuple[Columns, ...]:
        """Return how far coordinates are beyond each side."""
        return -xi, xi - 1, -eta, eta - 1

    def within(self, place: Place) -> tuple[Columns, Columns]:
        """Return coordinates brought into the cell."""
        return jnp.clip(place.xi, 0, 1), jnp.clip(place.eta, 0, 1)

    def corners(self, cell: Cells) -> list[Cells]:
        """Return the four corners of cells: xi and eta 00, 10, 01, 11."""
        return [cell + step for step in (0, 1, self.width, self.width + 1)]

    def edges(self, cell: Cells, dtype: Any) -> tuple[tuple[Columns, ...], ...]:
        """Return the edges of cells in space: at eta 0 and 1, then at xi 0 and 1."""
        _, across, along, twist = self._patch(cell, dtype)
        add = lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True))
        return across, add(across, twist), along, add(along, twist)

    def patch_point(self, place: Place) -> Vector:
        """Return the point of a patch in space that is within the cell."""
        xi, eta = self.within(place)
        a, b, c, d = self._patch(place.cell, xi.dtype)
        x, y, z = (a[k] + xi * b[k] + eta * (c[k] + xi * d[k]) for k in range(3))
        return x, y, z


def _invert(xp: Any, east: Any, north: Any, iterations: int) -> tuple[Any, Any, Any]:
    """Return where two bilinear functions vanish, and their determinant, by Newton.

    A function is given by its value at the corner 00 and its coefficients of xi, eta
    and their product.
    """
    (e0, ex, ey, exy), (n0, nx, ny, nxy) = east, north
    xi = eta = xp.full_like(e0, 0.5)
    det = xp.ones_like(e0)
    for _ in range(iterations):
        exi, eeta = ex + exy * eta, ey + exy * xi
        nxi, neta = nx + nxy * eta, ny + nxy * xi
        det = exi * neta - eeta * nxi
        det = xp.where(det == 0, 1, det)
        per = 1 / det
        e, n = e0 + xi * exi + eta * ey, n0 + xi * nxi + eta * ny
        # Far outside a patch turns over: what matters there is the direction.
        xi, eta = (
            xp.clip(xi - (neta * e - eeta * n) * per, -1, 2),
            xp.clip(eta - (exi * n - nxi * e) * per, -1, 2),
        )
    return xi, eta, det


def _dot(a: Vector, b: Vector) -> Columns:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def entries(table: Any, index: Array) -> Array:
    """Return entries of a flat table, whose indices are in bounds."""
    table = jnp.asarray(table)
    return table.at[index.astype(np.uint32)].get(mode="promise_in_bounds")


def unit_vectors(lon: np.ndarray, lat: np.ndarray) -> Float[np.ndarray, "*shape 3"]:
    """Return points of the unit sphere at degrees."""
    x, y = np.radians(np.asarray(lon, np.float64)), np.radians(lat)
    wide = np.cos(y)
    return np.stack([wide * np.cos(x), wide * np.sin(x), np.sin(y)], -1)


def make_quads(
    points: Float[np.ndarray, "rows columns 3"],
    dtype: Any,
    flat: bool = False,
) -> Quads:
    """Return the cells between rows and columns of corners."""
    rows, columns = points.shape[:2]
    south, above = points[:-1], points[1:]
    low, east, north, far = south[:, :-1], south[:, 1:], above[:, :-1], above[:, 1:]
    twist = low - east - north + far
    patch = np.zeros((rows, columns, 4, 3))
    patch[:-1, :-1] = np.stack([low, east - low, north - low, twist], 2)
    sized = np.isfinite(patch).all((2, 3))
    middle = np.nan_to_num(patch[..., 1:3, :] + patch[..., 3:, :] / 2)
    area = np.linalg.norm(np.cross(middle[..., 0, :], middle[..., 1, :]), axis=-1)
    sized &= area > 1e-9 * area[sized].max(initial=0.0)
    sized[-1] = sized[:, -1] = False
    if not sized.any():
        raise ValueError(
            f"a curvilinear grid of {rows} x {columns} corners has no cell with an "
            "area: give two rows and columns of finite positions at least"
        )
    neighbors, kept = _join(points, sized)
    patch[~np.isfinite(patch)] = 0
    items = np.flatnonzero(kept)
    tree = make_tree(patch.reshape(-1, 4, 3)[items], items, np.dtype(dtype))
    return Quads(
        split_patches(patch, dtype),
        neighbors.reshape(-1).astype(np.int32),
        tree,
        columns,
        _count_iterations(patch.reshape(-1, 4, 3)[items], np.dtype(dtype)),
        flat,
    )


def split_patches(patch: np.ndarray, dtype: Any) -> tuple[np.ndarray, ...]:
    """Return a table for each number of patches (..., vectors, 3)."""
    numbers = patch.reshape(-1, 3 * patch.shape[-2]).T
    return tuple(np.ascontiguousarray(n, dtype) for n in numbers)


def make_tree(patch: np.ndarray, items: np.ndarray, dtype: np.dtype) -> Tree:
    """Return a tree of boxes around cells and what of the sphere bulges over them."""
    a, b, d, f = (patch[:, v] for v in range(4))
    corners = np.stack([a, a + b, a + d, a + b + d + f])
    low, high = corners.min(0), corners.max(0)
    size = np.linalg.norm(high - low, axis=1, keepdims=True)
    slack = size**2 / 2 + 64 * np.finfo(dtype).eps * (np.abs(a).max() + size)
    tree = build_tree((low - slack).astype(dtype), (high + slack).astype(dtype))
    named = np.where(tree.items < 0, -1, items[tree.items]).astype(np.int32)
    return eqx.tree_at(lambda t: t.items, tree, named)


def _count_iterations(patch: np.ndarray, dtype: np.dtype) -> int:
    """Return the Newton iterations that the most warped cells take to their corners."""
    _, b, d, f = (patch[:, v] for v in range(4))
    short = np.minimum(np.linalg.norm(b, axis=1), np.linalg.norm(d, axis=1))
    short = np.maximum(short, 1e-12)  # a corner of a triangle is where it may be
    warp = np.linalg.norm(f, axis=1) / short
    worst = np.argsort(warp)[-4096:]
    patch, short = patch[worst], short[worst]
    a, b, d, f = (patch[:, v] for v in range(4))
    most = count = 2
    for corner in ((0, 0), (1, 0), (0, 1), (1, 1), (0.5, 0)):
        p = a + corner[0] * b + corner[1] * d + corner[0] * corner[1] * f
        other = np.cross(p, b)
        one = np.cross(other, p)
        on = lambda v, one=one, other=other: np.stack(
            [(one * v).sum(1), (other * v).sum(1)]
        )
        (e0, n0), (ex, nx), (ey, ny), (exy, nxy) = (on(v) for v in (a, b, d, f))
        for count in range(1, MOST_ITERATIONS):
            xi, eta, _ = _invert(np, (e0, ex, ey, exy), (n0, nx, ny, nxy), count)
            off = np.maximum(np.abs(xi - corner[0]), np.abs(eta - corner[1]))
            if np.all(off <= ROOM * np.finfo(dtype).eps * (1 + 1 / short)):
                break
        most = max(most, count)
    return most


def _join(
    points: Float[np.ndarray, "rows columns 3"], sized: Bool[np.ndarray, "rows columns"]
) -> tuple[Int[np.ndarray, "rows columns 4"], Bool[np.ndarray, "rows columns"]]:
    """Return the cells beyond the sides of cells, and cells without what is repeated.

    Within the grid they follow from rows and columns; along its rim - the seam of a
    grid that goes round, the fold of a tripolar one - from corners at one place.
    """
    rows, columns = sized.shape
    number = np.arange(rows * columns).reshape(rows, columns)
    here = np.where(sized, number, EDGE)
    beyond = np.full((rows, columns, SIDES), EDGE)
    beyond[:, 1:, 0], beyond[:, :-1, 1] = here[:, :-1], here[:, 1:]
    beyond[1:, :, 2], beyond[:-1, :, 3] = here[:-1], here[1:]
    j, i = np.indices(sized.shape)
    rim = np.minimum(np.minimum(j, rows - 1 - j), np.minimum(i, columns - 1 - i)) < RING
    name = _name_places(points, number, rim)
    above = number + columns
    upright = [(number, above), (number + 1, above + 1)]
    ends = np.stack([*upright, (number, number + 1), (above, above + 1)])
    ends = np.minimum(ends, number[-1, -1])
    pairs = np.sort(name[ends], axis=1)  # (sides, ends, rows, columns)
    # A cell whose four corners are those of another is there twice.
    corners = np.sort(np.concatenate([pairs[0], pairs[1]]), axis=0)
    some = np.flatnonzero((rim & sized).ravel())
    keys = corners.reshape(4, -1)[:, some].T
    _, once, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    same = some[once][inverse.ravel()]
    kept = sized.copy()
    kept.ravel()[some[same != some]] = False
    stands = number.ravel().copy()
    stands[some] = same
    beyond = np.where(beyond >= 0, stands[beyond], beyond)
    # Sides without a cell beyond, of cells that stay, meet another such side or none.
    open_ = np.argwhere(kept[..., None] & (beyond == EDGE))
    if len(open_):
        j, i, side = open_.T
        other = pair_faces(pairs[side, :, j, i].T)[0]
        beyond[j, i, side] = np.where(other < 0, EDGE, number[j, i][other])
    return beyond, kept


def _name_places(points: np.ndarray, number: np.ndarray, rim: np.ndarray) -> np.ndarray:
    """Return for each corner the first one at its place; inner ones are alone."""
    name = number.ravel().copy()
    flat = points.reshape(-1, points.shape[-1])
    some = np.flatnonzero(rim.ravel() & np.isfinite(flat).all(1))
    edges = np.concatenate(
        [np.linalg.norm(np.diff(points, axis=axis), axis=-1).ravel() for axis in (0, 1)]
    )
    edges = edges[np.isfinite(edges) & (edges > 0)]
    if not edges.size:
        return name
    room = MATCH * np.quantile(edges, 0.01)
    close = KDTree(flat[some]).query_pairs(room, output_type="ndarray")
    if len(close):
        low, high = some[close.min(1)], some[close.max(1)]
        np.minimum.at(name, high, low)
    return name


def close_columns(
    points: Float[np.ndarray, "rows columns 3"],
) -> tuple[int, bool]:
    """Return how many of the last columns repeat the first, and whether one is missing.

    A grid that goes round is closed when its last column is the first again; without
    any repeated one, a gap no wider than two columns is one that is not stored.
    """
    columns = points.shape[1]
    gap = lambda one, other: np.nanmax(
        np.linalg.norm(points[:, one] - points[:, other], axis=-1)
    )
    step = np.nanmedian(np.linalg.norm(np.diff(points, axis=1), axis=-1), axis=1)
    for repeated in (2, 1):
        pairs = [(k, columns - repeated + k) for k in range(repeated)]
        if columns > 4 and all(gap(*pair) <= MATCH * np.nanmax(step) for pair in pairs):
            return repeated, False
    apart = np.linalg.norm(points[:, 0] - points[:, -1], axis=-1)
    with np.errstate(invalid="ignore"):
        near = apart <= 2 * np.maximum(step, 1e-12)
    return 0, columns > 4 and bool(np.all(near | np.isnan(apart)))


def lattice_axes(
    lon: Float[np.ndarray, "rows columns"], lat: Float[np.ndarray, "rows columns"]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the axes of positions that are a plain grid after all; else None."""
    if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
        return None
    x, y = lon[0], lat[:, 0]
    turned = lon - x - 360 * np.round((lon - x) / 360)
    slack = 1e-6 * min(np.abs(np.diff(x)).min(initial=360), 1.0)
    plain = np.abs(turned).max() <= slack and np.abs(lat - y[:, None]).max() <= slack
    return (x, y) if plain else None


def grid_angles(
    lon: Float[np.ndarray, "rows columns"], lat: Float[np.ndarray, "rows columns"]
) -> Float[np.ndarray, "rows columns"]:
    """Return radians from east to the direction of rows, counterclockwise."""
    points = unit_vectors(lon, lat)
    ahead = np.gradient(points, axis=1)
    # One-sided where the next node is missing, and at the ends.
    step = np.diff(points, axis=1)
    forward = np.concatenate([step, step[:, -1:]], 1)
    backward = np.concatenate([step[:, :1], step], 1)
    for other in (forward, backward):
        ahead = np.where(np.isfinite(ahead), ahead, other)
    x, y = np.radians(lon), np.radians(lat)
    east = ahead[..., 1] * np.cos(x) - ahead[..., 0] * np.sin(x)
    radial = ahead[..., 0] * np.cos(x) + ahead[..., 1] * np.sin(x)
    return np.arctan2(ahead[..., 2] * np.cos(y) - radial * np.sin(y), east)
