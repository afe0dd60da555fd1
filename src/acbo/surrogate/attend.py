"""Masked attention of many places at once, along either axis of a table of cells."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

MASKED_LOADS = (0, 8)  # the first JAX whose kernels have them where ours looks


def attend(
    mixed: Float[Array, "a b 3 inner"],
    mask: Bool[Array, " places"],
    heads: int,
    axis: int,
) -> Float[Array, "a b inner"]:
    """What each place sees of those along its axis, from queries, keys and values.

    On NVIDIA devices and in half precision one kernel keeps the weights in registers;
    elsewhere they are written out.
    """
    known = jax.default_backend() == "gpu" and jax.__version_info__ >= MASKED_LOADS
    if known and mixed.dtype == jnp.bfloat16:
        from acbo.surrogate.attend_kernel import attend_by_kernel, fits

        if fits(mixed.shape[axis], mixed.shape[-1] // heads):
            return jax.lax.platform_dependent(
                mixed,
                mask,
                cuda=functools.partial(attend_by_kernel, heads=heads, axis=axis),
                default=functools.partial(attend_in_full, heads=heads, axis=axis),
            )
    return attend_in_full(mixed, mask, heads, axis)


def attend_in_full(
    mixed: Float[Array, "a b 3 inner"],
    mask: Bool[Array, " places"],
    heads: int,
    axis: int,
) -> Float[Array, "a b inner"]:
    """The same with the weights of all pairs of places written out."""
    split = mixed.reshape(*mixed.shape[:-1], heads, -1)
    query, key, value = (split[..., i, :, :] for i in range(3))
    scale = float(1.0 / np.sqrt(query.shape[-1]))
    q, k = ("aqhc", "akhc") if axis == 1 else ("qahc", "kahc")
    scores = jnp.einsum(f"{q},{k}->ahqk", query, key).astype(jnp.float32)
    hidden = jnp.broadcast_to(~mask, scores.shape)
    weights = jax.nn.softmax(jnp.where(hidden, -1e9, scale * scores), axis=-1)
    seen = jnp.einsum(f"ahqk,{k}->{q}", weights.astype(mixed.dtype), value)
    return seen.reshape(*seen.shape[:-2], -1)
