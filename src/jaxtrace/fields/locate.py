"""Point location in meshes: a walk from the particle's last cell, then an exact search.

A cell hint is the number of a cell, or -1 minus the number of the closest wall for a
particle outside, or that nothing is known yet.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.box_tree import (
    Tree,
    build_parts,
    in_groups,
    in_rounds,
    rows,
    select,
    traverse,
)
from jaxtrace.fields.curve import in_chunks
from jaxtrace.fields.faces import pair_faces, split_faces
from jaxtrace.fields.mesh_boundary import (
    Hit,
    Points,
    Walls,
    closest_point,
    closest_wall,
    dot,
    first_wall,
    inward_normals,
    make_walls,
)
from jaxtrace.fields.reference_coordinates import (
    Records,
    clamp,
    invert,
    make_records,
    open_records,
    sides,
)
from jaxtrace.fields.topology import Mesh, coincident, corner_places

NOWHERE = np.iinfo(np.int32).min  # what is remembered where nothing is known
HOPS = 12  # cells a walk may pass before the tree is asked
HOPS_PER_TEST = 3  # which HOPS is a multiple of

Places = Float[Array, "n dim"]
Kept = Float[Array, "n kept"]
CellHint = Int[Array, " n"]


class Locator(eqx.Module):
    """All that is needed to find the cell of a place."""

    records: Records
    neighbors: Int[Array | np.ndarray, "*batch cells faces"]
    tree: Tree
    walls: Walls


class Place(eqx.Module):
    """A cell, reference coordinates in it (of warped cells), and cell hints."""

    cell: Int[Array, " n"]
    coordinates: Kept
    cell_hint: CellHint


def make_locator(
    mesh: Mesh,
    points: np.ndarray,
    dtype: np.dtype,
    part: Int[np.ndarray, " cells"] | None = None,
) -> Locator:
    """Return the locator of a mesh over points (N, dim) that are exact in a dtype.

    Where `part` tells cells of different parts apart, each part is searched by itself.
    """
    part = np.zeros(len(mesh.nodes), np.int32) if part is None else part
    low, high = _boxes(mesh, points, dtype)
    return Locator(
        make_records(mesh, points, dtype),
        mesh.neighbors,
        build_parts(low, high, part, ordered=True),
        make_walls(mesh, points, dtype, part),
    )


def _boxes(
    mesh: Mesh, points: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high corners of boxes that hold cells whatever is rounded."""
    columns = np.ascontiguousarray(points.T)
    low = np.empty((len(mesh.nodes), len(columns)), dtype)
    high = np.empty_like(low)

    def fill(some: slice) -> None:
        places = corner_places(columns, mesh.nodes[some], mesh.nodes.shape[1])
        least, most = places.min(0), places.max(0)
        room = 64 * np.finfo(dtype).eps * (most - least)
        down, up = (least - room).astype(dtype), (most + room).astype(dtype)
        low[some] = np.nextafter(down, dtype.type(-np.inf)).T
        high[some] = np.nextafter(up, dtype.type(np.inf)).T

    in_chunks(len(low), fill)
    return low, high


def no_hint(shape: tuple[int, ...]) -> Int[Array, "..."]:
    """Return the cell hint of particles that were nowhere yet."""
    # A constant would be folded into the search, which XLA then makes far slower.
    return lax.optimization_barrier(jnp.full(shape, NOWHERE, np.int32))


def hinted_cell(locator: Locator, cell_hint: CellHint) -> Int[Array, " n"]:
    """Return the cell to start from: the one hinted at, or the one behind the wall."""
    behind = rows(locator.walls.cells, hinted_wall(locator, cell_hint))
    return jnp.where(cell_hint >= 0, cell_hint, behind)


def hinted_wall(locator: Locator, cell_hint: CellHint) -> Int[Array, " n"]:
    """Return the wall hinted at by a particle outside; else any wall."""
    return jnp.clip(-1 - cell_hint, 0, locator.walls.cells.shape[-1] - 1)


def locate(
    locator: Locator, x: Places, cell_hint: CellHint, part: CellHint | None = None
) -> Place:
    """Return the cell of each place, or the one behind the closest wall.

    `part` says which part of the mesh to look in; memory must be of that part.
    """
    x = lax.stop_gradient(x)
    cell = hinted_cell(locator, cell_hint)
    lost = ~jnp.all(jnp.isfinite(x), -1)
    coordinates, found, _ = _probe(locator, x, cell)
    found &= cell_hint != NOWHERE
    place = Place(cell, coordinates, jnp.where(lost, NOWHERE, cell))
    missing = ~found & ~lost
    # Nearly all particles are where their hint says: unless one is not, nothing but the
    # probe runs, where a mask would run the search for all of them.
    return lax.cond(
        jnp.any(missing), _resolve, lambda _, place, *__: place,
        locator, place, x, missing, cell_hint, part,
    )  # fmt: skip


def find(locator: Locator, x: Places) -> Int[Array, " n"]:
    """Return the cells of places, and that nothing is known of those outside.

    That is enough to start from, and a third of what `locate` compiles.
    """
    x = lax.stop_gradient(x)
    wanted = jnp.all(jnp.isfinite(x), -1)

    def by_cells(x: Places, active: Array) -> Array:
        cell, found = ask_tree(locator, x, no_hint(active.shape), ~active, None)
        return jnp.where(found, cell, NOWHERE)

    return in_groups(wanted, x, no_hint(wanted.shape), by_cells)


def _hint_of_wall(locator: Locator, wall: Int[Array, " n"]) -> CellHint:
    """Return the hint of a place beyond a wall."""
    # A seam within the mesh is no end of it: its closest cell counts as the place's.
    cell = rows(locator.walls.cells, wall)
    return jnp.where(rows(locator.walls.gaps, wall), cell, -1 - wall)


def _probe(
    locator: Locator, x: Places, cell: Array, waiting: Array | None = None
) -> tuple[Kept, Bool[Array, " n"], list[Array]]:
    """Return coordinates in a cell, whether inside, and distances from faces."""
    records = locator.records
    local = open_records(records, x, cell)
    p, sure = invert(records, local, waiting)
    faces = sides(records, local, p)
    least = functools.reduce(jnp.minimum, faces)
    return _kept(records, p), sure & (least >= -local.tolerance), faces


def _kept(records: Records, p: list[Array]) -> Kept:
    """Return coordinates that took iterations; nothing where they are direct."""
    if records.warped:
        return jnp.stack(p, -1)
    return jnp.zeros((p[0].shape[0], 0), p[0].dtype)


def _resolve(
    locator: Locator,
    place: Place,
    x: Places,
    missing: Array,
    cell_hint: CellHint,
    part: CellHint | None,
) -> Place:
    """Find the missing ones, a group at a time: in cells first, then beyond walls."""
    records, walls = locator.records, locator.walls

    def by_cells(given: tuple[Any, ...], active: Array) -> tuple[Any, ...]:
        x, cell_hint, part = given
        start = hinted_cell(locator, cell_hint)
        cell, found = walk(locator, x, start, active & (cell_hint != NOWHERE))
        cell, found = lax.cond(
            jnp.all(found | ~active), lambda _, __, *known: known[:2], ask_tree,
            locator, x, cell, found | ~active, part,
        )  # fmt: skip
        return cell, jnp.where(found, cell, NOWHERE)

    def by_walls(given: tuple[Any, ...], active: Array) -> tuple[Any, ...]:
        x, guess, part = given
        wall, near = closest_wall(walls, x, guess, active, part)
        return rows(walls.cells, wall), _hint_of_wall(locator, wall), near

    start = place.cell, place.cell_hint
    cell, known = in_groups(missing, (x, cell_hint, part), start, by_cells)
    outside = missing & (known == NOWHERE)
    # A walk ends where it met the boundary, most often: that wall is close.
    met = rows(walls.of_cells, cell)
    guess = jnp.where(met >= 0, met, jnp.maximum(-1 - cell_hint, -1))
    guess = jnp.where(cell_hint == NOWHERE, -1, guess)
    cell, known, near = lax.cond(
        jnp.any(outside),
        lambda *found: in_groups(outside, (x, guess, part), found, by_walls),
        lambda *found: found,
        *(cell, known, x),
    )
    if not records.warped:
        return Place(cell, place.coordinates, known)

    # Of all at once: Newton's method is most of what a search compiles.
    def coordinates(given: tuple[Any, ...], active: Array) -> Kept:
        local = open_records(records, *given)
        p, _ = invert(records, local, active)
        return _kept(records, clamp(records, local, p))

    kept = in_groups(missing, (near, cell), place.coordinates, coordinates)
    return Place(cell, kept, known)


def walk(
    locator: Locator, x: Places, cell: Int[Array, " n"], active: Bool[Array, " n"]
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """Hop across the face a place is farthest beyond, until a cell holds it.

    Faces without a cell behind are not crossed; a walk that can go nowhere, or that has
    gone on for too long, ends where it is.
    """

    # A visibility walk ends on Delaunay meshes, and may go round in circles on others
    # (Devillers, Pion and Teillaud, 2002): hence the limit of hops, and the tree.
    def going(carry: tuple[Any, ...]) -> Array:
        _, _, moving, hops = carry
        return jnp.any(moving) & (hops < HOPS)

    def hop(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        cell, found, moving, hops = carry
        _, inside, faces = _probe(locator, x, cell, moving)
        beyond = rows(locator.neighbors, cell)
        worst, onward = jnp.zeros_like(faces[0]), jnp.full_like(cell, -1)
        for i, face in enumerate(faces):
            better = (face < worst) & (beyond[:, i] >= 0)
            worst = jnp.where(better, face, worst)
            onward = jnp.where(better, beyond[:, i], onward)
        found = jnp.where(moving, inside, found)
        moving &= ~inside & (onward >= 0)
        return jnp.where(moving, onward, cell), found, moving, hops + 1

    start = (cell, jnp.zeros_like(active), active, jnp.zeros((), np.int32))
    cell, found, _, _ = lax.while_loop(going, in_rounds(hop, HOPS_PER_TEST), start)
    return cell, found


def ask_tree(
    locator: Locator,
    x: Places,
    cell: Int[Array, " n"],
    found: Bool[Array, " n"],
    part: CellHint | None,
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """Return the cells of places not found yet, or those given where none is."""
    d = x.shape[1]

    def touches(lanes: tuple[Any, ...], boxes: Array) -> Array:
        del lanes
        boxes = boxes.astype(x.dtype)
        return jnp.all((x >= boxes[:, :d]) & (x <= boxes[:, d:]), -1)

    def visit(lanes: tuple[Any, ...], item: Array, here: Array) -> tuple[Any, ...]:
        _, inside, _ = _probe(locator, x, item, here)
        return select(here & inside, (item, inside), lanes), inside

    lanes = (cell, found)
    return traverse(locator.tree, lanes, ~found, touches, visit, part=part, costly=True)


STEP = 1e-3  # how far beyond a face to look, in sizes of the face


# Seams are faces that no other cell shares, yet with a cell beyond them: hanging nodes
# of refined cells, and cells left out for want of volume, make them. They are no walls,
# and walks must cross them. Two equal faces back to back, on nodes of their own, are a
# thin wall and stay one.
def close_seams(
    locator: Locator, mesh: Mesh, part: Int[np.ndarray, " cells"] | None = None
) -> Locator:
    """Return the locator with seams marked, and cells on both sides made neighbors."""
    beyond = _beyond(locator)
    _, face = split_faces(mesh.boundary.nodes)
    behind = mesh.boundary.cells[face]
    piece = np.zeros_like(behind) if part is None else part[behind]
    box = np.asarray(locator.tree.boxes)[np.asarray(locator.tree.starts)[piece]]
    d = mesh.dimension
    within = ((beyond > box[:, :d]) & (beyond < box[:, d:])).all(1)
    if not within.any():
        return locator
    within &= _without_twin(mesh, part)[face]
    cell, found = _holding(locator, beyond, within, piece.astype(np.int32))
    seam = np.asarray(found) & within & (np.asarray(cell) != behind)
    neighbors = mesh.neighbors.copy()
    places = mesh.boundary.places[face]
    neighbors[behind[seam], places[seam]] = np.asarray(cell)[seam]
    return eqx.tree_at(
        lambda l: (l.neighbors, l.walls.gaps), locator, (neighbors, seam)
    )


def _without_twin(
    mesh: Mesh, part: Int[np.ndarray, " cells"] | None
) -> Bool[np.ndarray, " faces"]:
    """Return boundary faces that no other one of their part coincides with."""
    nodes = mesh.boundary.nodes
    piece = np.zeros(len(nodes)) if part is None else part[mesh.boundary.cells]
    keys = np.concatenate(
        [mesh.points[nodes], np.broadcast_to(piece[:, None, None], (*nodes.shape, 1))],
        axis=2,
    )
    places = coincident(keys.reshape(-1, 4)).reshape(nodes.shape)
    return pair_faces(np.where(nodes < 0, -1, places).T)[0] < 0


def _beyond(locator: Locator) -> Float[np.ndarray, "walls dim"]:
    """Return places just outside the middle of every wall."""
    walls = locator.walls
    d = walls.dimension
    table = np.asarray(walls.table, np.float64)
    edges = table[:, d : d * d].reshape(-1, d - 1, d)
    middle = table[:, :d] + edges.sum(1) / d
    size = np.linalg.norm(edges, axis=2).min(1)
    outward = -table[:, -d:] * (STEP * size)[:, None]
    return (middle + outward).astype(walls.table.dtype)


@jax.jit
def _holding(
    locator: Locator,
    x: Float[Array, "n dim"],
    wanted: Bool[Array, " n"],
    part: Int[Array, " n"],
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    none = jnp.full(x.shape[0], -1, np.int32)
    return ask_tree(locator, x, none, ~wanted, part)


class Crossing(eqx.Module):
    """The first exit of each path from a mesh.

    Where there is none, `point` is the end of the path, `fraction` 1 and `normal` 0;
    `cell_hint` is what a particle at `point` remembers.
    """

    hit: Bool[Array, " n"]
    point: Float[Array, "n dim"]
    normal: Float[Array, "n dim"]  # of length one, into the mesh
    fraction: Float[Array, " n"]
    cell_hint: Int[Array, " n"]


def first_exit(
    locator: Locator,
    start: Points,
    end: Points,
    cell_hint: Int[Array, " n"],
    part: Int[Array, " n"] | None = None,
) -> Crossing:
    """Return the first exit of paths; every path whose end is outside has one.

    A path that stays in one cell does not leave. A path that slips out between two
    pieces of wall is stopped at the point of the mesh closest to its end.
    """
    start, end = lax.stop_gradient((start, end))
    first = locate(locator, start, cell_hint, part)
    last = locate(locator, end, first.cell_hint, part)
    inside = last.cell_hint >= 0
    stays = inside & (first.cell_hint == last.cell_hint)
    lost = ~jnp.all(jnp.isfinite(start) & jnp.isfinite(end), -1)
    none = Hit(jnp.zeros_like(cell_hint), jnp.full(cell_hint.shape, 2, start.dtype))

    def work(given: tuple[Any, ...], active: Array) -> Hit:
        start, end, part = given
        return first_wall(locator.walls, start, end, active, part)

    wanted = ~stays & ~lost
    hit = lax.cond(
        jnp.any(wanted),
        lambda: in_groups(wanted, (start, end, part), none, work),
        lambda: none,
    )
    return _crossing(locator, start, end, hit, last.cell_hint)


def _crossing(
    locator: Locator, start: Points, end: Points, hit: Hit, cell_hint: Int[Array, " n"]
) -> Crossing:
    walls = locator.walls
    path = end - start
    crossed = hit.fraction <= 1
    slipped = ~crossed & (cell_hint < 0) & (cell_hint != NOWHERE)
    wall = jnp.where(slipped, hinted_wall(locator, cell_hint), hit.wall)
    near = closest_point(walls, end, wall)
    long = dot(path, path)
    share = dot(near - start, path) / jnp.where(long > 0, long, jnp.ones_like(long))
    one = jnp.ones_like(share)
    fraction = jnp.where(
        slipped, jnp.clip(share, 0, 1), jnp.where(crossed, hit.fraction, one)
    )
    on_path = jnp.where(crossed[:, None], start + fraction[:, None] * path, end)
    stopped = crossed | slipped
    normal = inward_normals(walls, wall, start.dtype)
    return Crossing(
        stopped,
        select(slipped, near, on_path),
        select(stopped, normal, jnp.zeros_like(normal)),
        fraction,
        jnp.where(stopped, rows(walls.cells, wall), cell_hint).astype(np.int32),
    )
