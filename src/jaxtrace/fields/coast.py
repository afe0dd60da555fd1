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
    if land is None or not hasattr(field, "walls"):
        raise ValueError(
            f"slip={slip!r} needs a grid of longitudes and latitudes with land: "
            "leave it out"
        )
    faces = np.zeros(field.shape, np.uint8)
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        low = land_cells(land, field.shape, others)
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
