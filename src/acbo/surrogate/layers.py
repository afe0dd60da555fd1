"""Layers over the last axis of arrays of any rank, in the arrays' own precision, and
masked attention along either axis of a table of cells.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt32

from jaxrig.keys import mix

MASKED_LOADS = (0, 8)  # the first JAX whose kernels have them where ours looks


def attend(
    qkv: Float[Array, "a b 3 inner"],
    mask: Bool[Array, " places"],
    heads: int,
    axis: int,
) -> Float[Array, "a b inner"]:
    """Return what each place sees of those along its axis, from queries, keys and
    values.

    On NVIDIA devices and in half precision one kernel keeps the weights in registers;
    elsewhere they are written out.
    """
    known = jax.default_backend() == "gpu" and jax.__version_info__ >= MASKED_LOADS
    if known and qkv.dtype == jnp.bfloat16:
        from acbo.surrogate.attend_kernel import attend_by_kernel, fits

        if fits(qkv.shape[axis], qkv.shape[-1] // heads):
            return jax.lax.platform_dependent(
                qkv,
                mask,
                cuda=functools.partial(attend_by_kernel, heads=heads, axis=axis),
                default=functools.partial(attend_in_full, heads=heads, axis=axis),
            )
    return attend_in_full(qkv, mask, heads, axis)


def attend_in_full(
    qkv: Float[Array, "a b 3 inner"],
    mask: Bool[Array, " places"],
    heads: int,
    axis: int,
) -> Float[Array, "a b inner"]:
    """Return the same with the weights of all pairs of places written out."""
    split = qkv.reshape(*qkv.shape[:-1], heads, -1)
    # Queries, keys and values by sequence and head, each a matrix in one piece. By
    # `split`, whose transpose is one concatenation; that of three slices is three pads.
    moved = split.transpose((2, 1, 3, 0, 4) if axis == 0 else (2, 0, 3, 1, 4))
    parts = tuple(x[0] for x in jax.lax.split(moved, (1, 1, 1)))
    look = functools.partial(_look, mask=mask)
    if mask.shape[0] > LONG and jax.default_backend() == "cpu":
        each = tuple(x.reshape(-1, *x.shape[2:]) for x in parts)
        seen = jax.lax.map(lambda one: look(*one), each).reshape(parts[0].shape)
    else:
        seen = look(*parts)
    seen = seen.transpose((2, 0, 1, 3) if axis == 0 else (0, 2, 1, 3))
    return seen.reshape(*seen.shape[:2], -1)


# Places from which a CPU does one sequence and head at a time: the weights of all of
# them would leave its caches between the passes of the softmax.
LONG = 64


def _look(
    query: Float[Array, "*n places size"],
    key: Float[Array, "*n places size"],
    value: Float[Array, "*n places size"],
    mask: Bool[Array, " places"],
) -> Float[Array, "*n places size"]:
    scale = float(1.0 / np.sqrt(query.shape[-1]))
    scores = jnp.einsum("...qc,...kc->...qk", query, key).astype(jnp.float32)
    # Not -inf: a table without rows has no place to look at, and a softmax over
    # nothing but -inf is NaN.
    hidden = jnp.broadcast_to(~mask, scores.shape)
    scores = jnp.where(hidden, -1e9, scale * scores)
    top = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True))
    weights = jnp.exp(scores - top)
    seen = jnp.einsum("...qk,...kc->...qc", weights.astype(value.dtype), value)
    # Divided after the product: there are fewer numbers than weights.
    total = weights.sum(axis=-1, keepdims=True)
    return (seen / total.astype(seen.dtype)).astype(value.dtype)


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
        """Normalize the last axis, with statistics in single precision."""
        # A GPU runs JAX's own gradient 5 % faster, in four fifths of the memory.
        if jax.default_backend() == "cpu":
            return _normalize(x, self.scale, self.shift)
        return _normalize_forward(x, self.scale, self.shift)[0]


# The gradient by hand: JAX's own keeps six arrays where two are enough, which is half
# again as many kernels to compile and to run.
@jax.custom_vjp
def _normalize(
    x: Float[Array, "*n dim"], scale: Float[Array, " dim"], shift: Float[Array, " dim"]
) -> Float[Array, "*n dim"]:
    return _normalize_forward(x, scale, shift)[0]


def _normalize_forward(x: Array, scale: Array, shift: Array) -> tuple[Array, Any]:
    # bfloat16 keeps eight bits, too few for a sum of squares.
    wide = x.astype(jnp.float32)
    centered = wide - wide.mean(axis=-1, keepdims=True)
    variance = jnp.square(centered).mean(axis=-1, keepdims=True)
    precision = jax.lax.rsqrt(variance + EPSILON)
    unit = (centered * precision).astype(x.dtype)
    scaled = unit * _as_last(scale, x) + _as_last(shift, x)
    return scaled, (unit, precision, scale)


def _normalize_backward(kept: Any, out: Array) -> tuple[Array, Array, Array]:
    unit, precision, scale = kept
    wide, unit = out.astype(jnp.float32), unit.astype(jnp.float32)
    others = tuple(range(out.ndim - 1))
    toward = wide * _as_last(scale, wide)
    along = (toward * unit).mean(axis=-1, keepdims=True)
    inward = toward - toward.mean(axis=-1, keepdims=True) - unit * along
    return (
        (precision * inward).astype(out.dtype),
        (wide * unit).sum(axis=others),
        wide.sum(axis=others),
    )


_normalize.defvjp(_normalize_forward, _normalize_backward)


class Perceptron(eqx.Module):
    """Norm, widen, bend, narrow; the last layer starts near zero."""

    norm: Norm
    widen: Linear
    narrow: Linear

    def __init__(self, dim: int, factor: int, key: PRNGKeyArray):
        first, last = jax.random.split(key)
        self.norm = Norm(dim)
        # Gain 2: a ReLU passes half of the variance (He et al., 2015).
        self.widen = Linear(dim, factor * dim, first, 2.0)
        # Residual branches that start small leave a deep stack near the identity, where
        # gradients neither vanish nor explode (Zhang, Dauphin and Ma, 2019).
        self.narrow = Linear(factor * dim, dim, last, 0.1)

    def __call__(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """Return what is added to the stream."""
        return self.narrow(jax.nn.relu(self.widen(self.norm(x))))


class Attention(eqx.Module):
    """Masked self-attention along either axis of a table of cells."""

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
        self,
        x: Float[Array, "cells dim"],
        table: tuple[int, int],
        mask: Bool[Array, " places"],
        axis: int,
    ) -> Float[Array, "cells dim"]:
        """Return what is added to the stream; along the axis of the table that the
        cells make up, nothing outside the mask is looked at.
        """
        qkv = self.project(self.norm(x)).reshape(*table, 3, -1)
        seen = attend(qkv, mask, self.heads, axis)
        return self.out(seen.reshape(x.shape[0], -1))


def drop(
    x: Float[Array, "*n"], rate: float, key: PRNGKeyArray | None
) -> Float[Array, "*n"]:
    """Dropout while training: None for the key leaves all as it is."""
    if key is None or rate == 0.0:
        return x
    # Compared as integers: no word is converted to a number between 0 and 1.
    level = np.uint32(round(2**32 * rate))
    left = scramble(key, x.shape) >= level
    return jnp.where(left, x * float(1 / (1 - rate)), 0.0).astype(x.dtype)


def scramble(key: PRNGKeyArray, shape: tuple[int, ...]) -> UInt32[Array, "*shape"]:
    """Return pseudorandom words, each a hash of its position.

    Dropout needs no more than that, and what is so cheap is worked out where it is
    used; the words of `jax.random` would be written to memory and read again.
    """
    seed = jax.random.bits(key, (2,), jnp.uint32)
    place = jax.lax.iota(jnp.uint32, int(np.prod(shape))).reshape(shape)
    return mix(place * (seed[0] | np.uint32(1)) + seed[1])


def _as_last(vector: Float[Array, " dim"], like: Array) -> Array:
    shape = (1,) * (like.ndim - 1) + vector.shape
    return vector.astype(like.dtype).reshape(shape)
