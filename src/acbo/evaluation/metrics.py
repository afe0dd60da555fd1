"""How good a parent prediction or a run of experiments is, one number each.

Arrays of variables or steps lie on the last axis; `mask` leaves out the target and
padding. Where a ratio has nothing below the line, precision, recall and F1 are 0 and
the areas under curves are NaN, so that they drop out of means.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.types import lower_is_better

SMALLEST = 1e-7  # the least probability taken a logarithm of

Probs = Float[Array, "*batch d"]
Flags = Bool[Array, "*batch d"]
Score = Float[Array, "*batch"]


def _count(flags: Bool[Array, "*batch d"]) -> Float[Array, "*batch"]:
    return flags.sum(-1).astype(jnp.float32)


def _ratio(above: Array, below: Array) -> Array:
    return jnp.where(below > 0, above / jnp.maximum(below, 1e-30), 0.0)


def precision(
    probs: Probs, parents: Flags, mask: Flags, threshold: float = 0.5
) -> Score:
    """Share of the variables called parents that are."""
    called = (probs > threshold) & mask
    return _ratio(_count(called & parents), _count(called))


def recall(probs: Probs, parents: Flags, mask: Flags, threshold: float = 0.5) -> Score:
    """Share of the parents that are called so."""
    called = (probs > threshold) & mask
    return _ratio(_count(called & parents), _count(parents & mask))


def parent_f1(
    probs: Probs, parents: Flags, mask: Flags, threshold: float = 0.5
) -> Score:
    """Harmonic mean of precision and recall of {i : P(i is a parent) > threshold}."""
    called = (probs > threshold) & mask
    total = _count(called) + _count(parents & mask)
    return _ratio(2.0 * _count(called & parents), total)


def _at_least(probs: Probs, mask: Flags) -> Bool[Array, "*batch d d"]:
    """[.., i, j]: whether j is there and scores at least as high as i."""
    return (probs[..., None, :] >= probs[..., :, None]) & mask[..., None, :]


def auprc(probs: Probs, parents: Flags, mask: Flags) -> Score:
    """Average precision; variables of equal score share one threshold. NaN without
    parents.
    """
    true = parents & mask
    reached = _at_least(probs, mask)
    hits = _count(reached & true[..., None, :])
    at_rank = jnp.where(true, _ratio(hits, _count(reached)), 0.0)
    found = _count(true)
    return jnp.where(found > 0, _ratio(at_rank.sum(-1), found), jnp.nan)


def auroc(probs: Probs, parents: Flags, mask: Flags) -> Score:
    """Chance that a parent scores above another variable, ties counted half. NaN
    unless both kinds are there.
    """
    true, false = parents & mask, ~parents & mask
    mine, other = probs[..., :, None], probs[..., None, :]
    above = jnp.where(mine > other, 1.0, jnp.where(mine == other, 0.5, 0.0))
    pairs = true[..., :, None] & false[..., None, :]
    count = pairs.sum((-2, -1)).astype(jnp.float32)
    won = jnp.where(pairs, above, 0.0).sum((-2, -1))
    return jnp.where(count > 0, _ratio(won, count), jnp.nan)


def shd(
    predicted: Bool[Array, "*batch d d"],
    adjacency: Bool[Array, "*batch d d"],
    mask: Bool[Array, "*batch d"],
) -> Score:
    """Structural Hamming distance sum|A - B|: a reversed edge counts twice."""
    both = mask[..., :, None] & mask[..., None, :]
    return ((predicted != adjacency) & both).sum((-2, -1)).astype(jnp.float32)


def parent_shd(
    probs: Probs, parents: Flags, mask: Flags, threshold: float = 0.5
) -> Score:
    """Structural Hamming distance of the target's own column."""
    return _count(((probs > threshold) != parents) & mask)


def exact_set(
    probs: Probs, parents: Flags, mask: Flags, threshold: float = 0.5
) -> Score:
    """1 where the predicted parent set is the true one, else 0."""
    return (parent_shd(probs, parents, mask, threshold) == 0).astype(jnp.float32)


def log_loss(probs: Probs, parents: Flags, mask: Flags) -> Score:
    """Mean negative log probability of each variable being a parent or not, nats."""
    each = -jnp.log(jnp.maximum(jnp.where(parents, probs, 1.0 - probs), SMALLEST))
    return _ratio(jnp.where(mask, each, 0.0).sum(-1), _count(mask))


def brier(probs: Probs, parents: Flags, mask: Flags) -> Score:
    """Mean squared error of the parent probabilities."""
    each = jnp.square(probs - parents.astype(probs.dtype))
    return _ratio(jnp.where(mask, each, 0.0).sum(-1), _count(mask))


def best_so_far(
    outcomes: Float[Array, "*batch steps"], direction: str = "MINIMIZE"
) -> Float[Array, "*batch steps"]:
    """The best outcome up to each step."""
    sign = lower_is_better(direction)
    return sign * jax.lax.cummin(sign * outcomes, axis=outcomes.ndim - 1)


def simple_regret(
    outcomes: Float[Array, "*batch steps"],
    optimum: Float[Array, "*batch"],
    direction: str = "MINIMIZE",
) -> Float[Array, "*batch steps"]:
    """How far the best outcome up to each step is from the optimum, 0 at best."""
    gap = best_so_far(outcomes, direction) - optimum[..., None]
    return lower_is_better(direction) * gap


def cumulative_regret(
    outcomes: Float[Array, "*batch steps"],
    optimum: Float[Array, "*batch"],
    direction: str = "MINIMIZE",
) -> Float[Array, "*batch steps"]:
    """Sum of the distances of all outcomes up to each step from the optimum."""
    gap = lower_is_better(direction) * (outcomes - optimum[..., None])
    return jnp.cumsum(gap, axis=-1)


def parent_selection_rate(done: Bool[Array, "*batch steps d"], parents: Flags) -> Score:
    """Share of true parents of the target among all that was set."""
    count = lambda flags: flags.sum((-2, -1)).astype(jnp.float32)
    return count(done & parents[..., None, :]) / jnp.maximum(count(done), 1.0)
