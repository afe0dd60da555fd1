"""Random numbers from explicit keys."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxrig.keys import Keys, batch_keys
from jaxtrace.config import working_dtype

Shape = int | tuple[int, ...]


def rng_key(seed: int = 42) -> PRNGKeyArray:
    """A key from a seed."""
    return jax.random.key(seed)


def split_keys(key: PRNGKeyArray, count: int = 2) -> Keys:
    """Independent keys; the first ones do not depend on how many are asked for."""
    return batch_keys(key, count)


def uniform(
    key: PRNGKeyArray,
    shape: Shape = (),
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: Any = None,
) -> Float[Array, "..."]:
    """Numbers spread evenly over [minval, maxval)."""
    return jax.random.uniform(key, _shape(shape), _dtype(dtype), minval, maxval)


def normal(
    key: PRNGKeyArray,
    shape: Shape = (),
    mean: float = 0.0,
    std: float = 1.0,
    dtype: Any = None,
) -> Float[Array, "..."]:
    """Numbers of a normal distribution."""
    return mean + std * jax.random.normal(key, _shape(shape), _dtype(dtype))


def shuffle(key: PRNGKeyArray, x: Any) -> Array:
    """The rows in random order."""
    return jax.random.permutation(key, jnp.asarray(x))


def random_choice(
    key: PRNGKeyArray, a: Any, shape: Shape = (), replace: bool = True, p: Any = None
) -> Array:
    """Rows of `a`, or numbers below the integer `a`, drawn with probabilities `p`."""
    rows = a if isinstance(a, int) else jnp.asarray(a)
    weights = None if p is None else jnp.asarray(p)
    return jax.random.choice(key, rows, _shape(shape), replace, weights)


def random_integers(
    key: PRNGKeyArray, shape: Shape, minval: int, maxval: int, dtype: Any = None
) -> Int[Array, "..."]:
    """Whole numbers from minval up to but not including maxval."""
    kind = int if dtype is None else dtype
    return jax.random.randint(key, _shape(shape), minval, maxval, kind)


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else shape


def _dtype(dtype: Any) -> Any:
    return working_dtype() if dtype is None else dtype
