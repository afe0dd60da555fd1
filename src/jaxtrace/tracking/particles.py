"""The state of a run: fixed slots with at most one particle each, and their noise.

Random numbers depend on the seed, the slot and the step only, so that batches, chunks
and devices draw alike.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry2x32_p, threefry_2x32
from jaxtyping import Array, Bool, Float, Int, Int8, Int32, Key, Shaped, UInt32

from jaxtrace.types import ParticleStatus

# One row or value per particle: positions, velocities, displacements; times; choices.
Vectors = Float[Array, "n 3"]
Scalars = Float[Array, " n"]
Flags = Bool[Array, " n"]


class Particles(eqx.Module):
    """The state of every slot that the next step needs.

    A particle that is gone keeps its last position. `cell_hint` says where the field
    looked it up last, `velocity` is that of a particle with inertia, and `next_dt` the
    step an adaptive method would take next, as a fraction of the interval; `remainder`
    is what rounding left of positions on a sphere; `lifetime` the first step of a
    particle and the first that it is too old for; `state` what its behaviors keep, and
    `fresh` that of a newcomer. They are None where nothing needs them.
    """

    positions: Vectors
    alive: Flags
    generation: Int32[Array, " n"]
    status: Int8[Array, " n"]
    exit_time: Scalars
    slots: Int[Array, " n"]
    cell_hint: Any
    velocity: Any = None
    next_dt: Scalars | None = None
    lifetime: Int32[Array, "n 2"] | None = None
    remainder: Vectors | None = None
    state: dict[str, Shaped[Array, " n"]] | None = None
    fresh: dict[str, Shaped[Array, " n"]] | None = None


def seed_particles(positions: Vectors, cell_hint: Any = ()) -> Particles:
    """Return particles at seeds; a seed that is NaN makes an empty slot."""
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
        jnp.arange(count, dtype=np.int32),
        cell_hint,
    )


def pad_slots(particles: Particles, multiple: int) -> Particles:
    """Add empty slots so that their number is a multiple."""
    count = particles.positions.shape[0]
    missing = -count % multiple
    if not missing or not count:
        return particles
    padded = jax.tree.map(
        lambda x: jnp.concatenate([x, jnp.repeat(x[-1:], missing, 0)]), particles
    )
    real = jnp.arange(count + missing) < count
    slots = jnp.arange(count + missing, dtype=particles.slots.dtype)
    return replace(padded, alive=padded.alive & real, slots=slots)


def retire(
    particles: Particles,
    gone: Flags,
    status: ParticleStatus,
    where: Vectors,
    when: Float[Array, "*n"],
) -> Particles:
    """Take some particles out of the run: where they went, and when."""
    gone = gone & particles.alive
    code = jnp.asarray(int(status), np.int8)
    when = jnp.asarray(when, particles.exit_time.dtype)
    return replace(
        particles,
        positions=jnp.where(gone[:, None], where, particles.positions),
        alive=particles.alive & ~gone,
        status=jnp.where(gone, code, particles.status),
        exit_time=jnp.where(gone, when, particles.exit_time),
    )


def move(particles: Particles, positions: Vectors) -> Particles:
    """Move the particles that are alive."""
    kept = jnp.where(particles.alive[:, None], positions, particles.positions)
    return replace(particles, positions=kept)


def recycle(particles: Particles, fresh: Flags, positions: Vectors) -> Particles:
    """Start new particles in some slots: a generation later, alive and inside."""
    active = jnp.asarray(ParticleStatus.ACTIVE, np.int8)
    nan = jnp.asarray(jnp.nan, particles.exit_time.dtype)
    return replace(
        particles,
        positions=jnp.where(fresh[:, None], positions, particles.positions),
        alive=particles.alive | fresh,
        generation=particles.generation + fresh.astype(np.int32),
        status=jnp.where(fresh, active, particles.status),
        exit_time=jnp.where(fresh, nan, particles.exit_time),
    )


class Draw(eqx.Module):
    """Counter-based random numbers of one step (threefry of slot and step)."""

    key: UInt32[Array | np.ndarray, " 2"]
    slots: Int[Array, " n"]
    step: Int[Array, ""]

    def uniform(self, stream: int, dtype: np.dtype) -> Float[Array, "n 2"]:
        """Return two numbers in [0, 1) per particle; each stream is another pair."""
        return _fraction(self._bits(stream), dtype)

    def normal(self, stream: int, dtype: np.dtype) -> Vectors:
        """Return three standard normal numbers per particle (Box and Muller)."""
        parts = [self.uniform(2 * stream + s, dtype) for s in (0, 1)]
        # log1p(-u): u may be 0 but never 1, so that the logarithm is finite without a
        # check.
        radius = [jnp.sqrt(-2 * jnp.log1p(-p[:, 0])) for p in parts]
        angle = [2 * np.pi * p[:, 1] for p in parts]
        columns = [
            radius[0] * jnp.cos(angle[0]),
            radius[0] * jnp.sin(angle[0]),
            radius[1] * jnp.cos(angle[1]),
        ]
        return jnp.stack(columns, 1)

    def keys(self, stream: int) -> Key[Array, " n"]:
        """Return a JAX key per particle; each stream is another one."""
        return jax.random.wrap_key_data(self._bits(stream)[:, :2], impl="threefry2x32")

    def _bits(self, stream: int) -> UInt32[Array, "n 4"]:
        """Return four words per particle from two hashes of (slot, step)."""
        slots = self.slots.astype(np.uint32)
        steps = jnp.broadcast_to(self.step.astype(np.uint32), slots.shape)
        words: list[Array] = []
        for half in (0, 1):
            # Salmon et al. (2011): a number is a hash of who asks and when, so that
            # tiling, sharding and resuming draw the same ones and no state is carried.
            key = threefry_2x32(self.key, jnp.array([stream, half], np.uint32))
            halves = (jnp.broadcast_to(k, slots.shape) for k in key)
            words += threefry2x32_p.bind(*halves, slots, steps)
        return jnp.stack(words, 1)


def _fraction(bits: UInt32[Array, "n 4"], dtype: np.dtype) -> Float[Array, "n 2"]:
    """Return words as numbers in [0, 1), as fine as the dtype can hold."""
    if np.dtype(dtype) == np.float64:
        # 53 bits from two words, as in the reference code of MT19937 (genrand_res53).
        high = (bits[:, :2] >> 5).astype(np.float64)
        low = (bits[:, 2:] >> 6).astype(np.float64)
        return (high * 2.0**26 + low) * 2.0**-53
    return (bits[:, :2] >> 8).astype(np.float32) * np.float32(2.0**-24)


def noise_key(seed: Any) -> UInt32[Array | np.ndarray, " 2"]:
    """Return the key of a seed, that of `jax.random.key`."""
    if isinstance(seed, jax.Array):
        return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))
    high, low = divmod(int(seed), 2**32)  # without asking a device
    return np.array([high % 2**32, low], np.uint32)
