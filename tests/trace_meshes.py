"""Meshes to test with, and a naive account of what their cells say."""

import itertools
from typing import NamedTuple

import numpy as np

from jaxtrace.fields.faces import split_faces, wall_normals

# Six tetrahedra of a hexahedron around its diagonal from corner 0 to corner 6.
SIX = [
    [0, 1, 2, 6],
    [0, 2, 3, 6],
    [0, 3, 7, 6],
    [0, 7, 4, 6],
    [0, 4, 5, 6],
    [0, 5, 1, 6],
]
TWO = [[0, 1, 2, 4, 5, 6], [0, 2, 3, 4, 6, 7]]  # prisms of a hexahedron
# Faces of a hexahedron but the last along x, that one cut in two, and prisms along x
# that are cut in the same way.
FACES = [[0, 3, 7, 4], [0, 1, 5, 4], [3, 2, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7]]
CUT = [[1, 2, 5], [2, 6, 5]]
ALONG = [[0, 3, 4, 1, 2, 5], [3, 7, 4, 2, 6, 5]]


def lattice(shape, size=(1.0, 1.0, 1.0), ratio=1.0):
    """Nodes and hexahedra of a box; spacings grow by a ratio from end to end."""
    axes = [s * _spread(n, ratio) for n, s in zip(shape, size, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    number = np.arange(len(points)).reshape(shape)
    square = [(0, 0), (1, 0), (1, 1), (0, 1)]
    corners = [(i, j, k) for k in (0, 1) for i, j in square]
    n = [s - 1 for s in shape]
    cells = [
        number[i : n[0] + i, j : n[1] + j, k : n[2] + k].ravel() for i, j, k in corners
    ]
    return points, np.stack(cells, 1)


def _spread(count, ratio):
    steps = ratio ** (np.arange(count - 1) / max(count - 2, 1))
    return np.concatenate([[0], np.cumsum(steps)]) / steps.sum()


def plane_lattice(shape, size=(1.0, 1.0)):
    """Nodes and quads of a rectangle."""
    points, cells = lattice((*shape, 2), (*size, 1.0))
    flat = points[:, 2] == 0
    number = np.cumsum(flat) - 1
    return points[flat], number[cells[:, :4]]


def warp(points, amount, seed=0):
    """Nodes within a box moved at random; those on its faces move along them."""
    rng = np.random.default_rng(seed)
    low, high = points.min(0), points.max(0)
    free = (points > low) & (points < high)
    return points + free * rng.uniform(-amount, amount, points.shape)


def split(cells, pattern):
    """Cells cut into smaller ones, each a row of corners of the old one."""
    return cells[:, pattern].reshape(-1, len(pattern[0]))


def pyramids(points, cells):
    """Hexahedra cut into six pyramids about their centers."""
    centers = np.arange(len(cells)) + len(points)
    bases = split(cells, [*FACES, [1, 2, 6, 5]])
    cut = np.concatenate([bases, np.repeat(centers, 6)[:, None]], 1)
    return np.concatenate([points, points[cells].mean(1)]), cut


def quadratic(points, cells):
    """Simplices with nodes added in the middle of their edges, in VTK's order."""
    pairs = {3: [(0, 1), (1, 2), (2, 0)]}
    pairs[4] = [*pairs[3], (0, 3), (1, 3), (2, 3)]
    number, added = {}, []
    rows = []
    for cell in cells:
        row = list(cell)
        for a, b in pairs[cells.shape[1]]:
            edge = tuple(sorted((cell[a], cell[b])))
            if edge not in number:
                number[edge] = len(points) + len(added)
                added.append((points[cell[a]] + points[cell[b]]) / 2)
            row.append(number[edge])
        rows.append(row)
    return np.concatenate([points, added]), np.asarray(rows)


def mixed(shape=(4, 4, 4)):
    """Points and VTK cells of all linear solids, joined face to face.

    From low to high x: hexahedra, pyramids about a center, prisms; two tetrahedra
    replace the pyramid whose base the prisms cut.
    """
    points, cells = lattice(shape)
    points, rows, kinds = list(points), [], []
    layer = (shape[1] - 1) * (shape[2] - 1)
    for index, cell in enumerate(cells):
        if index < layer:
            rows.append(cell)
            kinds.append(12)
        elif index < 2 * layer:
            center = len(points)
            points.append(np.mean([points[c] for c in cell], 0))
            rows += [[*cell[face], center] for face in FACES]
            rows += [[*cell[part], center] for part in CUT]
            kinds += [14] * len(FACES) + [10] * len(CUT)
        else:
            rows += [cell[part] for part in ALONG]
            kinds += [13] * len(ALONG)
    return np.asarray(points), [np.asarray(row) for row in rows], np.asarray(kinds)


def flat(rows):
    """Rows of different lengths end to end, and where each ends (VTK's offsets)."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.concatenate([np.asarray(row) for row in rows]), offsets


def shares(code, rng, count):
    """Random weights of a cell's nodes: shape functions, naively, within the cell."""
    simplex = lambda n: rng.dirichlet(np.ones(n), count)
    u = rng.random((count, 3))
    if code in (5, 10):
        return simplex(3 if code == 5 else 4)
    if code in (22, 24):
        corner = simplex(3 if code == 22 else 4)
        edges = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)][
            : 3 if code == 22 else 6
        ]
        middle = [4 * corner[:, i] * corner[:, j] for i, j in edges]
        return np.concatenate([corner * (2 * corner - 1), np.stack(middle, 1)], 1)
    square = [(0, 0), (1, 0), (1, 1), (0, 1)]
    side = lambda axis, bit: u[:, axis] if bit else 1 - u[:, axis]
    base = np.stack([side(0, i) * side(1, j) for i, j in square], 1)
    if code == 9:
        return base
    if code == 12:
        return np.concatenate(
            [base * side(2, 0)[:, None], base * side(2, 1)[:, None]], 1
        )
    if code == 13:
        triangle = simplex(3)
        return np.concatenate([triangle * side(2, b)[:, None] for b in (0, 1)], 1)
    height = 1 - u[:, 2] ** (1 / 3)
    return np.concatenate([base * (1 - height)[:, None], height[:, None]], 1)


def places(points, rows, codes, values, count, seed=0):
    """Random places within cells, and the values and weights found there."""
    rng = np.random.default_rng(seed)
    where, what, cells = [], [], []
    for code, group in itertools.groupby(
        sorted(range(len(rows)), key=lambda i: codes[i]), key=lambda i: codes[i]
    ):
        members = np.asarray(list(group))
        pick = members[rng.integers(0, len(members), count)]
        nodes = np.asarray([rows[i] for i in members])[np.searchsorted(members, pick)]
        weights = shares(int(code), rng, count)
        where.append(np.einsum("ni,nid->nd", weights, points[nodes]))
        what.append(np.einsum("ni,nid->nd", weights, values[nodes]))
        cells.append(pick)
    return np.concatenate(where), np.concatenate(what), np.concatenate(cells)


def holding_simplices(points, cells, place):
    """Brute force: the smallest barycentric coordinate of a place in every simplex."""
    origin = points[cells[:, 0]]
    edges = np.swapaxes(points[cells[:, 1:]] - origin[:, None], 1, 2)
    later = np.linalg.solve(edges, (place - origin)[..., None])[..., 0]
    return np.minimum(later.min(1), 1 - later.sum(1))


class Patches(NamedTuple):
    """Pieces of wall: corners (n, d, 3), normals into the mesh, areas or lengths."""

    corners: np.ndarray
    normals: np.ndarray
    areas: np.ndarray


def boundary_patches(walls, scale, axes, level):
    """The walls of a locator in its unit of length; `level` fills a plane's third."""
    table = np.asarray(walls.table, np.float64)[~np.asarray(walls.gaps)]
    d = walls.dimension
    corners = np.tile(level, (len(table), d, 1))
    corner, edges = table[:, None, :d], table[:, d : d * d].reshape(-1, d - 1, d)
    corners[..., list(axes)] = np.concatenate([corner, corner + edges], 1) / scale
    normals = np.zeros((len(table), 3))
    normals[:, list(axes)] = table[:, -d:]
    areas = np.linalg.norm(wall_normals(corners, axes), axis=1)
    return Patches(corners, normals, areas)


def boundary_area(mesh):
    """The area of a mesh's boundary, or its length in a plane."""
    pieces, _ = split_faces(mesh.boundary.nodes)
    normals = wall_normals(mesh.points[pieces], mesh.axes)
    return np.linalg.norm(normals, axis=1).sum()


def boundary_faces(field):
    """The boundary of a mesh field, seams left out."""
    level = np.asarray(field.corners[0], np.float64)
    return boundary_patches(field.locator.walls, float(field.scale), field.axes, level)
