"""Kinds of cells: corners, faces, reference coordinates and shape functions.

Every kind maps reference coordinates p to space as origin + linear part + products of
coordinates, and holds p where all of its sides, affine in p, are not negative.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

Values = list[Any]  # one array per coordinate, node or side, all of one shape
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Kind:
    """What distinguishes one kind of cell from another.

    `faces` lists corners in order around each face; row f of `sides` is (h, g...), and
    h + g.p is 0 on face f and positive inside; `expansion` turns corner coordinates
    into origin, linear part and product terms (xy in a plane; xy, yz, zx, xyz in space,
    where a pyramid's xy is divided by its distance 1 - z from the apex).
    """

    name: str
    dimension: int
    faces: tuple[tuple[int, ...], ...]
    sides: Matrix
    expansion: Matrix
    #: The corners at the ends of each mid-edge node of a quadratic kind.
    middle_edges: tuple[tuple[int, int], ...] = ()

    @property
    def corners(self) -> int:
        """Return how many corners a cell has."""
        return len(self.expansion[0])

    @property
    def nodes(self) -> int:
        """Return how many nodes a cell has, corners first."""
        return self.corners + len(self.middle_edges)

    @property
    def simplex(self) -> bool:
        """Return whether coordinates are barycentric, without product terms."""
        return self.corners == self.dimension + 1


def _matrix(*rows: Iterable[float]) -> Matrix:
    return tuple(tuple(map(float, row)) for row in rows)


def _tensor(signs: Sequence[Sequence[int]]) -> Matrix:
    """Return expansion of corners at ±1/2 into a multilinear map."""
    s = np.asarray(signs, float).T
    low = 0.5 ** len(s)
    rows = [np.full(s.shape[1], low), *(2 * low * s)]
    if len(s) == 2:
        rows.append(s[0] * s[1])
    else:
        rows += [s[0] * s[1] / 2, s[1] * s[2] / 2, s[2] * s[0] / 2, s[0] * s[1] * s[2]]
    return _matrix(*rows)


def _box_sides(dimension: int) -> Matrix:
    unit = np.eye(dimension)
    return _matrix(*((0.5, *(sign * axis)) for axis in unit for sign in (1, -1)))


_SQUARE = ((-1, -1), (1, -1), (1, 1), (-1, 1))
_CUBE = tuple((*corner, z) for z in (-1, 1) for corner in _SQUARE)
_THIRD = 1 / 3

TRIANGLE = Kind(
    "triangle",
    2,
    faces=((2, 0), (0, 1), (1, 2)),
    sides=_matrix((0, 1, 0), (0, 0, 1), (1, -1, -1)),
    expansion=_matrix((1, 0, 0), (-1, 1, 0), (-1, 0, 1)),
)
QUAD = Kind(
    "quad",
    2,
    faces=((3, 0), (1, 2), (0, 1), (2, 3)),
    sides=_box_sides(2),
    expansion=_tensor(_SQUARE),
)
TETRA = Kind(
    "tetra",
    3,
    faces=((0, 2, 3), (0, 1, 3), (0, 1, 2), (1, 2, 3)),
    sides=_matrix((0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, -1, -1, -1)),
    expansion=_matrix((1, 0, 0, 0), (-1, 1, 0, 0), (-1, 0, 1, 0), (-1, 0, 0, 1)),
)
HEXAHEDRON = Kind(
    "hexahedron",
    3,
    faces=(
        *((0, 3, 7, 4), (1, 2, 6, 5)),
        *((0, 1, 5, 4), (3, 2, 6, 7)),
        *((0, 1, 2, 3), (4, 5, 6, 7)),
    ),
    sides=_box_sides(3),
    expansion=_tensor(_CUBE),
)
WEDGE = Kind(
    "wedge",
    3,
    faces=((0, 2, 5, 3), (0, 1, 4, 3), (1, 2, 5, 4), (0, 1, 2), (3, 4, 5)),
    sides=_matrix(
        *((_THIRD, 1, 0, 0), (_THIRD, 0, 1, 0), (_THIRD, -1, -1, 0)),
        *((0.5, 0, 0, 1), (0.5, 0, 0, -1)),
    ),
    expansion=_matrix(
        [1 / 6] * 6,
        (-0.5, 0.5, 0, -0.5, 0.5, 0),
        (-0.5, 0, 0.5, -0.5, 0, 0.5),
        (-_THIRD, -_THIRD, -_THIRD, _THIRD, _THIRD, _THIRD),
        [0] * 6,
        (1, 0, -1, -1, 0, 1),
        (1, -1, 0, -1, 1, 0),
        [0] * 6,
    ),
)
PYRAMID = Kind(
    "pyramid",
    3,
    faces=((0, 3, 4), (1, 2, 4), (0, 1, 4), (3, 2, 4), (0, 1, 2, 3)),
    sides=_matrix(
        *((0.5, 1, 0, -0.5), (0.5, -1, 0, -0.5)),
        *((0.5, 0, 1, -0.5), (0.5, 0, -1, -0.5)),
        (0, 0, 0, 1),
    ),
    expansion=_matrix(
        (0.25, 0.25, 0.25, 0.25, 0),
        (-0.5, 0.5, 0.5, -0.5, 0),
        (-0.5, -0.5, 0.5, 0.5, 0),
        (-0.25, -0.25, -0.25, -0.25, 1),
        (1, -1, 1, -1, 0),
        *([0] * 5, [0] * 5, [0] * 5),
    ),
)
_AROUND, _TO_APEX = ((0, 1), (1, 2), (2, 0)), ((0, 3), (1, 3), (2, 3))
TRIANGLE6 = replace(TRIANGLE, name="quadratic_triangle", middle_edges=_AROUND)
TETRA10 = replace(TETRA, name="quadratic_tetra", middle_edges=_AROUND + _TO_APEX)
_ALL = (TRIANGLE, TRIANGLE6, QUAD, TETRA, TETRA10, HEXAHEDRON, WEDGE, PYRAMID)
KINDS = {kind.name: kind for kind in _ALL}
# VTK's numbers of cell types. Pixels and voxels count their nodes along x first.
VTK_CODES = {
    **{"triangle": 5, "pixel": 8, "quad": 9, "tetra": 10, "voxel": 11},
    **{"hexahedron": 12, "wedge": 13, "pyramid": 14},
    **{"quadratic_triangle": 22, "quadratic_tetra": 24},
}
_X_FIRST = {
    "pixel": (QUAD, (0, 1, 3, 2)),
    "voxel": (HEXAHEDRON, (0, 1, 3, 2, 4, 5, 7, 6)),
}
# For each number our kind, and where its nodes stand in our order.
VTK_KINDS: dict[int, tuple[Kind, tuple[int, ...]]] = {
    code: _X_FIRST[name]
    if name in _X_FIRST
    else (KINDS[name], tuple(range(KINDS[name].nodes)))
    for name, code in VTK_CODES.items()
}
# Points, lines and polylines carry no volume: boundaries and probes in mesh files.
VTK_THIN = frozenset({0, 1, 2, 3, 4, 21})


def side_values(kind: Kind, p: Values) -> Values:
    """Return how far inside each face: all are >= 0 within the cell, 0 on that face."""
    values = []
    for h, *slopes in kind.sides:
        terms = [g * c if g != 1 else c for g, c in zip(slopes, p, strict=True) if g]
        values.append(sum(terms, start=h) if h else sum(terms[1:], start=terms[0]))
    return values


def later_weights(kind: Kind, p: Values) -> Values:
    """Return the shape functions of all nodes but the first."""
    if kind.middle_edges:
        shares = [1 - sum(p[1:], start=p[0]), *p]
        corners = [share * (2 * share - 1) for share in shares]
        return corners[1:] + [4 * shares[i] * shares[j] for i, j in kind.middle_edges]
    if kind.simplex:
        return list(p)
    if kind.name == "wedge":
        low, high = 0.5 - p[2], 0.5 + p[2]
        second, third = p[0] + _THIRD, p[1] + _THIRD
        first = _THIRD - p[0] - p[1]
        return [second * low, third * low, first * high, second * high, third * high]
    # Rational functions (Bedrosian, 1992): no polynomial is bilinear on the base and
    # linear on the four triangles.
    if kind.name == "pyramid":
        height = 1 - p[2]
        safe = jnp.where(height > 0, height, jnp.ones_like(height))
        x, y = p[0] / safe, p[1] / safe
        return [height * w for w in _multilinear(_SQUARE, [x, y])[1:]] + [p[2]]
    return _multilinear(_CUBE if kind.dimension == 3 else _SQUARE, p)[1:]


def _multilinear(signs: Sequence[Sequence[int]], p: Values) -> Values:
    sides = [{-1: 0.5 - c, 1: 0.5 + c} for c in p]
    weights = []
    for corner in signs:
        factors = [side[sign] for side, sign in zip(sides, corner, strict=True)]
        weight = factors[0] * factors[1]
        weights.append(weight * factors[2] if len(factors) == 3 else weight)
    return weights
