"""Measures of parent probabilities and of outcomes.

Metrics take variables or steps on the last axis; `mask` leaves out the target and
padding, by default nothing. Lists and plain numbers will do for arrays. Where a ratio
has nothing below the line, precision, recall and F1 are 0 and the areas under curves
are NaN, so that they drop out of means.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.types import lower_is_better

SMALLEST = 1e-7  # the least probability taken a logarithm of

Probs = Float[Array, "*batch d"]
Flags = Bool[Array, "*batch d"]
Score = Float[Array, "*batch"]


def _count(flags: Bool[Array, "*batch d"]) -> Float[Array, "*batch"]:
    return flags.sum(-1).astype(jnp.float32)


def _read(probs: Any, truth: Any, mask: Any) -> tuple[Probs, Flags, Flags]:
    """Return what was given as arrays, with a mask that leaves out nothing if None."""
    probs = jnp.asarray(probs, dtype=float)
    kept = np.ones(probs.shape, bool) if mask is None else mask
    return probs, jnp.asarray(truth, dtype=bool), jnp.asarray(kept, dtype=bool)


def _ratio(above: Array, below: Array) -> Array:
    return jnp.where(below > 0, above / jnp.maximum(below, 1e-30), 0.0)


def _of_counts(score: Callable[[Score, Score, Score], Score]) -> Callable[..., Score]:
    """Return a measure by the numbers of right, of predicted and of true parents."""

    def measure(
        probs: Probs, parents: Flags, mask: Flags | None = None, threshold: float = 0.5
    ) -> Score:
        probs, parents, mask = _read(probs, parents, mask)
        called, true = (probs > threshold) & mask, parents & mask
        return score(_count(called & true), _count(called), _count(true))

    return measure


# The share of predicted parents that are true, of true ones that are predicted, and the
# harmonic mean of both; wrong entries of the target's own column; 1 if there is none.
precision = _of_counts(lambda right, called, true: _ratio(right, called))
recall = _of_counts(lambda right, called, true: _ratio(right, true))
parent_f1 = _of_counts(lambda right, called, true: _ratio(2.0 * right, called + true))
parent_shd = _of_counts(lambda right, called, true: called + true - 2.0 * right)
exact_set = _of_counts(
    lambda right, called, true: (called + true == 2.0 * right).astype(jnp.float32)
)


def auprc(probs: Probs, parents: Flags, mask: Flags | None = None) -> Score:
    """Return the average precision, ties at one threshold; NaN without parents."""
    probs, parents, mask = _read(probs, parents, mask)
    true = parents & mask
    # Comparisons instead of a sort: equal scores share one threshold by themselves.
    reached = (probs[..., None, :] >= probs[..., :, None]) & mask[..., None, :]
    hits = _count(reached & true[..., None, :])
    at_rank = jnp.where(true, _ratio(hits, _count(reached)), 0.0)
    found = _count(true)
    return jnp.where(found > 0, _ratio(at_rank.sum(-1), found), jnp.nan)


def auroc(probs: Probs, parents: Flags, mask: Flags | None = None) -> Score:
    """Return the probability that a parent scores above a non-parent, ties counted
    half. NaN unless both kinds exist.
    """
    probs, parents, mask = _read(probs, parents, mask)
    true, false = parents & mask, ~parents & mask
    # The Mann-Whitney statistic over all pairs: no sort to compile, and ties are easy.
    mine, other = probs[..., :, None], probs[..., None, :]
    above = jnp.where(mine > other, 1.0, jnp.where(mine == other, 0.5, 0.0))
    pairs = true[..., :, None] & false[..., None, :]
    count = pairs.sum((-2, -1)).astype(jnp.float32)
    won = jnp.where(pairs, above, 0.0).sum((-2, -1))
    return jnp.where(count > 0, _ratio(won, count), jnp.nan)


def shd(
    predicted: Bool[Array, "*batch d d"],
    adjacency: Bool[Array, "*batch d d"],
    mask: Bool[Array, "*batch d"] | None = None,
) -> Score:
    """Return the structural Hamming distance; a reversed edge counts twice."""
    predicted, adjacency = (jnp.asarray(a, dtype=bool) for a in (predicted, adjacency))
    kept = True if mask is None else mask
    mask = jnp.broadcast_to(jnp.asarray(kept, dtype=bool), predicted.shape[:-1])
    both = mask[..., :, None] & mask[..., None, :]
    return ((predicted != adjacency) & both).sum((-2, -1)).astype(jnp.float32)


def log_loss(probs: Probs, parents: Flags, mask: Flags | None = None) -> Score:
    """Return the mean negative log probability of each variable's truth, in nats."""
    probs, parents, mask = _read(probs, parents, mask)
    each = -jnp.log(jnp.maximum(jnp.where(parents, probs, 1.0 - probs), SMALLEST))
    return _ratio(jnp.where(mask, each, 0.0).sum(-1), _count(mask))


def brier(probs: Probs, parents: Flags, mask: Flags | None = None) -> Score:
    """Return the mean squared error of the parent probabilities."""
    probs, parents, mask = _read(probs, parents, mask)
    each = jnp.square(probs - parents.astype(probs.dtype))
    return _ratio(jnp.where(mask, each, 0.0).sum(-1), _count(mask))


def best_so_far(
    outcomes: Float[Array, "*batch steps"], direction: str = "MINIMIZE"
) -> Float[Array, "*batch steps"]:
    """Return the best outcome up to each step."""
    sign, outcomes = lower_is_better(direction), jnp.asarray(outcomes, dtype=float)
    if not outcomes.ndim:  # a single step
        return outcomes
    return sign * jax.lax.cummin(sign * outcomes, axis=outcomes.ndim - 1)


def simple_regret(
    outcomes: Float[Array, "*batch steps"],
    optimum: Float[Array, "*batch"] | float,
    direction: str = "MINIMIZE",
) -> Float[Array, "*batch steps"]:
    """Return how far the best outcome up to each step is from the optimum."""
    return _above(best_so_far(outcomes, direction), optimum, direction)


def cumulative_regret(
    outcomes: Float[Array, "*batch steps"],
    optimum: Float[Array, "*batch"] | float,
    direction: str = "MINIMIZE",
) -> Float[Array, "*batch steps"]:
    """Return the summed distance of all outcomes up to each step from the optimum."""
    each = _above(jnp.asarray(outcomes, dtype=float), optimum, direction)
    return jnp.cumsum(each, axis=-1) if each.ndim else each


def _above(outcomes: Array, optimum: Any, direction: str) -> Array:
    best = jnp.asarray(optimum, dtype=float)
    # One optimum for all steps; a single outcome is one step.
    best = best[..., None] if outcomes.ndim else best
    return lower_is_better(direction) * (outcomes - best)


def parent_selection_rate(done: Bool[Array, "*batch steps d"], parents: Flags) -> Score:
    """Return the share of true parents among all variables that were set."""
    count = lambda flags: flags.sum((-2, -1)).astype(jnp.float32)
    return count(done & parents[..., None, :]) / jnp.maximum(count(done), 1.0)


def reliability(
    probs: Float[Array, "*n"],
    labels: Bool[Array, "*n"],
    mask: Bool[Array, "*n"] | None = None,
    bins: int = 10,
) -> Float[Array, "3 bins"]:
    """Return the reliability curve of probabilities of binary events, all pooled: over
    equally wide bins of probability, lowest first, the number of events, the sum of
    their probabilities, and the number that are true.
    """
    probs, labels, mask = _read(probs, labels, mask)
    place = jnp.clip((probs * bins).astype(jnp.int32), 0, bins - 1)
    inside = (place.reshape(-1, 1) == jnp.arange(bins)[None]) & mask.reshape(-1, 1)
    summed = jnp.stack([jnp.ones_like(probs), probs, labels.astype(probs.dtype)])
    return summed.reshape(3, -1) @ inside.astype(probs.dtype)


def expected_calibration_error(
    probs: Float[Array, "*n"],
    labels: Bool[Array, "*n"],
    mask: Bool[Array, "*n"] | None = None,
    bins: int = 10,
) -> Float[Array, ""]:
    """Return the mean gap of probability and frequency over bins, weighted by count."""
    count, predicted, happened = reliability(probs, labels, mask, bins)
    return jnp.abs(predicted - happened).sum() / jnp.maximum(count.sum(), 1.0)


PARENT_SCORES = {
    "f1": parent_f1,
    "precision": precision,
    "recall": recall,
    "auprc": auprc,
    "auroc": auroc,
    "log_loss": log_loss,
    "brier": brier,
    "shd": parent_shd,
    "exact_set": exact_set,
}
