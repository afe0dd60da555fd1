"""PRNG keys: one per batch item and per name, none used twice; a hash.

Every derived key depends on the parent key and its own index or name only, so the
randomness of item 7 is the same in a batch of 8 and of 8,000. Typed keys
(`jax.random.key`) and raw ones (`jax.random.PRNGKey`) both work and stay what they are.
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray, UInt32

Keys = Key[Array, "..."] | UInt32[Array, "... 2"]


def batch_keys(key: PRNGKeyArray, count: int) -> Keys:
    """Return one key per item; the key of item i does not depend on `count`."""
    # Not jax.random.split: with some implementations its keys depend on their number.
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(count))


def named_key(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """Return the key of one purpose; a further purpose changes no existing stream."""
    # crc32, since Python's own hash of a string changes from process to process.
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def mix(word: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """Return a hash of 32 bits, each word its own: the finalizer of MurmurHash3.

    For random choices where a key would cost more than all else.
    """
    word = word + np.uint32(0x9E3779B9)  # nought is not its own hash
    word = (word ^ word >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    word = (word ^ word >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return word ^ word >> np.uint32(16)
