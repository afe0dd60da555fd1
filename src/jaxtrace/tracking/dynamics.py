"""What acts on particles in a step: flow, borders, motion, and their behaviors."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from jaxrig import compile_once
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.box_tree import select
from jaxtrace.fields.clock import Instant
from jaxtrace.integrators import Tableau, find_method
from jaxtrace.tracking.behaviors import Behaviors
from jaxtrace.tracking.boundaries.base import AbstractBoundary
from jaxtrace.tracking.motion import AbstractMotion
from jaxtrace.tracking.particles import Draw, Particles, Scalars, Vectors, retire
from jaxtrace.tracking.schedule import FLOW
from jaxtrace.types import ParticleStatus


@dataclass(frozen=True)
class Method:
    """The static choices of a run.

    `particles` is how many there are in all, however they are split: what pays for
    that many is done for every split alike, so that results do not depend on it. With
    `in_lanes` the step is written for one kernel that takes each particle through all
    steps: nothing is prepared for all of them, and stages share one look-up.
    """

    integrator: str = "rk4"
    particles: int = 1
    tile: int | None = None
    record_velocities: bool = False
    tolerance: float | None = None
    in_lanes: bool = False

    @classmethod
    def choose(cls, integrator: str, tolerance: float | None, **rest: Any) -> "Method":
        """Return the method of a name, or with a tolerance an embedded one."""
        adaptive = tolerance is not None
        return cls(find_method(integrator, adaptive).name, tolerance=tolerance, **rest)

    @property
    def tableau(self) -> Tableau:
        """Return the numbers of the integrator."""
        return find_method(self.integrator)


class Dynamics(eqx.Module):
    """What acts on particles: the flow, its borders and how particles respond."""

    field: AbstractField
    boundary: AbstractBoundary
    motion: AbstractMotion
    key: UInt32[Array | np.ndarray, " 2"]
    behaviors: Behaviors = eqx.field(default_factory=Behaviors)


class TimeStep(eqx.Module):
    """One step of the clock: its start, its length and the instants of its stages.

    `begins` and `ends` are its two ends as the sampled variables see them; `expires` is
    the first step that who enters in this one is too old for.
    """

    start: Float[Array, "*substeps"]
    dt: Float[Array, "*substeps"]
    step: Int[Array, "*substeps"]
    stages: Instant
    begins: dict[str, Instant] = eqx.field(default_factory=dict)
    ends: dict[str, Instant] = eqx.field(default_factory=dict)
    expires: Int[Array | np.ndarray, "*substeps"] | None = None


def drift_of(
    dynamics: Dynamics, particles: Particles, time_step: TimeStep
) -> Vectors | None:
    """Return the velocity over a step that behaviors add to that of the flow."""
    if particles.state is None:
        return None
    _, way = _behave(dynamics, particles, time_step, time_step.begins)
    if way is None:
        return None
    if dynamics.motion.has_velocity:
        raise ValueError(
            "behaviors that displace particles need passive tracers: inertial "
            "particles move by their own velocity"
        )
    still = time_step.dt == 0
    rate = way / jnp.where(still, jnp.ones_like(time_step.dt), time_step.dt)
    # Computed once: XLA would sample again for each stage.
    return jax.lax.optimization_barrier(jnp.where(still, 0, rate))


def _behave(
    dynamics: Dynamics,
    particles: Particles,
    time_step: TimeStep,
    instants: dict[str, Instant],
) -> tuple[Any, Vectors | None]:
    """Return the state and the displacement of behaviors at one end of a step."""
    behaviors = dynamics.behaviors
    places = dynamics.boundary.wrap(particles.positions)
    field, hint = dynamics.field, particles.cell_hint
    velocity, _ = look_up(field, places, instants[FLOW], hint)
    here = behaviors.here(field, places, velocity, instants)
    draw = Draw(dynamics.key, particles.slots, time_step.step)
    when = jnp.asarray(instants[FLOW].time)
    return behaviors.follow(particles.state or {}, here, when, time_step.dt, draw)


def remember(
    dynamics: Dynamics, before: Particles, after: Particles, time_step: TimeStep
) -> Particles:
    """Return the particles with their state at the end of a step."""
    if after.state is None:
        return after
    places = dynamics.boundary.wrap(before.positions)
    state = dynamics.behaviors.begin(after.state, places, time_step.begins)
    after = replace(after, state=state)
    state, _ = _behave(dynamics, after, time_step, time_step.ends)
    staying = state.pop("alive", None)
    kept = select(after.alive, state, after.state)
    if after.fresh is not None:
        newcomers = after.generation > before.generation
        kept = select(newcomers, after.fresh, kept)
    after = replace(after, state=kept)
    if staying is None:
        return after
    gone = ~jnp.broadcast_to(jnp.asarray(staying, bool), after.alive.shape)
    end = time_step.start + time_step.dt
    return retire(after, gone, ParticleStatus.REMOVED, after.positions, end)


# A program of its own inside of the step's: all stages share one trace of the look-up,
# which is most of a step, and XLA inlines it.
@compile_once(max_traces=None)
def look_up(
    field: AbstractField, places: Vectors, instant: Instant, cell_hint: Any
) -> tuple[Vectors, Any]:
    """Return the velocity of a field at some places, and where they were found."""
    return field.velocity(places, instant, cell_hint)


# No budget: any variables may be sampled at any number of positions.
@compile_once(max_traces=None)
def sample_variables(
    dynamics: Dynamics, positions: Vectors, samples: Mapping[str, Instant]
) -> dict[str, Scalars]:
    """Return the sampled variables at positions, vectors by component."""
    behaviors = dynamics.behaviors
    found = behaviors.sampled(dynamics.boundary.wrap(positions), samples)
    return {
        column: value if value.ndim == 1 else value[:, index]
        for name, value in found.items()
        for index, column in enumerate(behaviors.variables[name].columns(name))
    }
