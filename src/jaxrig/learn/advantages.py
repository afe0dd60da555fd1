"""How much better an outcome was than expected, and what a learner makes of it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def standardize(
    values: Float[Array, "*n"], axis: int | None = None, scale: bool = True
) -> Float[Array, "*n"]:
    """(x - mean) / (std + 1e-8), population std; without `scale`, x - mean.

    Values that are all equal give exactly 0. The float mean of equal numbers may be
    off by a rounding, which division by the std of roundings would blow up to 1, so
    the first value is subtracted beforehand.
    """
    first = jax.lax.index_in_dim(
        values.reshape(-1) if axis is None else values, 0, axis or 0
    )
    shifted = values - (first.reshape((1,) * values.ndim) if axis is None else first)
    centered = shifted - shifted.mean(axis=axis, keepdims=True)
    return (
        centered / (shifted.std(axis=axis, keepdims=True) + 1e-8) if scale else centered
    )


def clipped_gain(
    ratio: Float[Array, "*n"], advantage: Float[Array, "*n"], clip: float
) -> Float[Array, "*n"]:
    """min(r A, clip(r, 1 - e, 1 + e) A): no reward for moving further than that."""
    return jnp.minimum(
        ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage
    )


def advantages(
    reward: Float[Array, "time batch"],
    value: Float[Array, "time batch"],
    next_value: Float[Array, "time batch"],
    done: Bool[Array, "time batch"],
    discount: float,
    trace_decay: float,
) -> Float[Array, "time batch"]:
    """Generalized advantage estimation (Schulman et al. 2016), within episodes:
    A_t = d_t + discount * trace_decay * A_{t+1}, d_t = r_t + discount * V_{t+1} - V_t.
    """
    surprise = reward + discount * next_value - value

    def back(following: Array, step: tuple[Array, Array]):
        delta, ends = step
        current = delta + discount * trace_decay * jnp.where(ends, 0.0, following)
        return current, current

    start = jnp.zeros_like(surprise[0])
    return jax.lax.scan(back, start, (surprise, done), reverse=True)[1]
