"""Steps that choose their own length, particle by particle.

An embedded pair of orders 5 and 4 covers each interval of the clock in as many steps
as the tolerance asks for. Chance and boundaries act at the ends of the intervals.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxtrace.integrators.explicit import explicit_step
from jaxtrace.tracking.particles import Particles
from jaxtrace.tracking.step import Method, Tick, World, finish_step, tiled

SAFETY = 0.9
SHRINK, GROW = 0.2, 5.0
SHORTEST = 1e-6  # of the interval: a step this short is taken whatever its error


class _Cursor(NamedTuple):
    """How far each particle has come in the interval, as a fraction of it."""

    unknowns: Any
    memory: Any
    done: Float[Array, " n"]
    pace: Float[Array, " n"]


def take_adaptive_step(
    world: World, particles: Particles, tick: Tick, method: Method
) -> Particles:
    """Advance every living particle over one interval of the clock."""
    if method.tile is None or method.tile >= particles.positions.shape[0]:
        return _cover(world, particles, tick, method)
    return tiled(lambda p: _cover(world, p, tick, method), particles, method.tile)


def _cover(world: World, particles: Particles, tick: Tick, method: Method) -> Particles:
    dtype = particles.positions.dtype
    count = particles.positions.shape[0]
    pace = particles.pace
    if pace is None:
        pace = jnp.ones(count, dtype)
    done = jnp.where(particles.alive, jnp.zeros(count, dtype), jnp.ones(count, dtype))
    cursor = _Cursor(world.motion.unknowns(particles), particles.memory, done, pace)
    cursor = jax.lax.while_loop(
        lambda c: jnp.any(c.done < 1), lambda c: _try(world, c, tick, method), cursor
    )
    if particles.pace is not None:
        particles = eqx.tree_at(lambda p: p.pace, particles, cursor.pace)
    return finish_step(world, particles, cursor.unknowns, cursor.memory, tick)


def _try(world: World, cursor: _Cursor, tick: Tick, method: Method) -> _Cursor:
    """One attempt for every particle that is not there yet."""
    tableau, motion = method.tableau, world.motion
    left = 1 - cursor.done
    length = jnp.minimum(cursor.pace, left)
    fastest: list[Array] = []

    def rate(unknowns: Any, stage: int, memory: Any):
        when = tick.start + (cursor.done + tableau.nodes[stage] * length) * tick.dt
        places = world.boundary.wrap(motion.places(unknowns))
        moment = world.field.moment(when)
        velocity, memory = world.field.velocity(places, moment, memory)
        slope = motion.rate(unknowns, velocity, when)
        fastest.append(jnp.max(jnp.abs(motion.places(slope)), 1))
        return slope, memory

    step = explicit_step(
        tableau, rate, cursor.unknowns, cursor.memory, length * tick.dt
    )
    speed = jnp.max(jnp.stack(fastest), 0)
    allowed = _tolerance(method) * speed * jnp.abs(tick.dt)
    error = jnp.max(jnp.abs(motion.places(step.error)), 1)
    # How long a step is, is a choice and no part of the answer: it has no slope.
    error, allowed = jax.lax.stop_gradient((error, allowed))
    verdict = _judge(error, allowed, length, tableau.order)
    waiting = cursor.done < 1
    moving = verdict.accepted & waiting
    arrives = (length >= left) | verdict.lost
    done = jnp.where(arrives, jnp.ones_like(left), cursor.done + length)
    # A step cut short by the end of the interval says little about the next.
    cut = moving & arrives & (verdict.pace < cursor.pace)
    return _Cursor(
        _choose(moving, step.unknowns, cursor.unknowns),
        _choose(waiting, step.memory, cursor.memory),
        jnp.where(moving, done, cursor.done),
        jnp.where(waiting & ~cut, verdict.pace, cursor.pace),
    )


def _tolerance(method: Method) -> float:
    assert method.tolerance is not None
    return method.tolerance


class _Verdict(NamedTuple):
    """Which steps are good enough, how long the next should be, and who is lost."""

    accepted: Bool[Array, " n"]
    pace: Float[Array, " n"]
    lost: Bool[Array, " n"]


def _judge(error: Array, allowed: Array, length: Array, order: int) -> _Verdict:
    """Weigh the error of each step against what is allowed.

    A step that leads nowhere (NaN) is tried again shorter: it may have reached beyond
    the field. One that is as short as can be is taken, and its particle is lost.
    """
    tiny = jnp.finfo(error.dtype).tiny
    ratio = error / jnp.maximum(allowed, tiny)
    nowhere = ~jnp.isfinite(ratio)
    shortest = length <= SHORTEST
    accepted = (ratio <= 1) | shortest
    safe = jnp.where(nowhere, jnp.ones_like(ratio), jnp.maximum(ratio, tiny))
    factor = jnp.clip(SAFETY * safe ** (-1 / order), SHRINK, GROW)
    factor = jnp.where(nowhere, SHRINK, factor)
    pace = jnp.clip(length * factor, SHORTEST, 1.0)
    return _Verdict(accepted, pace, nowhere & shortest)


def _choose(chosen: Bool[Array, " n"], first: Any, second: Any) -> Any:
    def pick(a: Array, b: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, first, second)
