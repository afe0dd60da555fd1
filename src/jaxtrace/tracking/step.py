"""One step of all particles: stages, chance, boundary, in this order."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from jaxrig import compile_once
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.clock import Moment
from jaxtrace.integrators.explicit import explicit_step
from jaxtrace.integrators.tableau import Tableau, find_method
from jaxtrace.tracking.boundaries.base import AbstractBoundary, Passage
from jaxtrace.tracking.motion import AbstractMotion
from jaxtrace.tracking.noise import Draw
from jaxtrace.tracking.particles import Particles, retire, seed_particles
from jaxtrace.types import ParticleStatus


@dataclass(frozen=True)
class Method:
    """The static choices of a run.

    `particles` is how many there are in all, however they are split: what pays for
    that many is done for every split alike, so that results do not depend on it.
    """

    integrator: str = "rk4"
    particles: int = 1
    tile: int | None = None
    record_velocities: bool = False
    tolerance: float | None = None

    @property
    def tableau(self) -> Tableau:
        """The numbers of the integrator."""
        return find_method(self.integrator)


class World(eqx.Module):
    """What acts on particles: the flow, its borders and how particles respond."""

    field: AbstractField
    boundary: AbstractBoundary
    motion: AbstractMotion
    key: UInt32[Array, " 2"]


class Tick(eqx.Module):
    """One step of the clock: its start, its length and the instants of its stages."""

    start: Float[Array, "*substeps"]
    dt: Float[Array, "*substeps"]
    step: Int[Array, "*substeps"]
    stages: Moment


def launch(
    world: World, seeds: Float[Array, "n 3"], moment: Moment, method: Method
) -> Particles:
    """Particles at their seeds, knowing where they are and what they carry."""
    particles = seed_particles(seeds, ())
    places = world.boundary.wrap(particles.positions)
    memory, velocity = world.field.start(places), None
    if jax.tree.leaves(memory) or world.motion.carries:
        velocity, memory = world.field.velocity(places, moment, memory)
    particles = eqx.tree_at(lambda p: p.memory, particles, memory, is_leaf=_is_empty)
    if method.tolerance is not None:
        pace = jnp.ones(seeds.shape[0], seeds.dtype)
        particles = eqx.tree_at(lambda p: p.pace, particles, pace, is_leaf=_is_none)
    if velocity is None or not world.motion.carries:
        return particles
    own = world.motion.begin(velocity)
    return eqx.tree_at(lambda p: p.own, particles, own, is_leaf=_is_none)


def take_step(
    world: World, particles: Particles, tick: Tick, method: Method
) -> Particles:
    """Advance every living particle by one step."""
    stills = _stills(world.field, tick.stages, method)
    if method.tile is None or method.tile >= particles.positions.shape[0]:
        return _advance(world, stills, particles, tick, method)
    return tiled(
        lambda some: _advance(world, stills, some, tick, method),
        particles,
        method.tile,
    )


def tiled(function, particles: Particles, tile: int):
    """Apply to so many particles at a time; the count must be a multiple."""
    split = jax.tree.map(lambda x: x.reshape(-1, tile, *x.shape[1:]), particles)
    done = jax.lax.map(function, split)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), done)


def _stills(field: AbstractField, stages: Moment, method: Method):
    """The field at each distinct instant of the step, cheapened where that pays."""
    instants = [
        jax.tree.map(lambda x, i=i: x[i], stages)
        for i in range(len(method.tableau.instants))
    ]
    return [field.still(instant, method.particles) for instant in instants]


def _advance(
    world: World,
    stills: list[tuple[AbstractField, Moment]],
    particles: Particles,
    tick: Tick,
    method: Method,
) -> Particles:
    tableau, motion = method.tableau, world.motion

    def rate(unknowns, stage, memory):
        field, instant = stills[tableau.instant(stage)]
        places = world.boundary.wrap(motion.places(unknowns))
        velocity, memory = field.velocity(places, instant, memory)
        return motion.rate(unknowns, velocity, jnp.asarray(instant.time)), memory

    unknowns = motion.unknowns(particles)
    step = explicit_step(tableau, rate, unknowns, particles.memory, tick.dt)
    return finish_step(world, particles, step.unknowns, step.memory, tick)


def finish_step(world: World, particles: Particles, unknowns, memory, tick: Tick):
    """What follows the integrator: chance, particles that got lost, the boundary."""
    before = particles.positions
    end = tick.start + tick.dt
    draw = Draw(world.key, particles.slots, tick.step)
    moved = world.motion.settle(particles, unknowns)
    moved = eqx.tree_at(lambda p: p.memory, moved, memory, is_leaf=_is_empty)
    places = world.boundary.wrap(moved.positions)
    moved = world.motion.scatter(moved, places, end, tick.dt, draw)
    lost = ~jnp.all(jnp.isfinite(moved.positions), 1)
    moved = retire(moved, lost, ParticleStatus.LOST, before, tick.start)
    passage = Passage(before, tick.start, end, draw, world.field)
    if not world.motion.carries:
        return world.boundary.apply(moved, passage)
    after = _bounce(world.boundary, moved, passage)
    return _greet(world, moved, after, end) if world.boundary.recycles else after


def _bounce(
    boundary: AbstractBoundary, particles: Particles, passage: Passage
) -> Particles:
    """The boundary's rule for positions, and its derivative for velocities."""
    if getattr(boundary, "on_host", False):
        raise TypeError(
            f"{type(boundary).__name__} calls a NumPy function, and particles that "
            "carry a velocity need its derivative: write it with jax.numpy"
        )

    def place(positions: Float[Array, "n 3"]) -> tuple[Array, Particles]:
        there = eqx.tree_at(lambda p: p.positions, particles, positions)
        after = boundary.apply(there, passage)
        return after.positions, after

    _, own, after = jax.jvp(
        place, (particles.positions,), (particles.own,), has_aux=True
    )
    return eqx.tree_at(lambda p: p.own, after, own)


def _greet(world: World, before: Particles, after: Particles, end: Array) -> Particles:
    """Newcomers start with the velocity of the flow where they are."""
    fresh = after.generation > before.generation
    places = world.boundary.wrap(after.positions)
    moment = world.field.moment(end)
    velocity, _ = world.field.velocity(places, moment, after.memory)
    begun = world.motion.begin(velocity)
    assert begun is not None  # what carries a velocity begins with one
    own = jnp.where(fresh[:, None], begun, after.own)
    return eqx.tree_at(lambda p: p.own, after, own)


def _is_empty(node) -> bool:
    return node == () if isinstance(node, tuple) else False


def _is_none(node) -> bool:
    return node is None


@compile_once(max_traces=None)
def _single_step(
    world: World, positions: Float[Array, "n 3"], tick: Tick, method: Method
) -> Float[Array, "n 3"]:
    first = jax.tree.map(lambda x: x[0], tick.stages)
    particles = launch(world, positions, first, method)
    return take_step(world, particles, tick, method).positions


def single_step(
    world: World, positions: Float[Array, "n 3"], t: float, dt: float, method: Method
) -> Float[Array, "n 3"]:
    """Positions after one compiled step from time t."""
    dtype = positions.dtype
    nodes = np.asarray(method.tableau.instants)
    moment = world.field.moment(t + dt * nodes)
    stages = Moment(
        moment.time.astype(dtype), moment.slices, moment.weights.astype(dtype)
    )
    tick = Tick(
        jnp.asarray(t, dtype), jnp.asarray(dt, dtype), jnp.zeros((), np.int32), stages
    )
    return _single_step(world, positions, jax.tree.map(jnp.asarray, tick), method)
