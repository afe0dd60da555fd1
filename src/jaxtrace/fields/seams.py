"""Seams within a mesh: faces that no other cell shares, yet with a cell beyond them.

Hanging nodes of refined cells and cells left out for want of volume make them; they
are no walls, and walks must cross them. Two equal faces back to back, on nodes of their
own, are a thin wall and stay one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxtrace.fields.locate import Locator, ask_tree
from jaxtrace.fields.topology import Mesh, pair_faces, split_faces

STEP = 1e-3  # how far beyond a face to look, in sizes of the face


def close_seams(
    locator: Locator, mesh: Mesh, part: Int[np.ndarray, " cells"] | None = None
) -> Locator:
    """The locator with seams marked, and cells on both sides made neighbors."""
    beyond = _beyond(locator)
    _, face = split_faces(mesh.boundary.nodes)
    behind = mesh.boundary.cells[face]
    piece = np.zeros_like(behind) if part is None else part[behind]
    box = np.asarray(locator.tree.boxes)[np.asarray(locator.tree.starts)[piece]]
    d = mesh.dimension
    within = ((beyond > box[:, :d]) & (beyond < box[:, d:])).all(1)
    within &= _without_twin(mesh, part)[face]
    if not within.any():
        return locator
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
    """Boundary faces that no other one of their part coincides with."""
    nodes = mesh.boundary.nodes
    piece = np.zeros(len(nodes)) if part is None else part[mesh.boundary.cells]
    keys = np.concatenate(
        [mesh.points[nodes], np.broadcast_to(piece[:, None, None], (*nodes.shape, 1))],
        axis=2,
    )
    _, place = np.unique(keys.reshape(-1, 4), axis=0, return_inverse=True)
    places = np.where(nodes < 0, -1, np.reshape(place, nodes.shape))
    return pair_faces(places, nodes.size)[1]


def _beyond(locator: Locator) -> Float[np.ndarray, "walls dim"]:
    """Places just outside the middle of every wall."""
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
