"""Coasts of a grid: which cells are land, and how a flow slips along them."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, UInt8

from jaxtrace.types import check_choice

# The share of the velocity along a coast that a land node has, of the node at sea.
SLIPS = {"none": 0.0, "partial": 0.5, "free": 1.0}


def land_cells(
    land: Bool[np.ndarray, "nx ny nz"],
    shape: Sequence[int],
    axes: Sequence[int] = (0, 1, 2),
) -> Bool[np.ndarray, "x y z"]:
    """Return which cells have land at every corner, by the node of their lowest one.

    Along some axes only, it is the face or edge of the cell at that node.
    """
    closing = [(0, size - n) for size, n in zip(shape, land.shape, strict=True)]
    nodes = np.pad(land, closing, mode="wrap")
    for axis in axes:
        if shape[axis] > 1:
            nodes = nodes & _following(nodes, axis)
    return nodes


def _following(nodes: Bool[np.ndarray, "x y z"], axis: int) -> np.ndarray:
    """Return the next node of each along an axis; the last one is its own."""
    last = nodes.shape[axis] - 1
    return np.take(nodes, np.minimum(np.arange(last + 1) + 1, last), axis)


def let_slip(field: Any, land: Bool[np.ndarray, "nx ny nz"] | None, slip: str) -> Any:
    """Return a grid whose flow slips along its land: "none", "partial" or "free"."""
    check_choice("slip", slip, SLIPS)
    if slip == "none":
        return field
    if land is None or not getattr(field, "slips", False):
        raise ValueError(
            f"slip={slip!r} needs a grid on a sphere with land at its nodes; on "
            "C-grids particles slide by themselves: leave it out"
        )
    # A grid may be closed by its first column once more.
    shape = (*field.shape[:2], land.shape[2])
    faces = np.zeros(shape, np.uint8)
    # Values that are constant over a layer know no wall below them.
    upright = (0, 1) if getattr(field, "layered", False) else (0, 1, 2)
    for axis in upright:
        others = [other for other in upright if other != axis]
        low = land_cells(land, shape, others)
        for side, wall in enumerate((low, _following(low, axis))):
            faces |= wall.astype(np.uint8) << (2 * axis + side)
    walls = jnp.asarray(faces.ravel())
    return dataclasses.replace(field, walls=walls, slip=SLIPS[slip])


def slide_corners(
    corners: list[Array],
    component: int,
    faces: UInt8[Array, " n"],
    share: float,
    shape: Sequence[int],
) -> list[Array]:
    """Return corners of which those on a coast follow the ones across the cell.

    Interpolated, that is the velocity along a wall times (a + b eta) / eta of
    Delandmeter and van Sebille (2019), without its quotient 0 / 0: a = 1, b = 0 slips,
    a = b = 1/2 in part. What goes through a wall is kept.
    """
    for axis, side in itertools.product(range(3), range(2)):
        if axis == component or shape[axis] == 1:
            continue
        wall, across = (faces >> (2 * axis + side)) & 1 == 1, 4 >> axis
        corners = [
            jnp.where(wall, share * corners[i ^ across], own)
            if bool(i & across) == bool(side)
            else own
            for i, own in enumerate(corners)
        ]
    return corners


#: Corners of a cell (xi and eta 00, 10, 01, 11) on each side, and those across it.
_ACROSS = (
    ((0, 2), (1, 3)),  # along eta, the first axis of land: low, then high
    ((2, 0), (3, 1)),
    ((0, 1), (2, 3)),  # along xi
    ((1, 0), (3, 2)),
)


def slide_vectors(
    layers: list[list[list[Array]]],
    edges: Sequence[Sequence[Array]],
    faces: UInt8[Array, " n"],
    share: float,
) -> list[list[list[Array]]]:
    """Return corners of curvilinear cells of which those on a coast follow the others.

    `layers[step][component]` are four corners at a level and the next: a vector in
    space, then perhaps a rise. Of a vector what goes along the `edges` (of the sides
    of `_ACROSS`) follows.
    """
    wall_at = lambda bit: (faces >> bit) & 1 == 1
    if len(layers) > 1:
        low, high = layers
        for bit, (own, other) in ((4, (low, high)), (5, (high, low))):
            for c in range(3):
                own[c] = [
                    jnp.where(wall_at(bit), share * there, here)
                    for here, there in zip(own[c], other[c], strict=True)
                ]
    for bit, (pairs, edge) in enumerate(zip(_ACROSS, edges, strict=True)):
        wall = wall_at(bit)
        length = edge[0] * edge[0] + edge[1] * edge[1] + edge[2] * edge[2]
        per = share / jnp.where(length > 0, length, 1)
        for corners in layers:
            for own, across in pairs:
                along = sum(e * corners[c][across] for c, e in enumerate(edge))
                for c, e in enumerate(edge):
                    there = jnp.where(wall, per * along * e, corners[c][own])
                    corners[c][own] = there
                for up in corners[3:]:
                    up[own] = jnp.where(wall, share * up[across], up[own])
    return layers
