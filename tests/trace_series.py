"""Velocity records to test with: nodes in grids, meshes and clouds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from trace_meshes import SIX, lattice, split

SLOPE = np.array([[1.0, 0.3, -0.2], [0.5, -1.0, 0.7], [-0.4, 0.2, 0.6]])
TIMES = np.array([0.0, 0.5, 2.0, 3.0])


def linear(x):
    """A velocity that is linear in space."""
    return np.asarray(x) @ SLOPE + [1.0, -2.0, 0.5]


def grid_points(shuffle=True, ratio=3.0, shape=(5, 4, 3)):
    """Nodes of a stretched box, in order or not."""
    steps = [ratio ** np.linspace(0, 1, n)[1:] for n in shape]
    axes = [np.append(0, np.cumsum(s) / s.sum()) if s.size else [0.5] for s in steps]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    points = points * [2.0, 1.0, 0.5]
    order = np.random.default_rng(3).permutation(len(points))
    return points[order] if shuffle else points


def tetra_mesh(shape=(4, 4, 3)):
    """Nodes and tetrahedra of a box whose inner nodes are moved."""
    points, cells = lattice(shape, (2.0, 1.0, 0.5))
    rng = np.random.default_rng(1)
    inner = ((points > 0) & (points < points.max(0))).all(1)
    points = points + inner[:, None] * rng.uniform(-0.05, 0.05, points.shape)
    return points, split(cells, SIX)


def cloud(count=60):
    """Scattered points, the corners of their box among them."""
    corners, _ = lattice((2, 2, 2), (2.0, 1.0, 0.5))
    inside = np.random.default_rng(4).uniform(0, [2.0, 1.0, 0.5], (count, 3))
    return np.concatenate([corners, inside])


def growing(points, times=TIMES):
    """Slices of a velocity that is linear in space and in time."""
    return np.stack([(1 + t) * linear(points) for t in times])


def places(count=30, seed=0):
    """Places within the box."""
    return np.random.default_rng(seed).uniform(0, [2.0, 1.0, 0.5], (count, 3))


TRACED = []  # shapes of the places that were asked for


@jax.jit
def answer(field, x, instant, cell_hint):
    """What a field says at places, by one program for all fields of a shape."""
    TRACED.append(x.shape)
    return field.velocity(x, instant, cell_hint)


def ask(field, x, t: Any = 0.0, cell_hint=None, dtype: Any = np.float32):
    """Velocities at places and a time, or a time for each, and the cells found."""
    x = jnp.asarray(x, dtype)
    instant = jax.tree.map(jnp.asarray, field.instant(np.asarray(t, np.float64)))
    cell_hint = field.start(x) if cell_hint is None else cell_hint
    velocity, cell_hint = answer(field, x, instant, cell_hint)
    return np.asarray(velocity), cell_hint
