"""Layers over the last axis of arrays of any rank, in the arrays' own precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

EPSILON = 1e-5


class Linear(eqx.Module):
    """x W + b; weights start with variance `gain` over their number of inputs."""

    weight: Float[Array, "into out"]
    bias: Float[Array, " out"]

    def __init__(self, into: int, out: int, key: PRNGKeyArray, gain: float = 1.0):
        spread = float(np.sqrt(gain / into))
        self.weight = spread * jax.random.normal(key, (into, out))
        self.bias = jnp.zeros(out)

    def __call__(self, x: Float[Array, "*n into"]) -> Float[Array, "*n out"]:
        """Map the last axis."""
        dense = x @ self.weight.astype(x.dtype)
        return dense + _as_last(self.bias, dense)


class Norm(eqx.Module):
    """Zero mean and unit variance over the last axis, then a learned scale."""

    scale: Float[Array, " dim"]
    shift: Float[Array, " dim"]

    def __init__(self, dim: int):
        self.scale = jnp.ones(dim)
        self.shift = jnp.zeros(dim)

    def __call__(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """Statistics are taken in single precision."""
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(axis=-1, keepdims=True)
        variance = jnp.square(centred).mean(axis=-1, keepdims=True)
        unit = (centred * jax.lax.rsqrt(variance + EPSILON)).astype(x.dtype)
        return unit * _as_last(self.scale, x) + _as_last(self.shift, x)


class Perceptron(eqx.Module):
    """Norm, widen, bend, narrow; the last layer starts near zero."""

    norm: Norm
    widen: Linear
    narrow: Linear

    def __init__(self, dim: int, factor: int, key: PRNGKeyArray):
        first, last = jax.random.split(key)
        self.norm = Norm(dim)
        self.widen = Linear(dim, factor * dim, first, 2.0)
        self.narrow = Linear(factor * dim, dim, last, 0.1)

    def __call__(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """What is added to the stream."""
        return self.narrow(jax.nn.relu(self.widen(self.norm(x))))


class Attention(eqx.Module):
    """Masked self-attention over the last axis but one."""

    norm: Norm
    project: Linear
    out: Linear
    heads: int = eqx.field(static=True)

    def __init__(self, dim: int, heads: int, key_size: int, key: PRNGKeyArray):
        first, last = jax.random.split(key)
        self.norm = Norm(dim)
        self.project = Linear(dim, 3 * heads * key_size, first)
        self.out = Linear(heads * key_size, dim, last, 0.1)
        self.heads = heads

    def __call__(
        self, x: Float[Array, "*n length dim"], mask: Bool[Array, " length"]
    ) -> Float[Array, "*n length dim"]:
        """What is added to the stream; places outside the mask are not looked at."""
        mixed = self.project(self.norm(x))
        split = mixed.reshape(*mixed.shape[:-1], 3, self.heads, -1)
        query, key, value = (split[..., i, :, :] for i in range(3))
        scale = float(1.0 / np.sqrt(query.shape[-1]))
        scores = jnp.einsum("...qhc,...khc->...hqk", query, key).astype(jnp.float32)
        hidden = jnp.broadcast_to(~mask, scores.shape)
        weights = jax.nn.softmax(jnp.where(hidden, -1e9, scale * scores), axis=-1)
        seen = jnp.einsum("...hqk,...khc->...qhc", weights.astype(x.dtype), value)
        return self.out(seen.reshape(*seen.shape[:-2], -1))


def drop(
    x: Float[Array, "*n"], rate: float, key: PRNGKeyArray | None
) -> Float[Array, "*n"]:
    """Dropout while training: None for the key leaves all as it is."""
    if key is None or rate == 0.0:
        return x
    keep = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(keep, x / (1.0 - rate), 0.0).astype(x.dtype)


def _as_last(vector: Float[Array, " dim"], like: Array) -> Array:
    shape = (1,) * (like.ndim - 1) + vector.shape
    return vector.astype(like.dtype).reshape(shape)
