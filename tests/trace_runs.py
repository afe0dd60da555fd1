"""Runs to test with: where they end, flows and clouds of seeds."""

import jax.numpy as jnp
import numpy as np

from jaxtrace.fields.grid import make_grid_field
from jaxtrace.tracking.simulation import simulate

UNIT_BOX = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def end(*args, **options):
    """Where a run ends, as a host array."""
    return np.asarray(simulate(*args, **options).positions[-1])


def single(values) -> np.ndarray:
    """Numbers as an array in single precision."""
    return np.asarray(values, np.float32)


def cloud(count, low=0.1, high=0.9, seed=0):
    """Seeds at random in a box."""
    return np.random.default_rng(seed).uniform(low, high, (count, 3))


def spiral(positions, t):
    """A flow that is nonlinear in space and time."""
    x, y, z = positions[:, 0], positions[:, 1], positions[:, 2]
    u = jnp.cos(t) - y * (1 + x * x) / 2
    return jnp.stack([u, x + jnp.sin(t * z), jnp.sin(x * y)], 1)


def still(positions, t):
    """A fluid at rest."""
    return jnp.zeros_like(positions)


def grid_of(function, axes, times=None, **options):
    """A grid field that holds the values of f(positions, t) at its nodes."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    shape = points.shape[:3]
    flat = points.reshape(-1, 3)
    slices = [0.0] if times is None else times
    values = [np.asarray(function(flat, t)).reshape(*shape, -1) for t in slices]
    given = values[0] if times is None else np.stack(values)
    return make_grid_field(given, axes, times, **options)
