"""The boundary of a mesh as triangles, or as edges in a plane.

Walls answer which of their points is closest to a place outside, and where a path
first runs out of the mesh.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.box_tree import (
    Tree,
    build_parts,
    descend,
    distances,
    rows,
    select,
    traverse,
)
from jaxtrace.fields.faces import split_faces, wall_normals
from jaxtrace.fields.topology import Mesh

Points = Float[Array, "n dim"]
ROUNDINGS = 8  # how many roundings a test of touching may be off by


class Walls(eqx.Module):
    """Frames of boundary pieces and the cells behind them.

    A row of the table holds a corner, the edges from it, the vectors that give a
    place's shares of these edges, and the unit normal into the mesh.
    """

    table: Float[Array | np.ndarray, "*batch walls numbers"]
    cells: Int[Array | np.ndarray, "*batch walls"]
    of_cells: Int[Array | np.ndarray, "*batch cells"]  # one wall of a cell; -1: none
    gaps: Bool[Array | np.ndarray, "*batch walls"]  # seams that do not bound the mesh
    tree: Tree

    @property
    def dimension(self) -> int:
        """Return how many coordinates a place has."""
        return self.tree.dimension


def make_walls(
    mesh: Mesh, points: np.ndarray, dtype: np.dtype, part: Int[np.ndarray, " cells"]
) -> Walls:
    """Return the walls of a mesh, over points exact in a dtype."""
    boundary = mesh.boundary
    pieces, face = split_faces(boundary.nodes)
    corners = points[pieces]
    full = np.zeros((*corners.shape[:2], 3))
    full[..., list(mesh.axes)] = corners
    normals = wall_normals(full, mesh.axes)
    cells = boundary.cells[face]
    inward = points[mesh.nodes[cells]].mean(1) - corners.mean(1)
    flipped = (normals[:, list(mesh.axes)] * inward).sum(1) < 0
    size = np.linalg.norm(normals, axis=1)
    size = np.where(size > 0, size, 1) * np.where(flipped, -1, 1)
    normals = (normals / size[:, None])[:, list(mesh.axes)]
    edges = corners[:, 1:] - corners[:, :1]
    # Edges and normal are a basis; the rows of its inverse find shares of edges.
    basis = np.concatenate([edges, normals[:, None]], 1)
    broken = np.linalg.det(basis) == 0
    basis[broken] = np.eye(mesh.dimension)
    duals = np.swapaxes(np.linalg.inv(basis), 1, 2)[:, :-1]
    parts = [corners[:, :1], edges, duals, normals[:, None]]
    table = np.concatenate(parts, 1).reshape(len(corners), -1)
    low, high = corners.min(1).astype(dtype), corners.max(1).astype(dtype)
    gaps, tree = np.zeros(len(face), bool), build_parts(low, high, part[cells])
    of_cells = np.full(len(mesh.nodes), -1, np.int32)
    of_cells[cells] = np.arange(len(cells))
    return Walls(table.astype(dtype), cells, of_cells, gaps, tree)


class Frame(NamedTuple):
    """Walls opened for one place each."""

    corner: Points
    edges: list[Points]
    duals: list[Points]
    normal: Points


def _frame(walls: Walls, wall: Int[Array, " n"], dtype: np.dtype) -> Frame:
    d = walls.dimension
    row = rows(walls.table, wall).astype(dtype)
    part = [row[:, d * i : d * (i + 1)] for i in range(2 * d)]
    return Frame(part[0], part[1:d], part[d : 2 * d - 1], part[-1])


def dot(a: Points, b: Points) -> Float[Array, " n"]:
    """Return inner products of rows."""
    total = a[:, 0] * b[:, 0]
    for i in range(1, a.shape[1]):
        total = total + a[:, i] * b[:, i]
    return total


def closest_point(walls: Walls, x: Points, wall: Int[Array, " n"]) -> Points:
    """Return the point of a wall that is closest to a place, for each place."""
    frame = _frame(walls, wall, x.dtype)
    offset = x - frame.corner
    if walls.dimension == 2:
        along, long = dot(offset, frame.edges[0]), dot(frame.edges[0], frame.edges[0])
        return frame.corner + _share(along, long)[:, None] * frame.edges[0]
    s, t = _closest_shares(frame, offset)
    return frame.corner + s[:, None] * frame.edges[0] + t[:, None] * frame.edges[1]


def _share(along: Array, long: Array) -> Array:
    return jnp.clip(along / jnp.where(long > 0, long, jnp.ones_like(long)), 0, 1)


def _closest_shares(frame: Frame, offset: Points) -> tuple[Array, Array]:
    """Return a triangle's edge shares: right above it, or on its best side."""
    one, two = frame.edges
    a, b, c = dot(one, one), dot(one, two), dot(two, two)
    d, e = dot(offset, one), dot(offset, two)
    zero = jnp.zeros_like(d)
    third = _share(e - d + a - b, a - b - b + c)
    # Ericson (2005, section 5.1.5) branches by the region a place lies in; lanes
    # cannot, so that all three sides are tried and the best is chosen.
    sides = [(_share(d, a), zero), (zero, _share(e, c)), (1 - third, third)]
    s, t = sides[0]
    least = jnp.full_like(d, np.inf)
    for u, v in sides:
        # The squared distance, less that of the corner.
        excess = u * (u * a - 2 * d) + v * (v * c - 2 * e) + 2 * u * v * b
        better = excess < least
        s, t = jnp.where(better, u, s), jnp.where(better, v, t)
        least = jnp.minimum(excess, least)
    u, v = (dot(offset, dual) for dual in frame.duals)
    above = (u >= 0) & (v >= 0) & (u + v <= 1)
    return jnp.where(above, u, s), jnp.where(above, v, t)


def closest_wall(
    walls: Walls,
    x: Points,
    guess: Int[Array, " n"],
    active: Bool[Array, " n"],
    part: Int[Array, " n"] | None,
) -> tuple[Int[Array, " n"], Points]:
    """Return the closest wall, found from a guess (-1: none), and its point."""

    def touches(lanes: tuple[Any, ...], boxes: Array) -> Array:
        return distances(x, boxes) < lanes[1]

    def visit(lanes: tuple[Any, ...], item: Array, here: Array) -> tuple[Any, ...]:
        point = closest_point(walls, x, item)
        length = dot(x - point, x - point)
        better = here & (length < lanes[1])
        return select(better, (item, length, point), lanes), jnp.zeros_like(here)

    first = lax.cond(
        jnp.any(active & (guess < 0)),
        lambda: jnp.where(guess < 0, descend(walls.tree, x, part), guess),
        lambda: guess,
    )
    lanes = (first, jnp.full(x.shape[0], np.inf, x.dtype), x)
    first = jnp.where(active, first, -1)
    found = traverse(walls.tree, lanes, active, touches, visit, first, part)
    return found[0], found[2]


class Hit(NamedTuple):
    """The first wall a path runs through outwards, and how far along; 2 if none."""

    wall: Int[Array, " n"]
    fraction: Float[Array, " n"]


def first_wall(
    walls: Walls,
    start: Points,
    end: Points,
    active: Bool[Array, " n"],
    part: Int[Array, " n"] | None,
) -> Hit:
    """Return the first wall through which each path leaves the mesh."""
    d = walls.dimension
    path = end - start

    def touches(lanes: Hit, boxes: Array) -> Array:
        boxes = boxes.astype(start.dtype)
        return _crosses(start, path, boxes[:, :d], boxes[:, d:], lanes.fraction)

    def visit(lanes: Hit, item: Array, here: Array) -> tuple[Any, ...]:
        fraction, meets = _meet(walls, start, path, item)
        meets &= here & ~rows(walls.gaps, item) & (fraction < lanes.fraction)
        return select(meets, Hit(item, fraction), lanes), jnp.zeros_like(here)

    none = jnp.zeros(start.shape[0], np.int32)
    lanes = Hit(none, jnp.full(start.shape[0], 2, start.dtype))
    return traverse(walls.tree, lanes, active, touches, visit, part=part)


def _crosses(
    start: Points, path: Points, low: Points, high: Points, limit: Array
) -> Bool[Array, " n"]:
    """Return whether paths pass through boxes before a fraction of their length."""
    slack = ROUNDINGS * np.finfo(start.dtype).eps
    room = slack * jnp.maximum(jnp.abs(low), jnp.abs(high))
    # Slabs (Kay and Kajiya, 1986). Along an axis on which nothing moves they would
    # divide 0 by 0, so that such axes are asked apart.
    still = path == 0
    speed = jnp.where(still, jnp.ones_like(path), path)
    one = (low - room - start) / speed
    two = (high + room - start) / speed
    within = (start >= low - room) & (start <= high + room)
    enter = jnp.where(still, jnp.zeros_like(one), jnp.minimum(one, two))
    leave = jnp.where(still, jnp.full_like(one, 2), jnp.maximum(one, two))
    first = jnp.maximum(jnp.max(enter, -1), 0)
    last = jnp.minimum(jnp.min(leave, -1), jnp.minimum(limit, 1 + slack))
    return jnp.all(~still | within, -1) & (first <= last + slack)


def _meet(
    walls: Walls, start: Points, path: Points, wall: Int[Array, " n"]
) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
    """Return where paths meet walls from within, and whether they do."""
    slack = ROUNDINGS * np.finfo(start.dtype).eps
    frame = _frame(walls, wall, start.dtype)
    approach = dot(path, frame.normal)
    outward = approach < 0
    offset = start - frame.corner
    height = dot(offset, frame.normal)
    fraction = -height / jnp.where(outward, approach, -jnp.ones_like(approach))
    # A start that rounding put behind the wall leaves at once.
    reach = slack * jnp.max(jnp.abs(frame.corner), -1)
    fraction = jnp.where((fraction < 0) & (height > -reach), 0, fraction)
    meets = outward & (fraction >= 0) & (fraction <= 1)
    point = offset + fraction[:, None] * path
    rest = jnp.ones_like(fraction)
    # Stored duals make a share of an edge an inner product; from the corners alone it
    # takes cross products (Moeller and Trumbore, 1997).
    for dual in frame.duals:
        share = dot(point, dual)
        meets &= share >= -slack
        rest = rest - share
    return fraction, meets & (rest >= -slack)


def inward_normals(walls: Walls, wall: Int[Array, " n"], dtype: np.dtype) -> Points:
    """Return inward unit normals of walls."""
    return _frame(walls, wall, dtype).normal
