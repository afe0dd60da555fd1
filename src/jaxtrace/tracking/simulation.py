"""Whole runs as pure functions of seeds and frame times, differentiable."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

from jaxrig import compile_once
from jaxtrace.fields.base import as_positions
from jaxtrace.fields.clock import Instant
from jaxtrace.tracking.behaviors import make_behaviors
from jaxtrace.tracking.dynamics import (
    Dynamics,
    Method,
)
from jaxtrace.tracking.motion import AbstractMotion
from jaxtrace.tracking.particles import Particles, Vectors
from jaxtrace.tracking.schedule import Schedule, make_schedule
from jaxtrace.tracking.time_loop import (
    Record,
    advance,
    check_steps,
    first_frame,
    first_instant,
    make_dynamics,
)


class Paths(eqx.Module):
    """Recorded paths, frame 0 being the seeds, and the particles at the end.

    A particle that is gone is NaN from then on. `variables` are those that were
    sampled, and the state of behaviors.
    """

    positions: Float[Array, "frames n 3"]
    times: Float[Array | np.ndarray, " frames"]
    velocities: Float[Array, "frames n 3"] | None
    generation: Int32[Array, "frames n"] | None
    final: Particles
    variables: dict[str, Float[Array, "frames n"]] = eqx.field(default_factory=dict)


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
    sample: Mapping[str, Any] | None = None,
    behave: Any = None,
) -> Paths:
    """Return paths of particles from seeds (N, 3) through frames at the given times.

    Pure, compiled once per kind of arguments, and differentiable with respect to
    seeds, the arrays of the field, the boundary and the motion (and `times`, if
    traced); the reverse mode keeps one state per step. With a tolerance steps are
    adaptive, which has a forward mode only.
    """
    dynamics = make_dynamics(
        field, boundary, motion, seed, make_behaviors(sample, behave)
    )
    timed = dynamics.behaviors.timed(dynamics.field)
    start = as_positions(seeds)
    sizes = {"particles": start.shape[0], "record_velocities": record_velocities}
    method = Method.choose(integrator, tolerance, **sizes)
    times = times if isinstance(times, jax.Array) else np.asarray(times, np.float64)
    check_steps(dynamics.motion, times, substeps, method)
    dtype = start.dtype
    schedule = make_schedule(
        *(dynamics.field, times, substeps, method.tableau, dtype), samples=timed
    )
    first = first_instant(dynamics.field, times, dtype)
    samples = {n: first_instant(x, times, dtype) for n, x in timed.items()}
    final, whole = _simulate(dynamics, start, schedule, first, method, samples)
    return Paths(
        *(whole.positions, times, whole.velocities, whole.generation, final),
        whole.variables,
    )


# Any number of programs: callers bring fields and seeds of any kind.
@compile_once(max_traces=None)
def _simulate(
    dynamics: Dynamics,
    seeds: Vectors,
    schedule: Schedule,
    first: Instant,
    method: Method,
    samples: dict[str, Instant],
) -> tuple[Particles, Record]:
    particles, opening = first_frame(dynamics, seeds, first, method, samples)
    final, rest = advance(dynamics, particles, schedule, method, remember=False)
    join = lambda one, many: jnp.concatenate([one, many])
    return final, jax.tree.map(join, opening, rest)
