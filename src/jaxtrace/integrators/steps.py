"""Single steps as plain functions of positions: the calls of other packages."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxtrace.integrators.explicit import explicit_step
from jaxtrace.integrators.tableau import CLASSIC, EULER, MIDPOINT, Tableau

Velocity = Callable[[Any, Any], Any]


def euler_step(x: Any, t: Any, dt: Any, field_fn: Velocity) -> Float[Array, "n 3"]:
    """Advance positions (N, 3) by a step of Euler's; dt may be per particle."""
    return _step(EULER, x, t, dt, field_fn)


def rk2_step(x: Any, t: Any, dt: Any, field_fn: Velocity) -> Float[Array, "n 3"]:
    """Advance positions (N, 3) by one midpoint step; dt may be per particle."""
    return _step(MIDPOINT, x, t, dt, field_fn)


def rk4_step(x: Any, t: Any, dt: Any, field_fn: Velocity) -> Float[Array, "n 3"]:
    """Advance positions (N, 3) by a Runge-Kutta step; dt may be per particle."""
    return _step(CLASSIC, x, t, dt, field_fn)


def euler_step_batch(
    x: Any, t: Any, dt: Any, field_fn: Velocity, batch_size: int = 10000
) -> Float[Array, "n 3"]:
    """Euler's step, so many particles at a time."""
    return _in_batches(euler_step, x, t, dt, field_fn, batch_size)


def rk2_step_batch(
    x: Any, t: Any, dt: Any, field_fn: Velocity, batch_size: int = 5000
) -> Float[Array, "n 3"]:
    """The midpoint step, so many particles at a time."""
    return _in_batches(rk2_step, x, t, dt, field_fn, batch_size)


def _step(tableau: Tableau, x: Any, t: Any, dt: Any, field_fn: Velocity) -> Array:
    x = jnp.asarray(x)
    if x.ndim != 2 or x.shape[1] != 3:
        raise ValueError(f"positions of shape {x.shape}: give (N, 3)")
    t, dt = jnp.asarray(t, x.dtype), jnp.asarray(dt, x.dtype)
    if dt.shape not in ((), x.shape[:1]):
        raise ValueError(f"dt of shape {dt.shape}: give one number, or one each")

    def rate(point: Array, stage: int, memory: tuple[()]) -> tuple[Array, tuple[()]]:
        when = t + tableau.nodes[stage] * dt
        return jnp.asarray(field_fn(point, when), x.dtype), memory

    return explicit_step(tableau, rate, x, (), dt).unknowns


def _in_batches(
    step: Callable[..., Array], x: Any, t: Any, dt: Any, field_fn: Any, size: int
) -> Array:
    if size < 1:
        raise ValueError(f"batch_size {size}: take at least one particle at a time")
    x, dt = jnp.asarray(x), jnp.asarray(dt)
    parts = [
        step(x[i : i + size], t, dt[i : i + size] if dt.ndim else dt, field_fn)
        for i in range(0, max(x.shape[0], 1), size)
    ]
    return jnp.concatenate(parts)
