"""One step of all particles: Runge-Kutta stages, diffusion, boundary, in this order.

With a tolerance, an embedded pair covers each interval of the clock in as many steps
per particle as it takes; diffusion and boundaries act at the ends of the intervals.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxrig import compile_once
from jaxtrace.fields.base import AbstractField, at_stage, shares_search
from jaxtrace.fields.box_tree import select
from jaxtrace.fields.clock import Instant
from jaxtrace.integrators import StepResult, Tableau, control, explicit_step
from jaxtrace.tracking.boundaries.base import (
    AbstractBoundary,
    Open,
    StepContext,
    calls_host,
)
from jaxtrace.tracking.boundaries.walls import reach_shore
from jaxtrace.tracking.dynamics import (
    Dynamics,
    Method,
    TimeStep,
    drift_of,
    look_up,
    remember,
)
from jaxtrace.tracking.particles import (
    Draw,
    Particles,
    Scalars,
    Vectors,
    move,
    retire,
    seed_particles,
)
from jaxtrace.tracking.schedule import stage_nodes
from jaxtrace.types import ParticleStatus


def initialize(
    dynamics: Dynamics, seeds: Vectors, instant: Instant, method: Method
) -> Particles:
    """Return particles at their seeds, knowing where they are and what they carry."""
    field, motion, sphere = dynamics.field, dynamics.motion, dynamics.field.sphere
    if sphere is not None:
        if motion.has_velocity:
            raise ValueError(
                "inertial particles need straight coordinates, and this field is on a "
                "sphere: use passive tracers, or read the field with geometry='flat'"
            )
        seeds = sphere.start(seeds)
    count, dtype = seeds.shape[0], seeds.dtype
    motion.check_count(count)
    particles = seed_particles(seeds)
    places = dynamics.boundary.wrap(particles.positions)
    cell_hint, velocity = field.start(places), None
    if motion.has_velocity:
        velocity, cell_hint = look_up(field, places, instant, cell_hint)
    elif jax.tree.leaves(cell_hint):
        cell_hint = field.find(places, instant)
    state = dynamics.behaviors.initial(count, dtype)
    rounds = sphere is not None and dtype == np.float32
    return replace(
        particles,
        cell_hint=cell_hint,
        velocity=velocity,
        next_dt=None if method.tolerance is None else jnp.ones(count, dtype),
        remainder=jnp.zeros_like(seeds) if rounds else None,
        state=state,
        fresh=state if dynamics.boundary.recycles else None,
    )


def take_step(
    dynamics: Dynamics, particles: Particles, time_step: TimeStep, method: Method
) -> Particles:
    """Advance every living particle by one step, or over an adaptive interval.

    With tiles so many particles are worked on at a time; the count is a multiple.
    """
    own = lambda some: replace(dynamics, motion=dynamics.motion.of(some.slots))
    if method.tolerance is None:
        instants = [
            jax.tree.map(lambda x, i=i: x[i], time_step.stages)
            for i in range(len(method.tableau.instants))
        ]
        # The field at each distinct instant of the step, made once for all tiles.
        stage_fields = [
            (dynamics.field, instant)
            if method.in_lanes
            else dynamics.field.at_instant(instant, method.particles)
            for instant in instants
        ]
        work = lambda some: _advance(own(some), stage_fields, some, time_step, method)
    else:
        work = lambda some: _cover(own(some), some, time_step, method)
    tile = method.tile
    if tile is None or tile >= particles.positions.shape[0]:
        return work(particles)
    split = jax.tree.map(lambda x: x.reshape(-1, tile, *x.shape[1:]), particles)
    done = jax.lax.map(work, split)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), done)


def _advance(
    dynamics: Dynamics,
    stage_fields: list[tuple[AbstractField, Instant]],
    particles: Particles,
    time_step: TimeStep,
    method: Method,
) -> Particles:
    tableau, drift = method.tableau, drift_of(dynamics, particles, time_step)
    numbers = [tableau.instant_index(i) for i in range(len(tableau.nodes))]
    shared = method.in_lanes or shares_search(dynamics.field)
    pick = at_stage(numbers, stage_fields, shared)

    def look(stage: Any) -> _Look:
        field, instant = pick(stage)
        return field, instant, jnp.asarray(instant.time)

    start = _unknowns(dynamics, particles), particles.cell_hint
    dt = time_step.dt
    step = _integrate(dynamics, tableau, look, *start, dt, drift, shared=shared)
    return finish_step(dynamics, particles, step.unknowns, step.cell_hint, time_step)


_Look = tuple[AbstractField, Instant, Array]
# Positions, and velocities of the particles; on a sphere what rounding left of them.
_Unknowns = tuple[Vectors, Any]


def _unknowns(dynamics: Dynamics, particles: Particles) -> _Unknowns:
    sphere = dynamics.field.sphere
    return particles.positions, (
        particles.velocity if sphere is None else particles.remainder
    )


def _integrate(
    dynamics: Dynamics,
    tableau: Tableau,
    look: Callable[[Any], _Look],
    unknowns: _Unknowns,
    cell_hint: Any,
    dt: Array,
    drift: Vectors | None,
    *,
    shared: bool = False,
) -> StepResult:
    """Take one step; `look` gives field, instant and time of a stage.

    With `shared` one look-up serves all stages, whose number is then traced. The hint
    of one stage starts the search of the next: most look-ups take no hop.
    `drift` is added to the velocity of the flow at every stage. On a sphere a step is
    one in meters, in the frame of where it begins.
    """
    sphere, motion = dynamics.field.sphere, dynamics.motion
    wrap = dynamics.boundary.wrap

    def flow(places: Vectors, stage: Any, cell_hint: Any) -> tuple[Any, Array, Any]:
        field, instant, time = look(stage)
        velocity, cell_hint = look_up(field, places, instant, cell_hint)
        return velocity if drift is None else velocity + drift, time, cell_hint

    if sphere is None:

        def rate(unknowns: _Unknowns, stage: Any, cell_hint: Any) -> tuple[Any, Any]:
            velocity, time, cell_hint = flow(wrap(unknowns[0]), stage, cell_hint)
            return motion.rate(*unknowns, velocity, time), cell_hint

        return explicit_step(tableau, rate, unknowns, cell_hint, dt, shared)
    frame = sphere.frame(*unknowns)

    def rate_there(offset: Array, stage: int, cell_hint: Any) -> tuple[Any, Any]:
        # The first stage is at the origin, whose directions are the frame's.
        place = frame.locate(offset) if stage else None
        places = unknowns[0] if place is None else frame.places(place, offset[:, 2])
        places = jax.lax.optimization_barrier(wrap(places))
        velocity, time, cell_hint = flow(places, stage, cell_hint)
        velocity, _ = motion.rate(places, None, velocity, time)
        # Computed once: XLA would look both components up again for each direction.
        velocity = jax.lax.optimization_barrier(velocity)
        return velocity if place is None else frame.turn(place, velocity), cell_hint

    nothing = jnp.zeros_like(unknowns[0])
    step = explicit_step(tableau, rate_there, nothing, cell_hint, dt)
    ends = jax.lax.optimization_barrier(frame.arrive(step.unknowns))
    return step._replace(unknowns=ends)


def _arrived(
    dynamics: Dynamics, particles: Particles, unknowns: _Unknowns
) -> Particles:
    """Return the particles where a step ends."""
    positions, own = unknowns
    moved = move(particles, positions)
    if own is None:
        return moved
    name = "velocity" if dynamics.field.sphere is None else "remainder"
    kept = jnp.where(particles.alive[:, None], own, getattr(particles, name))
    return replace(moved, **{name: kept})


def _diffused(
    dynamics: Dynamics, particles: Particles, end: Array, dt: Array, draw: Draw
) -> Particles:
    """Return the particles after the random part of a step."""
    places, sphere = dynamics.boundary.wrap(particles.positions), dynamics.field.sphere
    scale = None if sphere is None else sphere.scale(places)
    walk = dynamics.motion.walk(places, end, dt, draw, scale)
    if walk is None:
        return particles
    if sphere is None:
        return move(particles, particles.positions + walk)
    # The surface is a mirror of a walk: stopped at it, particles would gather there.
    top = jnp.asarray(sphere.top, walk.dtype)
    over = jnp.maximum(particles.positions[:, 2] + walk[:, 2] - top, 0)
    walk = walk.at[:, 2].add(-2 * over)
    frame = sphere.frame(particles.positions, particles.remainder)
    return _arrived(dynamics, particles, frame.arrive(walk))


def _settled(
    field: AbstractField, particles: Particles, time_step: TimeStep
) -> Particles:
    """Return the particles after what the field does to positions beyond its faces."""
    # The last of the instants of a step is then its end.
    end = jax.tree.map(lambda x: x[-1], time_step.stages) if field.moves else None
    places = particles.positions, particles.cell_hint
    positions, cell_hint = field.settle(*places, end)
    if cell_hint is particles.cell_hint:
        return particles
    return replace(move(particles, positions), cell_hint=cell_hint)


def _bound(dynamics: Dynamics, particles: Particles, context: StepContext) -> Particles:
    """Return particles on a sphere after the boundary, the ends of data and land."""
    boundary, field = dynamics.boundary, dynamics.field
    left = ~field.inside(particles.positions, particles.cell_hint)
    # A box at the ends of the data comes before these, or it would find nobody beyond.
    # Newcomers have not come the way from where they left, and cells found beyond the
    # ends say nothing of where a mirror sends a particle.
    first = not (boundary.recycles or jax.tree.leaves(particles.cell_hint))
    if first and not isinstance(boundary, Open):
        bounded = boundary.apply(particles, context)
        left &= jnp.all(bounded.positions == particles.positions, 1)
        particles = bounded
    where = particles.positions
    gone = retire(particles, left, ParticleStatus.ABSORBED, where, context.end)
    ashore = reach_shore(field, gone, context.before, context.end)
    return ashore if first else boundary.apply(ashore, context)


def finish_step(
    dynamics: Dynamics,
    particles: Particles,
    unknowns: _Unknowns,
    cell_hint: Any,
    time_step: TimeStep,
) -> Particles:
    """Apply diffusion, then lost particles, then the boundary, then behaviors."""
    before = particles.positions
    end = time_step.start + time_step.dt
    draw = Draw(dynamics.key, particles.slots, time_step.step)
    moved = replace(_arrived(dynamics, particles, unknowns), cell_hint=cell_hint)
    moved = _diffused(dynamics, moved, end, time_step.dt, draw)
    lost = ~jnp.all(jnp.isfinite(moved.positions), 1)
    moved = retire(moved, lost, ParticleStatus.LOST, before, time_step.start)
    moved = _settled(dynamics.field, moved, time_step)
    context = StepContext(before, time_step.start, end, draw, dynamics.field)
    if dynamics.field.sphere is not None:
        after = _bound(dynamics, moved, context)
        return remember(dynamics, particles, after, time_step)
    moved = reach_shore(dynamics.field, moved, before, end)
    if dynamics.motion.has_velocity:
        after = _bounce(dynamics.boundary, moved, context)
        if dynamics.boundary.recycles:
            after = _start_recycled(dynamics, moved, after, end)
    else:
        after = dynamics.boundary.apply(moved, context)
    return remember(dynamics, particles, after, time_step)


def _bounce(
    boundary: AbstractBoundary, particles: Particles, context: StepContext
) -> Particles:
    """Return the boundary's rule for positions, and its derivative for velocities."""
    if calls_host(boundary):
        raise TypeError(
            f"{type(boundary).__name__} calls a NumPy function, and particles that "
            "carry a velocity need its derivative: write it with jax.numpy"
        )

    def place(positions: Vectors) -> tuple[Array, Particles]:
        after = boundary.apply(replace(particles, positions=positions), context)
        return after.positions, after

    # Reflection, clamping and wrapping are maps of positions; their Jacobian is what
    # they do to a velocity (specular reflection, a stop, no change).
    _, own, after = jax.jvp(
        place, (particles.positions,), (particles.velocity,), has_aux=True
    )
    return replace(after, velocity=own)


def _start_recycled(
    dynamics: Dynamics, before: Particles, after: Particles, end: Array
) -> Particles:
    """Give recycled particles the velocity of the flow where they start."""
    fresh = after.generation > before.generation
    places = dynamics.boundary.wrap(after.positions)
    instant = dynamics.field.instant(end)
    velocity, _ = look_up(dynamics.field, places, instant, after.cell_hint)
    own = jnp.where(fresh[:, None], velocity, after.velocity)
    return replace(after, velocity=own)


# No budget: users step any number of particles by hand, each a program of its own.
@compile_once(max_traces=None)
def _single_step(
    dynamics: Dynamics, positions: Vectors, time_step: TimeStep, method: Method
) -> Vectors:
    first = jax.tree.map(lambda x: x[0], time_step.stages)
    particles = initialize(dynamics, positions, first, method)
    return take_step(dynamics, particles, time_step, method).positions


def single_step(
    dynamics: Dynamics, positions: Vectors, t: float, dt: float, method: Method
) -> Vectors:
    """Return positions after one compiled step from time t."""
    dtype = positions.dtype
    nodes = np.asarray(stage_nodes(dynamics.field, method.tableau))
    stages = dynamics.field.instant(t + dt * nodes).astype(dtype)
    time_step = TimeStep(
        jnp.asarray(t, dtype), jnp.asarray(dt, dtype), jnp.zeros((), np.int32), stages
    )
    time_step = jax.tree.map(jnp.asarray, time_step)
    return _single_step(dynamics, positions, time_step, method)


class _Cursor(NamedTuple):
    """How far each particle has come in the interval, as a fraction of it."""

    unknowns: _Unknowns
    cell_hint: Any
    done: Scalars
    next_dt: Any


def _cover(
    dynamics: Dynamics, particles: Particles, time_step: TimeStep, method: Method
) -> Particles:
    done = jnp.where(particles.alive, 0, jnp.ones_like(particles.exit_time))
    unknowns = _unknowns(dynamics, particles)
    cursor = _Cursor(unknowns, particles.cell_hint, done, particles.next_dt)
    drift = drift_of(dynamics, particles, time_step)
    # One number of trips for all: particles that are through wait for the slowest,
    # masked.
    cursor = jax.lax.while_loop(
        lambda c: jnp.any(c.done < 1),
        lambda c: _try(dynamics, c, time_step, method, drift),
        cursor,
    )
    unknowns, cell_hint, _, next_dt = cursor
    particles = replace(particles, next_dt=next_dt)
    return finish_step(dynamics, particles, unknowns, cell_hint, time_step)


def _try(
    dynamics: Dynamics,
    cursor: _Cursor,
    time_step: TimeStep,
    method: Method,
    drift: Vectors | None,
) -> _Cursor:
    """Try one step for every particle that is not there yet."""
    tableau, tolerance = method.tableau, method.tolerance
    assert tolerance is not None
    left = 1 - cursor.done
    length = jnp.minimum(cursor.next_dt, left)

    def look(stage: int) -> _Look:
        when = (
            time_step.start
            + (cursor.done + tableau.nodes[stage] * length) * time_step.dt
        )
        return dynamics.field, dynamics.field.instant(when), when

    start = cursor.unknowns, cursor.cell_hint
    step = _integrate(dynamics, tableau, look, *start, length * time_step.dt, drift)
    # On a sphere the step is that of an offset in meters, elsewhere of the unknowns.
    place = (lambda x: x) if dynamics.field.sphere is not None else (lambda x: x[0])
    fastest = [jnp.max(jnp.abs(place(slope)), 1) for slope in step.slopes]
    # Relative to the way that the interval takes at the fastest stage: positions have
    # no size, since their origin is arbitrary.
    speed = jnp.max(jnp.stack(fastest), 0)
    allowed = tolerance * speed * jnp.abs(time_step.dt)
    error = jnp.max(jnp.abs(place(step.error)), 1)
    # The step length is a choice, not part of the solution: it has no derivative.
    error, allowed = jax.lax.stop_gradient((error, allowed))
    verdict = control(error, allowed, length, tableau.order)
    waiting = cursor.done < 1
    moving = verdict.accepted & waiting
    arrives = (length >= left) | verdict.lost
    done = jnp.where(arrives, jnp.ones_like(left), cursor.done + length)
    # A step cut short by the end of the interval says little about the next.
    cut = moving & arrives & (verdict.next_dt < cursor.next_dt)
    return _Cursor(
        select(moving, step.unknowns, cursor.unknowns),
        select(waiting, step.cell_hint, cursor.cell_hint),
        jnp.where(moving, done, cursor.done),
        jnp.where(waiting & ~cut, verdict.next_dt, cursor.next_dt),
    )
