"""Walls against brute force over every triangle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxtrace.fields.topology import make_mesh
from jaxtrace.fields.walls import (
    boundary_patches,
    closest_point,
    closest_wall,
    first_wall,
    inward_normals,
    make_walls,
)
from trace_meshes import SIX, lattice, split, warp

pytestmark = pytest.mark.slow  # compiles many programs


def box():
    points, cells = lattice((3, 4, 3), (1.0, 0.8, 0.5))
    points = np.float32(warp(points, 0.05)).astype(float)
    mesh = make_mesh(points, split(cells, SIX), kind="tetra")
    part = np.zeros(len(mesh.nodes), np.int32)
    return jax.tree.map(jnp.asarray, make_walls(mesh, points, np.dtype("f4"), part))


WALLS = {}


def walls():
    return WALLS.setdefault("box", box())


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


@pytest.mark.slow
def test_closest_points_of_triangles():
    rng = np.random.default_rng(0)
    corners = triangles()
    x = rng.uniform(-0.5, 1.5, (40, 3)).astype(np.float32)
    wall = rng.integers(0, len(corners), 40).astype(np.int32)
    point = np.asarray(closest_point(walls(), jnp.asarray(x), jnp.asarray(wall)))
    distance = np.linalg.norm(point - x, axis=1)
    expected = [naive(place, corners[w]) for place, w in zip(x, wall, strict=True)]
    np.testing.assert_allclose(distance, expected, atol=1e-4)


@pytest.mark.parametrize("guess", [-1, 5])
@pytest.mark.slow
def test_the_closest_wall_is_the_closest(guess):
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.5, 1.5, (300, 3)).astype(np.float32)
    count = len(triangles())
    wall, point = closest_wall(
        walls(),
        jnp.asarray(x),
        jnp.full(300, guess, np.int32),
        jnp.ones(300, bool),
        None,
    )
    everyone = jnp.tile(jnp.arange(count, dtype=np.int32), 300)
    all_points = closest_point(walls(), jnp.repeat(jnp.asarray(x), count, 0), everyone)
    gaps = np.linalg.norm(
        np.asarray(all_points).reshape(300, count, 3) - x[:, None], axis=2
    )
    found = np.linalg.norm(np.asarray(point) - x, axis=1)
    np.testing.assert_allclose(found, gaps.min(1), atol=1e-6)
    np.testing.assert_allclose(gaps[np.arange(300), wall], gaps.min(1), atol=1e-6)


def test_the_first_wall_of_a_path_is_the_first():
    rng = np.random.default_rng(2)
    size = np.array([1.0, 0.8, 0.5])
    start = rng.uniform(0.1 * size, 0.9 * size, (300, 3)).astype(np.float32)
    end = start + rng.standard_normal((300, 3)).astype(np.float32)
    paths = jnp.asarray(start), jnp.asarray(end)
    hit = first_wall(walls(), *paths, jnp.ones(300, bool), None)
    path = end - start
    exits = np.where(path > 0, (size - start) / path, -start / path).min(1)
    np.testing.assert_allclose(
        np.minimum(hit.fraction, 1), np.minimum(exits, 1), atol=1e-5
    )
    normal = np.asarray(inward_normals(walls(), hit.wall, np.dtype("f4")))
    struck = np.asarray(hit.fraction) <= 1
    assert np.all((normal * path).sum(1)[struck] < 0)


def test_patches_close_the_box():
    patches = boundary_patches(walls(), 0.5, (0, 1, 2), np.zeros(3))
    flux = (patches.normals * patches.areas[:, None]).sum(0)
    np.testing.assert_allclose(flux, 0, atol=1e-5)
    assert patches.areas.sum() == pytest.approx(4 * 2 * (0.8 + 0.4 + 0.5), rel=1e-5)
