"""What a linear model says about E[Y | do(X_i = v)].

Its coefficients shrink where an edge is unlikely; effects go along all paths to the
target.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from acbo.surrogate.statistics import moments_by_effect, sweep_inverse

DOUBT = 1e-3  # probabilities stay this far from 0 and 1
LARGEST_EFFECT = 30.0  # in deviations; cycles of doubtful edges must not run away


def structural_weights(
    z: Float[Array, "n d"],
    free: Float[Array, "n d"],
    edge_probs: Float[Array, "d d"],
) -> Float[Array, "d d"]:
    """Linear effect of i on j [i, j] by ridge regressions over the rows where j was
    free; the ridge of a coefficient is the odds against its edge.
    """
    d = z.shape[1]
    moments = moments_by_effect(z, free)
    sure = jnp.clip(edge_probs, DOUBT, 1 - DOUBT)
    odds = (1 - sure) / sure + 0.05
    own = jnp.eye(d, dtype=bool)
    ridge = jnp.where(own, 1e6, odds).T  # [effect, cause]
    ridge = jnp.concatenate([ridge, jnp.full((d, 1), 0.05)], axis=1)
    inverse = sweep_inverse(moments + jax.vmap(jnp.diag)(ridge))
    aim = jnp.einsum("jaj->ja", moments[:, :, :d])
    weights = jnp.einsum("jab,jb->ja", inverse, aim)[:, :d].T
    return jnp.where(own, 0.0, weights)


def total_effects(
    weights: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """Sum over all paths from each variable to the target of products of weights."""
    start = jnp.arange(weights.shape[0]) == target

    def extend(reached: Float[Array, " d"], _: None):
        further = jnp.clip(weights @ reached, -LARGEST_EFFECT, LARGEST_EFFECT)
        return jnp.where(start, 1.0, further), None

    reached = start.astype(weights.dtype)
    reached = jax.lax.scan(extend, reached, None, weights.shape[0] - 1)[0]
    return jnp.where(start, 0.0, reached)


def reach_probs(
    edge_probs: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """How likely a path leads from each variable to the target, edges independent."""
    start = jnp.arange(edge_probs.shape[0]) == target

    def extend(reached: Float[Array, " d"], _: None):
        missed = jnp.prod(1 - edge_probs * reached[None, :], axis=1)
        return jnp.where(start, 1.0, 1 - missed), None

    reached = start.astype(edge_probs.dtype)
    reached = jax.lax.scan(extend, reached, None, edge_probs.shape[0] - 1)[0]
    return jnp.where(start, 0.0, reached)


def clear_probs(
    edge_probs: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """How likely the target follows a variable that was free as one that was set: no
    cause of it leads to the target past it, nor does the target lead to it.
    """
    d = edge_probs.shape[0]

    def shut(i: Int[Array, ""]) -> Float[Array, ""]:
        past_it = jnp.where(jnp.arange(d)[None] == i, 0.0, edge_probs)
        behind = edge_probs[:, i] * reach_probs(past_it, target)
        return jnp.prod(1 - behind)

    after = reach_probs(edge_probs.T, target)
    return jax.vmap(shut)(jnp.arange(d)) * (1 - after)
