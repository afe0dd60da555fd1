"""The shore: what becomes of particles on the land of a field."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxtrace.fields.base import AbstractField
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus


def reach_shore(
    field: AbstractField, particles: Particles, before: Array, end: Array
) -> Particles:
    """Return the particles after the rule for land: who was beached stays there."""
    land = field.on_land(particles.positions, particles.cell_hint)
    if land is None:
        return particles
    if field.shore == "absorb":
        where = particles.positions
        return retire(particles, land, ParticleStatus.BEACHED, where, end)
    back = land
    if field.shore == "beach":
        code = jnp.asarray(ParticleStatus.BEACHED, np.int8)
        back = particles.status == code
        fresh = land & ~back & particles.alive
        particles = eqx.tree_at(
            lambda p: (p.status, p.exit_time),
            particles,
            (
                jnp.where(fresh, code, particles.status),
                jnp.where(fresh, end, particles.exit_time),
            ),
        )
    return move(particles, jnp.where(back[:, None], before, particles.positions))
