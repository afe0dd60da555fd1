"""Linear flows come back exactly on every mesh at every scale, and nobody is missed."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

import jaxtrace as jt
from trace_meshes import FACES, SIX, TWO, flat, lattice, mixed, pyramids, split, warp
from trace_series import linear

pytestmark = pytest.mark.slow  # compiles programs of its own

SIZE = np.array([2.0, 1.0, 0.5])
SCALES = [1e-6, 1e-3, 1.0, 1e3, 1e6]


def refined():
    """Cubes beside cubes of half and of a quarter their size: hanging nodes."""
    points, cells, count = [], [], 0
    for level, start in ((1, 0.0), (2, 1.0), (4, 1.5)):
        width = 1.0 if level == 1 else 0.5
        shape = (round(2 * level * width) + 1, 2 * level + 1, level + 1)
        some, rows = lattice(shape, (width, 1.0, 0.5))
        points.append(some + np.array([start, 0.0, 0.0]))
        cells.append(rows + count)
        count += len(some)
    return np.concatenate(points), np.concatenate(cells)


def cloud(count):
    """Delaunay's tetrahedra of scattered points in the box, slivers among them."""
    rng = np.random.default_rng(7)
    corners, _ = lattice((2, 2, 2), SIZE)
    points = np.concatenate([corners, rng.random((count, 3)) * SIZE])
    return points, Delaunay(points).simplices


def mesh(name):
    """Points, cells (rows of nodes) and VTK codes of a mesh that fills the box."""
    if name == "mixed":
        points, rows, codes = mixed((6, 6, 6))
        return warp(points, 0.03) * SIZE, rows, codes
    if name == "refined":
        points, rows = refined()
        return points, rows, np.full(len(rows), 12)
    if name == "refined tetrahedra":
        points, rows = refined()
        rows = split(rows, SIX)
        return points, rows, np.full(len(rows), 10)
    if name == "slivers":
        points, rows = cloud(400)
        return points, rows, np.full(len(rows), 10)
    ratio = 300.0 if name == "graded" else 1.0
    points, rows = lattice((8, 7, 6), SIZE, ratio)
    if ratio == 1.0:
        points = warp(points, 0.25 * SIZE / [7, 6, 5])
    if name in ("tetra", "graded"):
        rows, code = split(rows, SIX), 10
    elif name == "wedge":
        rows, code = split(rows, TWO), 13
    elif name == "pyramid":
        (points, rows), code = pyramids(points, rows), 14
    else:
        code = 12
    return points, rows, np.full(len(rows), code)


NAMES = ["tetra", "graded", "slivers", "hexahedron", "wedge", "pyramid", "mixed"]
NAMES += ["refined", "refined tetrahedra"]


def field_of(points, rows, codes, values):
    connectivity, offsets = flat(rows)
    return jt.TimeSeriesField(
        values[None],
        [0.0],
        points,
        connectivity=connectivity,
        cell_types=codes,
        cell_offsets=offsets,
        spatial_interpolation="elements",
        outside="nan",
    )


def check(name, scale, count, dtype, tolerance):
    points, rows, codes = mesh(name)
    field = field_of(scale * points, rows, codes, linear(points))
    rng = np.random.default_rng(3)
    x = (scale * SIZE * rng.random((count, 3))).astype(dtype)
    found = np.asarray(field.sample_at_positions(x, 0.0))
    assert found.dtype == dtype
    assert np.isnan(found).sum() == 0
    expected = linear(x.astype(np.float64) / scale)
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_double_precision_at_every_scale(double):
    for scale in (1e-6, 1.0, 1e6):
        check("mixed", scale, 2_000, np.float64, 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_of_a_million_is_missed(name):
    check(name, 1.0, 1_000_000, np.float32, 1e-5)
    for scale in SCALES:
        check(name, scale, 50_000, np.float32, 1e-5)


INNER = {
    10: [[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]],
    12: [*FACES, [1, 2, 6, 5]],
    13: [[0, 1, 2], [3, 4, 5], [0, 1, 4, 3], [1, 2, 5, 4], [2, 0, 3, 5]],
    14: [[0, 1, 2, 3], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]],
}


def on_faces(points, rows, codes, count):
    """Places on random faces of cells, and the normals of the faces there."""
    rng = np.random.default_rng(5)
    x, normals = [], []
    for cell in rng.integers(0, len(rows), count):
        faces = INNER[int(codes[cell])]
        face = points[np.asarray(rows[cell])[faces[rng.integers(len(faces))]]]
        if len(face) == 3:
            share, edges = rng.dirichlet(np.ones(3)), face[1:] - face[0]
            x.append(share @ face)
        else:
            u, v = rng.random(2)
            x.append(
                np.array([(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v]) @ face
            )
            one = (1 - v) * (face[1] - face[0]) + v * (face[2] - face[3])
            edges = [one, (1 - u) * (face[3] - face[0]) + u * (face[2] - face[1])]
        normal = np.cross(*edges)
        normals.append(normal / np.linalg.norm(normal))
    return np.stack(x), np.stack(normals)


@pytest.mark.parametrize("name", ["slivers", "mixed"])
def test_nothing_jumps_across_a_face(double, name):
    """Rough values: whatever the cell on either side, the face has one value."""
    points, rows, codes = mesh(name)
    values = np.random.default_rng(1).standard_normal(points.shape)
    field = field_of(points, rows, codes, values)
    x, normals = on_faces(points, rows, codes, 2000)  # as many as above: one program
    step = 1e-9 * normals
    sides = [np.clip(x + s * step, 0, SIZE) for s in (1, -1)]
    above, below = (np.asarray(field.sample_at_positions(y, 0.0)) for y in sides)
    assert np.abs(above - below).max() < 1e-5
    assert np.isfinite(above).all()
