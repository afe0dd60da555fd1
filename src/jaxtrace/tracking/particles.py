"""The state of a run: fixed slots, each with at most one particle in it."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Int32

from jaxtrace.types import ParticleStatus


class Particles(eqx.Module):
    """What the next step needs of every slot.

    A particle that is gone keeps its last position; `own` holds what a kind of motion
    carries along (the velocity of a heavy particle), `pace` the step that an adaptive
    method would take next. Both are None where nothing needs them.
    """

    positions: Float[Array, "n 3"]
    alive: Bool[Array, " n"]
    generation: Int32[Array, " n"]
    status: Int8[Array, " n"]
    exit_time: Float[Array, " n"]
    slots: Int[Array, " n"]
    memory: Any
    own: Any = None
    pace: Float[Array, " n"] | None = None


def seed_particles(
    positions: Float[Array, "n 3"], memory: Any, own: Any = None, slots: Any = None
) -> Particles:
    """Particles that start here; a seed that is nowhere (NaN) starts an empty slot."""
    count = positions.shape[0]
    alive = jnp.all(jnp.isfinite(positions), 1)
    lost = jnp.asarray(ParticleStatus.LOST, np.int8)
    active = jnp.asarray(ParticleStatus.ACTIVE, np.int8)
    # An empty slot stands where another particle is: somewhere the field is known.
    if count:
        positions = jnp.where(alive[:, None], positions, positions[jnp.argmax(alive)])
    return Particles(
        positions,
        alive,
        jnp.zeros(count, np.int32),
        jnp.where(alive, active, lost),
        jnp.full(count, jnp.nan, positions.dtype),
        jnp.arange(count, dtype=np.int32) if slots is None else slots,
        memory,
        own,
    )


def retire(
    particles: Particles,
    gone: Bool[Array, " n"],
    status: ParticleStatus,
    where: Float[Array, "n 3"],
    when: Float[Array, "*n"],
) -> Particles:
    """Take some particles out of the run: where they went, and when."""
    gone = gone & particles.alive
    code = jnp.asarray(int(status), np.int8)
    when = jnp.asarray(when, particles.exit_time.dtype)
    return eqx.tree_at(
        lambda p: (p.positions, p.alive, p.status, p.exit_time),
        particles,
        (
            jnp.where(gone[:, None], where, particles.positions),
            particles.alive & ~gone,
            jnp.where(gone, code, particles.status),
            jnp.where(gone, when, particles.exit_time),
        ),
    )


def move(particles: Particles, positions: Float[Array, "n 3"]) -> Particles:
    """Put the living somewhere else."""
    kept = jnp.where(particles.alive[:, None], positions, particles.positions)
    return eqx.tree_at(lambda p: p.positions, particles, kept)


def renew(
    particles: Particles, fresh: Bool[Array, " n"], positions: Float[Array, "n 3"]
) -> Particles:
    """Start new particles in some slots: a generation later, alive and inside."""
    active = jnp.asarray(ParticleStatus.ACTIVE, np.int8)
    nan = jnp.asarray(jnp.nan, particles.exit_time.dtype)
    return eqx.tree_at(
        lambda p: (p.positions, p.alive, p.generation, p.status, p.exit_time),
        particles,
        (
            jnp.where(fresh[:, None], positions, particles.positions),
            particles.alive | fresh,
            particles.generation + fresh.astype(np.int32),
            jnp.where(fresh, active, particles.status),
            jnp.where(fresh, nan, particles.exit_time),
        ),
    )
