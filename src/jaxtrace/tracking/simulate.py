"""Whole runs as pure functions: seeds and frame times in, recorded paths out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer as Traced
from jaxtyping import Array, Float, Int32

from jaxtrace.fields.analytic import as_field
from jaxtrace.fields.base import AbstractField, as_positions
from jaxtrace.fields.clock import Instant
from jaxtrace.tracking.boundaries.base import as_boundary
from jaxtrace.tracking.motion import AbstractMotion, PassiveTracer
from jaxtrace.tracking.particles import Particles, noise_key
from jaxtrace.tracking.schedule import Schedule, make_schedule
from jaxtrace.tracking.step import (
    Dynamics,
    Method,
    TimeStep,
    initialize,
    take_step,
)


class Record(eqx.Module):
    """What is kept of each frame; None where nothing can change or was not asked."""

    positions: Float[Array, "*frames n 3"]
    velocities: Float[Array, "*frames n 3"] | None
    generation: Int32[Array, "*frames n"] | None


class Paths(eqx.Module):
    """Recorded paths, frame 0 being the seeds, and the particles at the end.

    A particle that is gone is NaN from then on.
    """

    positions: Float[Array, "frames n 3"]
    times: Float[Array | np.ndarray, " frames"]
    velocities: Float[Array, "frames n 3"] | None
    generation: Int32[Array, "frames n"] | None
    final: Particles


def record_frame(
    dynamics: Dynamics, particles: Particles, instant, method: Method
) -> Record:
    """Return what a frame keeps."""
    gone = ~particles.alive[:, None]
    nan = jnp.asarray(jnp.nan, particles.positions.dtype)
    velocities = None
    if method.record_velocities:
        field, instant = dynamics.field.at_instant(instant, method.particles)
        places = dynamics.boundary.wrap(particles.positions)
        found, _ = field.velocity(places, instant, particles.cell_hint)
        velocities = jnp.where(gone, nan, found)
    generation = particles.generation if dynamics.boundary.recycles else None
    positions = jnp.where(gone, nan, particles.positions)
    return Record(positions, velocities, generation)


def advance(
    dynamics: Dynamics,
    particles: Particles,
    schedule: Schedule,
    method: Method,
    *,
    padded: bool = False,
    remember: bool = True,
) -> tuple[Particles, Record]:
    """Take the particles through the frames of a schedule, recording each.

    A padded schedule may hold substeps to skip. Without `remember` a reverse-mode
    gradient keeps the particles of each step only, and works out the rest again.
    """

    def substep(state: Particles, now: tuple[TimeStep, Any]) -> tuple[Particles, None]:
        time_step, active = now
        if not padded:
            return take_step(dynamics, state, time_step, method), None
        # A branch, not a select: a skipped substep costs nothing.
        after = jax.lax.cond(
            active,
            lambda s: take_step(dynamics, s, time_step, method),
            lambda s: s,
            state,
        )
        return after, None

    if not remember:
        substep = jax.checkpoint(substep)

    def frame(state: Particles, now: Schedule) -> tuple[Particles, Record]:
        start, dt, number = (jnp.asarray(x) for x in (now.start, now.dt, now.step))
        time_steps = TimeStep(start, dt, number, now.stages), now.active
        if now.step.shape[0] == 1:
            state, _ = substep(state, jax.tree.map(lambda x: x[0], time_steps))
        else:
            state, _ = jax.lax.scan(substep, state, time_steps)
        return state, record_frame(dynamics, state, now.frame, method)

    return jax.lax.scan(frame, particles, jax.tree.map(jnp.asarray, schedule))


def simulate(
    field: Any,
    seeds: Any,
    times: Any,
    *,
    boundary: Any = None,
    integrator: str = "rk4",
    substeps: int = 1,
    motion: AbstractMotion | None = None,
    seed: int = 0,
    record_velocities: bool = False,
    tolerance: float | None = None,
) -> Paths:
    """Return paths of particles from seeds (N, 3) through frames at the given times.

    Pure, compiled by whoever compiles it, and differentiable with respect to seeds,
    the arrays of the field, the boundary and the motion (and `times`, if traced); the
    reverse mode keeps one state per step. With a tolerance steps are adaptive, which
    has a forward mode only.
    """
    dynamics = make_dynamics(field, boundary, motion, seed)
    start = as_positions(seeds)
    method = Method.choose(
        integrator,
        tolerance,
        particles=start.shape[0],
        record_velocities=record_velocities,
    )
    times = times if isinstance(times, jax.Array) else np.asarray(times, np.float64)
    check_steps(dynamics.motion, times, substeps, method)
    schedule = make_schedule(
        dynamics.field, times, substeps, method.tableau, start.dtype
    )
    first = first_instant(dynamics.field, times, start.dtype)
    particles = initialize(dynamics, start, first, method)
    opening = record_frame(dynamics, particles, first, method)
    final, rest = advance(dynamics, particles, schedule, method, remember=False)
    whole = jax.tree.map(
        lambda one, many: jnp.concatenate([one[None], many]), opening, rest
    )
    return Paths(whole.positions, times, whole.velocities, whole.generation, final)


def check_steps(
    motion: AbstractMotion, times: Any, substeps: int, method: Method
) -> None:
    """Raise if a motion cannot take the steps of these frames; traced ones pass."""
    if isinstance(times, Traced) or times.shape[0] < 2:
        return
    steps = np.diff(np.asarray(times, np.float64)) / substeps
    longest = float(steps[np.argmax(np.abs(steps))])
    if method.tolerance is None or longest < 0:
        motion.check(longest, method.tableau)


def make_dynamics(
    field: Any, boundary: Any, motion: AbstractMotion | None, seed: int
) -> Dynamics:
    """Return what acts on particles, from whatever users give."""
    return Dynamics(
        as_field(field),
        as_boundary(boundary),
        motion or PassiveTracer(),
        noise_key(seed),
    )


def first_instant(field: AbstractField, times: Any, dtype: Any) -> Instant:
    """Return the instant of the first frame as the field sees it."""
    return jax.tree.map(jnp.asarray, field.instant(times[0]).astype(dtype))
