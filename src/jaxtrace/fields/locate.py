"""Which cell holds a place: a walk from a remembered cell, and a search that is exact.

What a particle remembers is the number of its cell, or -1 minus the number of the
closest wall when it is outside, or that it was nowhere yet.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.reference import (
    Records,
    clamp,
    invert,
    make_records,
    open_records,
    sides,
)
from jaxtrace.fields.search import (
    Tree,
    build_parts,
    in_groups,
    rows,
    select,
    traverse,
)
from jaxtrace.fields.topology import Mesh
from jaxtrace.fields.walls import Walls, closest_wall, make_walls

NOWHERE = np.iinfo(np.int32).min  # what is remembered where nothing is known
HOPS = 12  # cells a walk may pass before the tree is asked

Places = Float[Array, "n dim"]
Kept = Float[Array, "n kept"]
Remembered = Int[Array, " n"]


class Locator(eqx.Module):
    """All that is needed to find the cell of a place."""

    records: Records
    neighbors: Int[Array | np.ndarray, "*batch cells faces"]
    tree: Tree
    walls: Walls


class Place(eqx.Module):
    """A cell, reference coordinates in it (of warped cells), and what to remember."""

    cell: Int[Array, " n"]
    coordinates: Kept
    memory: Remembered


def make_locator(
    mesh: Mesh,
    points: np.ndarray,
    dtype: np.dtype,
    part: Int[np.ndarray, " cells"] | None = None,
) -> Locator:
    """The locator of a mesh over points (N, dim) that are exact in a dtype.

    Where `part` tells cells of different parts apart, each part is searched by itself.
    """
    part = np.zeros(len(mesh.nodes), np.int32) if part is None else part
    corners = points[mesh.nodes]
    room = 64 * np.finfo(dtype).eps * np.ptp(corners, axis=1)
    low, high = corners.min(1) - room, corners.max(1) + room
    low = np.nextafter(low.astype(dtype), dtype.type(-np.inf))
    high = np.nextafter(high.astype(dtype), dtype.type(np.inf))
    return Locator(
        make_records(mesh, points, dtype),
        mesh.neighbors,
        build_parts(low, high, part),
        make_walls(mesh, points, dtype, part),
    )


def know_nothing(shape: tuple[int, ...]) -> Int[Array, "..."]:
    """What particles remember that were nowhere yet."""
    # A constant would be folded into the search, which XLA then makes far slower.
    return lax.optimization_barrier(jnp.full(shape, NOWHERE, np.int32))


def remembered_cell(locator: Locator, memory: Remembered) -> Int[Array, " n"]:
    """The cell to start from: the one remembered, or the one behind the wall."""
    behind = rows(locator.walls.cells, remembered_wall(locator, memory))
    return jnp.where(memory >= 0, memory, behind)


def remembered_wall(locator: Locator, memory: Remembered) -> Int[Array, " n"]:
    """The wall that a particle outside remembers; any other where it does not."""
    return jnp.clip(-1 - memory, 0, locator.walls.cells.shape[-1] - 1)


def locate(
    locator: Locator, x: Places, memory: Remembered, part: Remembered | None = None
) -> Place:
    """The cell of every place; of places outside, the cell behind the closest wall.

    `part` says which part of the mesh to look in; memory must be of that part.
    """
    x = lax.stop_gradient(x)
    cell = remembered_cell(locator, memory)
    lost = ~jnp.all(jnp.isfinite(x), -1)
    coordinates, found, _ = _probe(locator, x, cell)
    found &= memory != NOWHERE
    place = Place(cell, coordinates, jnp.where(lost, NOWHERE, cell))
    missing = ~found & ~lost
    return lax.cond(
        jnp.any(missing), _resolve, lambda _, place, *__: place,
        locator, place, x, missing, memory, part,
    )  # fmt: skip


def _probe(
    locator: Locator, x: Places, cell: Array, waiting: Array | None = None
) -> tuple[Kept, Bool[Array, " n"], list[Array]]:
    """Coordinates in a cell, whether they lie inside it, and how far from each face."""
    records = locator.records
    local = open_records(records, x, cell)
    p, sure = invert(records, local, waiting)
    faces = sides(records, local, p)
    least = faces[0]
    for face in faces[1:]:
        least = jnp.minimum(least, face)
    return _kept(records, p), sure & (least >= -local.tolerance), faces


def _kept(records: Records, p: list[Array]) -> Kept:
    """Coordinates where finding them took iterations; none where they are direct."""
    if records.warped:
        return jnp.stack(p, -1)
    return jnp.zeros((p[0].shape[0], 0), p[0].dtype)


def _resolve(
    locator: Locator,
    place: Place,
    x: Places,
    missing: Array,
    memory: Remembered,
    part: Remembered | None,
) -> Place:
    """Find the missing ones, a group at a time: in cells first, then beyond walls."""

    def by_cells(given: tuple, active: Array) -> Place:
        x, memory, part = given
        return _find_cells(locator, x, memory, active, part)

    def by_walls(given: tuple, active: Array) -> Place:
        x, guess, part = given
        return _find_walls(locator, x, guess, active, part)

    place = in_groups(missing, (x, memory, part), place, by_cells)
    outside = missing & (place.memory == NOWHERE)
    # A walk ends where it met the boundary, most often: that wall is close.
    met = rows(locator.walls.of_cells, place.cell)
    guess = jnp.where(met >= 0, met, jnp.maximum(-1 - memory, -1))
    guess = jnp.where(memory == NOWHERE, -1, guess)
    return lax.cond(
        jnp.any(outside),
        lambda place: in_groups(outside, (x, guess, part), place, by_walls),
        lambda place: place,
        place,
    )


def _find_cells(
    locator: Locator,
    x: Places,
    memory: Remembered,
    active: Array,
    part: Remembered | None,
) -> Place:
    """The cells that hold places; where none does, a memory of nowhere."""
    start = remembered_cell(locator, memory)
    cell, found = walk(locator, x, start, active & (memory != NOWHERE))
    cell, found = lax.cond(
        jnp.all(found | ~active), lambda _, __, *known: known[:2], ask_tree,
        locator, x, cell, found | ~active, part,
    )  # fmt: skip
    known = jnp.where(found, cell, NOWHERE)
    return Place(cell, _coordinates(locator.records, x, cell, found), known)


def _find_walls(
    locator: Locator,
    x: Places,
    guess: Int[Array, " n"],
    active: Array,
    part: Remembered | None,
) -> Place:
    """The closest points of the mesh to places outside: their walls and cells."""
    walls = locator.walls
    wall, near = closest_wall(walls, x, guess, active, part)
    cell = rows(walls.cells, wall)
    # A seam within the mesh is no end of it: its closest cell counts as the place's.
    known = jnp.where(rows(walls.gaps, wall), cell, -1 - wall)
    return Place(cell, _coordinates(locator.records, near, cell, active), known)


def _coordinates(records: Records, x: Places, cell: Array, active: Array) -> Kept:
    local = open_records(records, x, cell)
    p, _ = invert(records, local, active)
    return _kept(records, clamp(records, local, p))


def walk(
    locator: Locator, x: Places, cell: Int[Array, " n"], active: Bool[Array, " n"]
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """Hop across the face a place is farthest beyond, until a cell holds it.

    Faces without a cell behind are not crossed; a walk that can go nowhere, or that has
    gone on for too long, ends where it is.
    """

    def going(carry: tuple) -> Array:
        _, _, moving, hops = carry
        return jnp.any(moving) & (hops < HOPS)

    def hop(carry: tuple) -> tuple:
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
    cell, found, _, _ = lax.while_loop(going, hop, start)
    return cell, found


def ask_tree(
    locator: Locator,
    x: Places,
    cell: Int[Array, " n"],
    found: Bool[Array, " n"],
    part: Remembered | None,
) -> tuple[Int[Array, " n"], Bool[Array, " n"]]:
    """The cells that hold the places not found yet; where none does, those given."""
    d = x.shape[1]

    def touches(lanes: tuple, boxes: Array) -> Array:
        del lanes
        boxes = boxes.astype(x.dtype)
        return jnp.all((x >= boxes[:, :d]) & (x <= boxes[:, d:]), -1)

    def visit(lanes: tuple, item: Array, here: Array) -> tuple:
        _, inside, _ = _probe(locator, x, item, here)
        return select(here & inside, (item, inside), lanes), inside

    lanes = (cell, found)
    return traverse(locator.tree, lanes, ~found, touches, visit, part=part, costly=True)
