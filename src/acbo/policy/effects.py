"""What the data and the edge probabilities say about E[Y | do(X_i = v)].

Two views: a linear model whose coefficients shrink where an edge is unlikely, followed
along all paths to the target; and a smooth curve for each variable through the rows in
which it was set, or through the observational ones.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.surrogate.statistics import moments_by_effect, sweep_inverse

DOUBT = 1e-3  # probabilities stay this far from 0 and 1
LARGEST_EFFECT = 30.0  # in deviations; cycles of doubtful edges must not run away
WIDTH = 0.18  # of a bump of the curves, as a share of the range
PRIOR_VARIANCE = 2.0  # of the curves, in variances of the target


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


class Curve(NamedTuple):
    """Mean and deviation of a curve at the candidates, and the rows near each."""

    mean: Float[Array, "d m"]
    deviation: Float[Array, "d m"]
    near: Float[Array, "d m"]


def fit_curves(
    place: Float[Array, "n d"],
    y: Float[Array, "n d"],
    used: Bool[Array, "n d"],
    candidates: int,
) -> Curve:
    """A smooth curve for each variable through the rows used: Bayesian regression on
    one bump at each candidate. `place` runs from 0 to 1 over the range.
    """
    grid = jnp.linspace(0.0, 1.0, candidates)
    bump = lambda x: jnp.exp(
        -0.5 * jnp.square((x[..., None] - grid.reshape((1,) * x.ndim + (-1,))) / WIDTH)
    )
    rows = jnp.where(used[..., None], bump(place), 0.0)
    at = bump(grid)  # [candidate, bump]
    gram = jnp.einsum("nia,nib->iab", rows, rows)
    cover = jnp.square(at).sum(axis=1).mean()
    prior = cover / PRIOR_VARIANCE * jnp.eye(candidates)
    inverse = sweep_inverse(gram + prior[None])
    aim = jnp.einsum("nia,ni->ia", rows, jnp.where(used, y, 0.0))
    weights = jnp.einsum("iab,ib->ia", inverse, aim)
    mean = jnp.einsum("ma,ia->im", at, weights)
    variance = jnp.einsum("ma,iab,mb->im", at, inverse, at)
    return Curve(mean, jnp.sqrt(jnp.maximum(variance, 1e-6)), rows.sum(axis=0))
