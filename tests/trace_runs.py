"""Runs to test with: a compiled simulate, flows and clouds of seeds."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxtrace.fields.base import as_positions
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.tracking.schedule import make_schedule
from jaxtrace.tracking.step import Method, initialize
from jaxtrace.tracking.time_loop import (
    Paths,
    advance,
    check_steps,
    first_instant,
    make_dynamics,
    record_frame,
)

UNIT_BOX = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def run(
    field,
    seeds,
    times,
    *,
    boundary=None,
    motion=None,
    integrator="rk4",
    substeps=1,
    tolerance=None,
    seed=0,
) -> Any:
    """Do what `simulate` does, by one program for all runs of the same shapes."""
    dynamics = make_dynamics(field, boundary, motion, seed)
    times, start = np.asarray(times, np.float64), as_positions(seeds)
    method = Method.choose(integrator, tolerance, particles=len(start))
    check_steps(dynamics.motion, times, substeps, method)
    schedule = make_schedule(
        dynamics.field, times, substeps, method.tableau, start.dtype
    )
    first = first_instant(dynamics.field, times, start.dtype)
    final, record = _advance(dynamics, start, first, schedule, method)
    return Paths(record.positions, times, None, record.generation, final)


@eqx.filter_jit
def _advance(dynamics, seeds, first, schedule, method):
    particles = initialize(dynamics, seeds, first, method)
    opening = record_frame(dynamics, particles, first, method)
    final, rest = advance(dynamics, particles, schedule, method)
    whole = lambda one, many: jnp.concatenate([one[None], many])
    return final, jax.tree.map(whole, opening, rest)


def end(*args, **options):
    """Where a run ends, as a host array."""
    return np.asarray(run(*args, **options).positions[-1])


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
