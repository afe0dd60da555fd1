"""Tensor-product grids hidden in lists of points, in whatever order these stand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxtrace.fields.cells import HEXAHEDRON, PYRAMID, QUAD, TETRA, TRIANGLE, WEDGE

ROUNDINGS = 8  # how many roundings two equal coordinates may be apart

# Simplices that make up each kind of cell, as rows of its corners.
_SIMPLICES = {
    TRIANGLE.name: ((0, 1, 2),),
    QUAD.name: ((0, 1, 2), (0, 2, 3)),
    TETRA.name: ((0, 1, 2, 3),),
    PYRAMID.name: ((0, 1, 2, 4), (0, 2, 3, 4)),
    WEDGE.name: ((0, 1, 2, 5), (0, 1, 5, 4), (0, 4, 5, 3)),
    HEXAHEDRON.name: (
        (0, 1, 2, 6),
        (0, 2, 3, 6),
        (0, 3, 7, 6),
        (0, 7, 4, 6),
        (0, 4, 5, 6),
        (0, 5, 1, 6),
    ),
}


@dataclass(frozen=True, eq=False)
class Lattice:
    """A grid and its nodes: `order[n]` is the point at node n, with z fastest."""

    axes: tuple[
        Float[np.ndarray, " nx"], Float[np.ndarray, " ny"], Float[np.ndarray, " nz"]
    ]
    order: Int[np.ndarray, " nodes"]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Nodes along x, y and z."""
        x, y, z = (axis.size for axis in self.axes)
        return x, y, z

    @property
    def sorted(self) -> bool:
        """Whether points stand in the order of nodes already."""
        return bool(np.all(self.order[1:] > self.order[:-1]))

    @property
    def ranks(self) -> Int[np.ndarray, " nodes"]:
        """The node of each point."""
        ranks = np.empty_like(self.order)
        ranks[self.order] = np.arange(self.order.size, dtype=ranks.dtype)
        return ranks


def find_lattice(points: Float[np.ndarray, "points 3"]) -> Lattice | None:
    """The grid whose nodes these points are, each once; None if there is none.

    Coordinates may be off by rounding, be it that of single precision or of arithmetic
    with the largest coordinate, but not by more.
    """
    if points.shape[0] == 0 or not np.all(np.isfinite(points)):
        return None
    order = np.argsort(points, axis=0)
    ranked = np.take_along_axis(points, order, axis=0).astype(np.float64)
    for slack in _slacks(points):
        found = [_groups(ranked[:, c], slack[c]) for c in range(3)]
        if any(steps is None for steps in found):
            continue
        starts = [np.asarray(steps) for steps in found]
        lattice = _assemble(ranked, order, starts)
        if lattice is not None:
            return lattice
    return None


def _slacks(points: np.ndarray) -> list[Float[np.ndarray, " 3"]]:
    """How far equal coordinates may be apart, strictest first."""
    size = np.abs(points).max(0).astype(np.float64)
    own, single = np.finfo(points.dtype).eps, np.finfo(np.float32).eps
    sizes = [own * size, max(own, single) * size]
    sizes.append(np.full(3, max(own, single) * size.max()))
    return [ROUNDINGS * s for s in sizes]


def _groups(
    ranked: Float[np.ndarray, " points"], slack: float
) -> Bool[np.ndarray, " points"] | None:
    """Where in rising coordinates a new one begins; None if groups are not tight."""
    starts = np.ones(ranked.size, bool)
    starts[1:] = np.diff(ranked) > slack
    firsts = np.flatnonzero(starts)
    lasts = np.append(firsts[1:], ranked.size) - 1
    spread = ranked[lasts] - ranked[firsts]
    return None if np.any(spread > 2 * slack) else starts


def _assemble(
    ranked: Float[np.ndarray, "points 3"],
    order: Int[np.ndarray, "points 3"],
    starts: list[Bool[np.ndarray, " points"]],
) -> Lattice | None:
    shape = [int(s.sum()) for s in starts]
    if math.prod(shape) != ranked.shape[0]:
        return None
    node = np.zeros(ranked.shape[0], np.int64)
    for c, first in enumerate(starts):
        place = np.empty_like(node)
        place[order[:, c]] = np.cumsum(first) - 1
        node = node * shape[c] + place
    places = np.full(node.size, -1, np.int64)
    places[node] = np.arange(node.size)
    if np.any(places < 0):
        return None
    # A coordinate stays one that was given, so that single precision stays single.
    x, y, z = (ranked[first, c] for c, first in enumerate(starts))
    return Lattice((x, y, z), places)


def fills(lattice: Lattice, blocks: Mapping[str, Int[np.ndarray, "_ _"]]) -> bool:
    """Whether cells, as rows of points for each kind, cover the grid box by box.

    Cells whose kind is quadratic do not count: between nodes they say something else.
    """
    if any(name not in _SIMPLICES for name in blocks):
        return False
    wide = [i for i, n in enumerate(lattice.shape) if n > 1]
    places = np.stack(np.unravel_index(lattice.ranks, lattice.shape), 1)[:, wide]
    volume = 0
    for name, cells in blocks.items():
        corners = places[cells]
        if np.any(np.ptp(corners, axis=1) > 1):
            return False
        parts = corners[:, np.asarray(_SIMPLICES[name])]
        edges = parts[:, :, 1:] - parts[:, :, :1]
        if edges.shape[2] != edges.shape[3]:
            return False
        volume += np.abs(np.rint(np.linalg.det(edges.astype(np.float64)))).sum()
    boxes = math.prod(lattice.shape[i] - 1 for i in wide)
    return bool(volume == boxes * math.factorial(len(wide)))
