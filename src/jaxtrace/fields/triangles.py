"""Triangles on a sphere: chords of it between nodes, searched as other patches are."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from jaxtrace.fields.box_tree import in_groups, select
from jaxtrace.fields.faces import pair_faces
from jaxtrace.fields.quads import (
    EDGE,
    MATCH,
    NOWHERE,
    SIDES,
    WALL,
    Cells,
    Columns,
    Place,
    Quads,
    entries,
    make_tree,
    split_patches,
)

# Corners at the ends of the sides xi = 0, xi + eta = 1 and eta = 0.
ENDS = ((0, 2), (1, 2), (0, 1))


class Triangles(Quads):
    """Triangles by their three nodes: xi and eta are the shares of the last two."""

    nodes: Int[np.ndarray | Any, " corners"]

    def beyond(self, xi: Columns, eta: Columns) -> tuple[Columns, ...]:
        """Return how far coordinates are beyond each side."""
        return -xi, xi + eta - 1, -eta

    def within(self, place: Place) -> tuple[Columns, Columns]:
        """Return coordinates brought into the cell."""
        xi, eta = jnp.maximum(place.xi, 0), jnp.maximum(place.eta, 0)
        over = jnp.maximum(xi + eta, 1)
        return xi / over, eta / over

    def look_again(
        self, positions: Float[Array, "n 3"], place: Place, hint: Cells
    ) -> tuple[Place, Cells]:
        """Return places with those that a walk did not reach looked for everywhere.

        A walk may end in a corner of the rim from which it does not go straight on.
        """
        missing = ~place.held & (hint != NOWHERE)

        def search() -> tuple[Place, Cells]:
            work = lambda there, active: select(active, self.start(there), NOWHERE)
            none = jnp.full_like(hint, NOWHERE)
            cell = in_groups(missing, positions, none, work)
            found = missing & (cell != NOWHERE)
            again = self.probe(self.sight(positions), jnp.where(found, cell, 0))
            return select(found, again, place), jnp.where(found, cell, hint)

        return lax.cond(jnp.any(missing), search, lambda: (place, hint))

    def corners(self, cell: Cells) -> list[Cells]:
        """Return the three nodes of cells."""
        return [entries(self.nodes, 3 * cell + k) for k in range(3)]


def make_triangles(
    points: Float[np.ndarray, "nodes 3"],
    triangles: Int[np.ndarray, "cells 3"],
    dtype: Any,
    coast: bool,
    flat: bool = False,
) -> Triangles:
    """Return triangles between points of the unit sphere, or flat ones at height 1.

    The rim of the mesh is a `coast`, closed, or else only islands are: the loops of the
    rim other than the widest.
    """
    corners = points[triangles]
    edges = corners[:, 1:] - corners[:, :1]
    area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=-1)
    sized = np.isfinite(area) & (area > 1e-9 * np.nanmax(area, initial=0.0))
    if not sized.any():
        raise ValueError(
            f"a mesh of {len(triangles)} triangles has none with an area: give three "
            "finite nodes that are apart at least"
        )
    patch = np.zeros((len(triangles), 4, 3))
    patch[:, 0], patch[:, 1:3] = corners[:, 0], edges
    patch[~sized] = 0
    items = np.flatnonzero(sized)
    boxed = patch[items]
    boxed[:, 3] = -boxed[:, 2]  # a box around three corners, not around four
    return Triangles(
        split_patches(patch[:, :3], dtype),
        _join(points, triangles, sized, coast).reshape(-1).astype(np.int32),
        make_tree(boxed, items, np.dtype(dtype)),
        width=0,
        iterations=1,
        flat=flat,
        nodes=triangles.reshape(-1).astype(np.int32),
    )


def _join(
    points: Float[np.ndarray, "nodes 3"],
    triangles: Int[np.ndarray, "cells 3"],
    sized: Bool[np.ndarray, " cells"],
    coast: bool,
) -> Int[np.ndarray, "cells 4"]:
    """Return the cells beyond the sides of cells, by nodes or by nodes at one place."""
    beyond = np.full((len(triangles), SIDES), EDGE)
    beyond[:, SIDES - 1] = WALL
    cell, side = _pair(triangles, sized, beyond)
    if not cell.size:
        return beyond
    # A mesh may have its nodes twice along a meridian.
    ends = triangles[:, ENDS][cell, side]
    rim = np.unique(ends)
    lengths = np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1)
    room = MATCH * np.quantile(lengths, 0.01)
    same = rim[KDTree(points[rim]).query_pairs(room, output_type="ndarray")]
    name = np.arange(len(points))
    np.minimum.at(name, same.max(1), same.min(1))
    cell, side = _pair(name[triangles], sized, beyond)
    closed = np.ones(cell.size, bool)
    if not coast:
        closed = _islands(points, name[triangles][:, ENDS][cell, side])
    beyond[cell[closed], side[closed]] = WALL
    return beyond


def _islands(
    points: Float[np.ndarray, "nodes 3"], ends: Int[np.ndarray, "sides 2"]
) -> Bool[np.ndarray, " sides"]:
    """Return which sides of a rim are not of its widest loop."""
    links = coo_array((np.ones(len(ends)), ends.T), shape=(len(points),) * 2)
    loop = connected_components(links, directed=False)[1][ends[:, 0]]
    names, loop = np.unique(loop, return_inverse=True)
    low, high = np.full((names.size, 3), np.inf), np.full((names.size, 3), -np.inf)
    np.minimum.at(low, loop, points[ends[:, 0]])
    np.maximum.at(high, loop, points[ends[:, 0]])
    return loop != np.argmax((high - low).max(1, initial=0)) if names.size else loop > 0


def _pair(
    triangles: Int[np.ndarray, "cells 3"],
    sized: Bool[np.ndarray, " cells"],
    beyond: Int[np.ndarray, "cells 4"],
) -> tuple[Int[np.ndarray, " alone"], Int[np.ndarray, " alone"]]:
    """Write down cells that share an edge; return cells and sides that are alone."""
    cell, side = np.nonzero(np.repeat(sized[:, None], 3, 1))
    other = pair_faces(triangles[:, ENDS][cell, side].T)[0]
    met = other >= 0
    beyond[cell[met], side[met]] = cell[other[met]]
    return cell[~met], side[~met]
