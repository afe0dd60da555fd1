"""Random numbers that depend on the seed, the slot and the step, and on nothing else.

A counter is hashed for each particle, so that batches, chunks and devices draw alike.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from jaxtyping import Array, Float, Int, UInt32


class Draw(eqx.Module):
    """The dice of one step."""

    key: UInt32[Array, " 2"]
    slots: Int[Array, " n"]
    step: Int[Array, ""]

    def uniform(self, stream: int, dtype: np.dtype) -> Float[Array, "n 2"]:
        """Two numbers in [0, 1) per particle; each stream is another pair."""
        return _fraction(self._bits(stream), dtype)

    def normal(self, stream: int, dtype: np.dtype) -> Float[Array, "n 3"]:
        """Three standard normal numbers per particle (Box and Muller)."""
        parts = [self.uniform(2 * stream + s, dtype) for s in (0, 1)]
        radius = [jnp.sqrt(-2 * jnp.log1p(-p[:, 0])) for p in parts]
        angle = [2 * np.pi * p[:, 1] for p in parts]
        columns = [
            radius[0] * jnp.cos(angle[0]),
            radius[0] * jnp.sin(angle[0]),
            radius[1] * jnp.cos(angle[1]),
        ]
        return jnp.stack(columns, 1)

    def _bits(self, stream: int) -> UInt32[Array, "n 4"]:
        """Four words per particle from two hashes of (slot, step)."""
        slots = self.slots.astype(np.uint32)
        steps = jnp.broadcast_to(self.step.astype(np.uint32), slots.shape)
        words = []
        for half in (0, 1):
            key = threefry_2x32(self.key, jnp.array([stream, half], np.uint32))
            hashed = threefry_2x32(key, jnp.concatenate([slots, steps]))
            words.append(hashed.reshape(2, -1))
        return jnp.concatenate(words).T


def _fraction(bits: UInt32[Array, "n 4"], dtype: np.dtype) -> Float[Array, "n 2"]:
    """Words as numbers in [0, 1), as fine as the dtype can hold."""
    if np.dtype(dtype) == np.float64:
        high = (bits[:, :2] >> 5).astype(np.float64)
        low = (bits[:, 2:] >> 6).astype(np.float64)
        return (high * 2.0**26 + low) * 2.0**-53
    return (bits[:, :2] >> 8).astype(np.float32) * np.float32(2.0**-24)


def dice_key(seed: int) -> UInt32[Array, " 2"]:
    """The key of a seed."""
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))
