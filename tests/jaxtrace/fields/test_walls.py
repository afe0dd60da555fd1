"""Walls against brute force over every triangle."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.fields.mesh_boundary import (
    closest_point,
    closest_wall,
    first_wall,
    inward_normals,
    make_walls,
)
from jaxtrace.fields.topology import Elements, make_mesh
from trace_meshes import SIX, boundary_patches, lattice, plane_lattice, split, warp


@functools.cache
def walls():
    points, cells = lattice((3, 4, 3), (1.0, 0.8, 0.5))
    points = np.float32(warp(points, 0.05)).astype(float)
    mesh = make_mesh(points, Elements(split(cells, SIX), kind="tetra"))
    part = np.zeros(len(mesh.nodes), np.int32)
    return jax.device_put(make_walls(mesh, points, np.dtype("f4"), part))


def triangles():
    return boundary_patches(walls(), 1.0, (0, 1, 2), np.zeros(3)).corners


def naive(x, corners):
    """The point of a triangle closest to a place, by minimization."""
    a, b, c = corners
    gap = lambda p: np.sum((a + p[0] * (b - a) + p[1] * (c - a) - x) ** 2)
    found = minimize(
        gap,
        [0.3, 0.3],
        bounds=[(0, 1), (0, 1)],
        constraints={"type": "ineq", "fun": lambda p: 1 - p.sum()},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    return np.sqrt(found.fun)


def test_closest_points_of_triangles():
    rng = np.random.default_rng(0)
    corners = triangles()
    x = rng.uniform(-0.5, 1.5, (40, 3)).astype(np.float32)
    wall = rng.integers(0, len(corners), 40).astype(np.int32)
    point = np.asarray(jax.jit(closest_point)(walls(), x, wall))
    distance = np.linalg.norm(point - x, axis=1)
    expected = [naive(place, corners[w]) for place, w in zip(x, wall, strict=True)]
    np.testing.assert_allclose(distance, expected, atol=1e-4)


def test_the_closest_wall_is_the_closest():
    x = np.random.default_rng(1).uniform(-0.5, 1.5, (300, 3)).astype(np.float32)
    count = len(triangles())
    everyone = jnp.tile(jnp.arange(count, dtype=np.int32), 300)
    points = jax.jit(closest_point)(walls(), np.repeat(x, count, 0), everyone)
    gaps = np.asarray(points).reshape(300, count, 3) - x[:, None]
    gaps = np.linalg.norm(gaps, axis=2)
    nearest = jax.jit(lambda *given: closest_wall(*given, part=None))
    for guess in (-1, 5):
        hints = jnp.full(300, guess, np.int32)
        wall, point = nearest(walls(), jnp.asarray(x), hints, jnp.ones(300, bool))
        found = np.linalg.norm(np.asarray(point) - x, axis=1)
        np.testing.assert_allclose(found, gaps.min(1), atol=1e-6)
        np.testing.assert_allclose(gaps[np.arange(300), wall], gaps.min(1), atol=1e-6)


def test_the_first_wall_of_a_path_is_the_first():
    rng = np.random.default_rng(2)
    size = np.array([1.0, 0.8, 0.5])
    start = rng.uniform(0.1 * size, 0.9 * size, (300, 3)).astype(np.float32)
    end = start + rng.standard_normal((300, 3)).astype(np.float32)
    first = jax.jit(lambda *given: first_wall(*given, part=None))
    hit = first(walls(), jnp.asarray(start), jnp.asarray(end), jnp.ones(300, bool))
    path = end - start
    exits = np.where(path > 0, (size - start) / path, -start / path).min(1)
    np.testing.assert_allclose(
        np.minimum(hit.fraction, 1), np.minimum(exits, 1), atol=1e-5
    )
    normal = np.asarray(inward_normals(walls(), hit.wall, np.dtype("f4")))
    struck = np.asarray(hit.fraction) <= 1
    assert np.all((normal * path).sum(1)[struck] < 0)


SIZE = np.array([2.0, 1.0, 0.5])
COUNT = 3000


@jax.jit
def _trace(field, start, end):
    return field.first_exit(start, end, field.start(start))


def first_exit(field, start, end):
    """The answer for a few paths, from the program for many."""
    count = len(start)
    spare = ((0, COUNT - count), (0, 0))
    start, end = (np.pad(np.float32(a), spare, mode="edge") for a in (start, end))
    found = _trace(field, jnp.asarray(start), jnp.asarray(end))
    return jax.tree.map(lambda a: a[:count], found)


def warped_box():
    """Hexahedra that are no boxes; the bent box below is of tetrahedra."""
    points, cells = lattice((4, 5, 4), SIZE)
    points = warp(points, 0.1 * SIZE / [3, 4, 3])
    return make_mesh_field(points, cells, points, kind="hexahedron", dtype=np.float32)


def paths(low, high, seed=0):
    """Paths from places in a box to places around it."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(low, high, (COUNT, 3))
    width = high - low
    end = rng.uniform(low - width / 2, high + width / 2, (COUNT, 3))
    return start.astype(np.float32), end.astype(np.float32)


def exit_of_box(start, end, low, high):
    """The fraction of each path within a box, and the axis it leaves along."""
    path = end - start
    wall = np.where(path > 0, high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = np.where(path != 0, (wall - start) / path, np.inf)
    return fraction.min(1), fraction.argmin(1)


def test_paths_leave_a_box_where_they_should():
    start, end = paths(np.zeros(3), SIZE)
    found = first_exit(warped_box(), start, end)
    fraction, axis = exit_of_box(start.astype(float), end.astype(float), 0 * SIZE, SIZE)
    hit = fraction <= 1
    np.testing.assert_array_equal(found.hit, hit)
    np.testing.assert_allclose(found.fraction, np.minimum(fraction, 1), atol=2e-5)
    expected = start + np.minimum(fraction, 1)[:, None] * (end - start)
    np.testing.assert_allclose(found.point, expected, atol=2e-5)
    inward = -np.sign(np.take_along_axis(end - start, axis[:, None], 1))
    normal = np.where(hit[:, None], inward * np.eye(3)[axis], 0)
    np.testing.assert_allclose(found.normal, normal, atol=1e-5)
    assert np.all(np.asarray(found.cell_hint) >= 0)


def test_paths_leave_a_rectangle_through_its_edges():
    points, cells = plane_lattice((5, 4), SIZE[:2])
    cells = split(cells, [[0, 1, 2], [0, 2, 3]])
    field = make_mesh_field(points, cells, points, dtype=np.float32)
    start, end = paths(np.zeros(3), SIZE)
    found = first_exit(field, start, end)
    plane = [a[:, :2].astype(float) for a in (start, end)]
    fraction, _ = exit_of_box(plane[0], plane[1], 0, SIZE[:2])
    np.testing.assert_array_equal(found.hit, fraction <= 1)
    expected = start + np.minimum(fraction, 1)[:, None] * (end - start)
    np.testing.assert_allclose(found.point, expected, atol=2e-5)
    assert np.all(np.asarray(found.normal)[:, 2] == 0)


def bent():
    """A box without one quarter of its plan: paths may leave it and come back."""
    points, cells = lattice((5, 5, 3))
    middle = points[cells].mean(1)
    kept = ~((middle[:, 0] > 0.5) & (middle[:, 1] > 0.5))
    cells = split(cells[kept], SIX)
    return make_mesh_field(points, cells, points, kind="tetra", dtype=np.float32)


def within(x):
    """Whether a place is in the bent box."""
    warped_box = ((x >= 0) & (x <= 1)).all(-1)
    return warped_box & ~((x[..., 0] > 0.5) & (x[..., 1] > 0.5))


def test_the_first_exit_counts_where_a_path_comes_back():
    start = np.array([[0.7, 0.3, 0.5], [0.3, 0.7, 0.5], [0.2, 0.2, 0.5]], np.float32)
    end = np.array([[0.3, 0.9, 0.5], [0.9, 0.3, 0.5], [0.4, 0.8, 0.5]], np.float32)
    found = first_exit(bent(), start, end)
    assert found.hit.tolist() == [True, True, False]
    np.testing.assert_allclose(found.fraction, [1 / 3, 1 / 3, 1], atol=1e-6)
    np.testing.assert_allclose(found.normal[0], [0, -1, 0], atol=1e-6)
    np.testing.assert_allclose(found.point[2], end[2])


def test_no_path_leaks():
    low, high = np.zeros(3), np.ones(3)
    start, end = (some[:800] for some in paths(low, high, seed=4))
    start = np.where(within(start)[:, None], start, start * 0.5)
    assert within(start).all()
    field = bent()
    found = first_exit(field, start, end)
    share = np.linspace(0, 1, 2001)[:, None, None]
    along = within(start + share * (end - start).astype(float))
    leaves = ~along.all(0)
    # A dip below one part in two thousand may pass unseen by the samples.
    first = np.where(leaves, along.argmin(0) / 2000, 1)
    agree = np.abs(np.asarray(found.fraction) - first) < 1e-3
    assert agree.mean() > 0.999
    assert within(end[~np.asarray(found.hit)]).all()


def test_paths_along_walls_and_from_walls_do_not_leak():
    field = warped_box()
    corner = np.array([0.0, 0.0, 0.25])
    start = np.array([corner, corner, corner, [2.0, 1.0, 0.5], [0.0, 0.5, 0.25]])
    steps = [[1, 0, 0], [-1, 0, 0], [1, -1, 0], [1e-3, 0, 0], [0.1, 0.1, 0]]
    end = start + np.array(steps)
    found = first_exit(field, start, end)
    assert found.hit.tolist() == [False, True, True, True, False]
    np.testing.assert_allclose(found.point[1:4], start[1:4], atol=1e-6)


def test_paths_that_are_no_numbers_are_let_through():
    start = np.full((2, 3), 0.3, np.float32)
    end = np.array([[np.nan, 0.3, 0.3], [0.4, 0.3, 0.3]], np.float32)
    found = first_exit(warped_box(), start, end)
    assert found.hit.tolist() == [False, False]
    assert (np.asarray(found.cell_hint) >= 0).tolist() == [False, True]
