"""PRNG keys: one per batch item and per name, none used twice; a hash.

Every derived key depends on the parent key and its own index or name only, so the
randomness of item 7 is the same in a batch of 8 and of 8,000. Typed keys
(`jax.random.key`) and raw ones (`jax.random.PRNGKey`) both work and stay what they are.
"""

import operator
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Key, PRNGKeyArray, UInt32

Keys = Key[Array, "..."] | UInt32[Array, "... 2"]


def batch_keys(key: PRNGKeyArray, count: int) -> Keys:
    """Return one key per item; the key of item i does not depend on `count`."""
    if count < 0:
        raise ValueError(f"count is {count}: give a whole number from 0")
    # Not jax.random.split: with some implementations its keys depend on their number.
    places = jnp.arange(operator.index(count))  # a fraction would be rounded up
    return jax.vmap(jax.random.fold_in, (None, 0))(key, places)


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


def hashed_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """Return a key whose draws are hashes of their place, and compile to one kernel.

    XLA compiles every call of JAX's generator anew, about ten kernels at 10 ms each on
    a CPU. For the start of a network, whose many small arrays need no more than that.
    """
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    data = jax.random.key_data(key) if typed else key
    return jax.random.wrap_key_data(data[..., :2], impl=_HASHED)


def _words(key: UInt32[Array, "2"], shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    place = jax.lax.iota(jnp.uint32, int(np.prod(shape))).reshape(shape)
    return mix(mix(place ^ key[0]) ^ key[1])


def _bits(key: UInt32[Array, "2"], width: int, shape: tuple[int, ...]) -> Array:
    if width != 32:
        raise ValueError(f"hashed keys give words of 32 bits, not of {width}")
    return _words(key, shape)


_HASHED = define_prng_impl(
    key_shape=(2,),
    seed=lambda number: jnp.stack([number >> 31 >> 1, number]).astype(jnp.uint32),
    split=lambda key, shape: _words(key, (*shape, 2)),
    random_bits=_bits,
    fold_in=lambda key, number: mix(mix(number ^ key[::-1]) ^ key),
    name="hashed",
    tag="hash",
)
