"""Random mechanisms of named kinds over a given graph."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.mechanisms.features import COSINE, IDENTITY, SQUARE, TANH, Features

# Units that each kind needs; models of one batch share the largest.
UNITS = {"linear": 1, "quadratic": 2, "tanh": 1, "mlp": 8, "rff": 32, "wave": 4}
LENGTH_SCALE = (7.0, 10.0)  # of random Fourier mechanisms, in units of the causes
OUTPUT_SCALE = (10.0, 20.0)
WAVE_LENGTH = (1.5, 20.0)  # in units of the causes


def _padded(array: Array, units: int) -> Array:
    """Room for `units` units on the second axis; those added stay zero."""
    extra = [(0, 0)] * array.ndim
    extra[1] = (0, units - array.shape[1])
    return jnp.pad(array, extra)


def _make(
    inner: Float[Array, "d h d"],
    bias: Float[Array, "d h"],
    outer: Float[Array, "d h"],
    activation: Int[Array, "d h"],
    units: int,
) -> Features:
    return Features(
        _padded(inner, units),
        _padded(bias, units),
        _padded(outer, units),
        _padded(activation, units),
        jnp.zeros(inner.shape[0]),
    )


def _linear(key: PRNGKeyArray, weight: Float[Array, "d d"], units: int) -> Features:
    d = weight.shape[0]
    kind = jnp.full((d, 1), IDENTITY)
    zero, one = jnp.zeros((d, 1)), jnp.ones((d, 1))
    return _make(weight.T[:, None, :], zero, one, kind, units)


def _quadratic(key: PRNGKeyArray, weight: Float[Array, "d d"], units: int) -> Features:
    """x_j = w.x + c (v.x)^2 / 2 with |c| <= 1 and v half as long as w."""
    d = weight.shape[0]
    turn, size = jax.random.split(key)
    bent = weight.T / 2 * jax.random.rademacher(turn, (d, d), weight.dtype)
    inner = jnp.stack([weight.T, bent], axis=1)
    bend = jax.random.uniform(size, (d,), minval=-1.0, maxval=1.0) / 2
    outer = jnp.stack([jnp.ones(d), bend], axis=1)
    kind = jnp.broadcast_to(jnp.array([IDENTITY, SQUARE]), (d, 2))
    return _make(inner, jnp.zeros((d, 2)), outer, kind, units)


def _tanh(key: PRNGKeyArray, weight: Float[Array, "d d"], units: int) -> Features:
    d = weight.shape[0]
    scale, shift = jax.random.split(key)
    outer = jax.random.uniform(scale, (d, 1), minval=1.0, maxval=4.0)
    bias = jax.random.normal(shift, (d, 1)) / 2
    return _make(weight.T[:, None, :], bias, outer, jnp.full((d, 1), TANH), units)


def _mlp(key: PRNGKeyArray, weight: Float[Array, "d d"], units: int) -> Features:
    """One hidden layer of tanh units."""
    d, h = weight.shape[0], UNITS["mlp"]
    turn, shift, last = jax.random.split(key, 3)
    inner = weight.T[:, None, :] * jax.random.normal(turn, (d, h, d))
    bias = jax.random.normal(shift, (d, h))
    outer = jax.random.normal(last, (d, h)) * float(2.0 / np.sqrt(h))
    return _make(inner, bias, outer, jnp.full((d, h), TANH), units)


def _rff(key: PRNGKeyArray, weight: Float[Array, "d d"], units: int) -> Features:
    """A draw from a Gaussian process: random Fourier features of random length and
    output scale (Rahimi and Recht 2007), as in the AVICI benchmarks.
    """
    d, h = weight.shape[0], UNITS["rff"]
    turn, shift, last, long, high = jax.random.split(key, 5)
    length = jax.random.uniform(
        long, (d, 1, 1), minval=LENGTH_SCALE[0], maxval=LENGTH_SCALE[1]
    )
    cause = (weight.T != 0)[:, None, :]
    inner = jnp.where(cause, jax.random.normal(turn, (d, h, d)) / length, 0.0)
    bias = jax.random.uniform(shift, (d, h), maxval=float(2 * np.pi))
    scale = jax.random.uniform(
        high, (d, 1), minval=OUTPUT_SCALE[0], maxval=OUTPUT_SCALE[1]
    )
    outer = jax.random.normal(last, (d, h)) * scale * float(np.sqrt(2.0 / h))
    return _make(inner, bias, outer, jnp.full((d, h), COSINE), units)


def _wave(key: PRNGKeyArray, weight: Float[Array, "d d"], units: int) -> Features:
    """A slope and three waves, each along a direction of its own through the causes."""
    d, h = weight.shape[0], UNITS["wave"] - 1
    slope, turn, shift, long, high = jax.random.split(key, 5)
    cause = (weight.T != 0)[:, None, :]
    way = jnp.where(cause, jax.random.normal(turn, (d, h, d)), 0.0)
    way = way / jnp.maximum(jnp.linalg.norm(way, axis=-1, keepdims=True), 1e-6)
    low, top = float(np.log(WAVE_LENGTH[0])), float(np.log(WAVE_LENGTH[1]))
    length = jnp.exp(jax.random.uniform(long, (d, h, 1), minval=low, maxval=top))
    inner = jnp.concatenate([weight.T[:, None], way * (2 * np.pi) / length], axis=1)
    bias = jax.random.uniform(shift, (d, h), maxval=float(2 * np.pi))
    bias = jnp.concatenate([jnp.zeros((d, 1)), bias], axis=1)
    tilt = jax.random.uniform(slope, (d, 1))
    outer = jnp.concatenate([tilt, 2 * jax.random.normal(high, (d, h))], axis=1)
    kind = jnp.broadcast_to(jnp.array([IDENTITY] + [COSINE] * h), (d, h + 1))
    return _make(inner, bias, outer, kind, units)


MECHANISMS = {
    "linear": _linear,
    "quadratic": _quadratic,
    "tanh": _tanh,
    "mlp": _mlp,
    "rff": _rff,
    "wave": _wave,
}


def draw_features(
    key: PRNGKeyArray,
    kinds: tuple[str, ...],
    adjacency: Bool[Array, "d d"],
    weight: Float[Array, "d d"],
) -> Features:
    """Mechanisms of one of the kinds; variables without a cause stay at 0."""
    units = max(UNITS[kind] for kind in kinds)
    pick, draw = jax.random.split(key)
    weight = jnp.where(adjacency, weight, 0.0)
    made = [MECHANISMS[kind](draw, weight, units) for kind in kinds]
    which = jax.random.randint(pick, (), 0, len(kinds))
    features = jax.tree.map(lambda *each: jnp.stack(each)[which], *made)
    caused = adjacency.any(axis=0)
    outer = jnp.where(caused[:, None], features.outer, 0.0)
    return Features(
        features.inner, features.bias, outer, features.activation, features.intercept
    )
