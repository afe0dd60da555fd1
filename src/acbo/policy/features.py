"""What a linear model says about E[Y | do(X_i = v)].

Its coefficients shrink where an edge is unlikely; effects go along all paths to the
target.

What the policy looks at: every variable at a row of candidate values.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.environment import ProblemSpec
from acbo.history import History
from acbo.policy.curves import (
    RegressionRows,
    average_curve,
    expected_improvement,
    fit_curves,
)
from acbo.surrogate.encode import (
    column_scale,
    moments_by_effect,
    squash,
    standardize,
    sweep_inverse,
)
from acbo.surrogate.predictor import Surrogate

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


def ancestor_probs(
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


def unconfounded_probs(
    edge_probs: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """How likely the target follows a variable that was free as one that was set: no
    cause of it leads to the target past it, nor does the target lead to it.
    """
    d = edge_probs.shape[0]

    def shut(i: Int[Array, ""]) -> Float[Array, ""]:
        past_it = jnp.where(jnp.arange(d)[None] == i, 0.0, edge_probs)
        behind = edge_probs[:, i] * ancestor_probs(past_it, target)
        return jnp.prod(1 - behind)

    after = ancestor_probs(edge_probs.T, target)
    return jax.vmap(shut)(jnp.arange(d)) * (1 - after)


CANDIDATES = 17  # values of each variable, both ends of its range among them
FEATURES = 19
FARTHEST = 40.0  # deviations of the target that a line may promise
BESIDE = 0.1  # of a range: rows farther outside tell nothing about it
LEAST_GAIN = 1e-3  # in deviations of the target; smaller ones are all alike


class PolicyObservation(eqx.Module):
    """Features of each variable and candidate, and a first guess of its outcome.

    Outcomes are in deviations of the target, lower is better whatever the direction.
    """

    features: Float[Array, "*batch d m f"]
    guess: Float[Array, "*batch d m"]
    std: Float[Array, "*batch d m"]
    gain: Float[Array, "*batch d m"]  # expected, over what was tried
    low: Float[Array, "*batch d"]
    high: Float[Array, "*batch d"]
    allowed: Bool[Array, "*batch d"]


def edges_of(
    surrogate: Surrogate, history: History, spec: ProblemSpec
) -> Float[Array, "d d"]:
    """P(i causes j) for every pair, as the surrogate reads the history."""
    found = surrogate.read(
        history.values,
        history.intervened,
        history.row_mask,
        spec.mask,
        spec.target,
    )
    return jax.nn.sigmoid(found.edge_logits)


def _lowest(y: Float[Array, " n"], rows: Bool[Array, " n"]) -> Float[Array, ""]:
    """The best outcome of these rows, 0 where there is none."""
    best = jnp.where(rows, y, jnp.inf).min()
    return jnp.where(jnp.isfinite(best), best, 0.0)


class Lines(NamedTuple):
    """The linear view: outcomes in deviations of the target, lower is better."""

    outcome: Float[Array, " n"]
    scaled: Float[Array, "d m"]  # candidate values in deviations of their variable
    at_rows: Float[Array, "n d"]  # expected outcome by the total effect of a variable
    at_candidates: Float[Array, "d m"]


def _draw_lines(
    history: History, spec: ProblemSpec, edge_probs: Float[Array, "d d"]
) -> Lines:
    seen, target = history.row_mask, spec.target
    mean, spread = column_scale(history.values, history.intervened, seen)
    z = standardize(history.values, history.intervened, seen, spec.mask)
    free = (seen[:, None] & ~history.intervened).astype(z.dtype)
    weights = structural_weights(z, free, edge_probs)
    effect = spec.sign * total_effects(weights, target)
    share = jnp.linspace(0.0, 1.0, CANDIDATES)
    values = spec.low[:, None] + (spec.high - spec.low)[:, None] * share[None]
    scaled = (values - mean[:, None]) / spread[:, None]
    return Lines(
        spec.sign * z[:, target],
        scaled,
        jnp.clip(effect[None] * z, -FARTHEST, FARTHEST),
        jnp.clip(effect[:, None] * scaled, -FARTHEST, FARTHEST),
    )


def _rows_by_variable(
    history: History, spec: ProblemSpec, clear: Float[Array, " d"], lines: Lines
) -> RegressionRows:
    """Rows in which a variable was set tell about its curve, and those in which it was
    free as far as nothing confounds it, that is with the probability `clear`.
    """
    width = jnp.where(spec.high > spec.low, spec.high - spec.low, 1.0)
    place = (history.values - spec.low[None]) / width[None]
    there = history.row_mask[:, None] & (place >= -BESIDE) & (place <= 1 + BESIDE)
    telling = jnp.where(history.intervened, 1.0, clear[None])
    made = there & history.intervened
    weight = jnp.where(there, telling, 0.0)
    return RegressionRows(place, lines.outcome, lines.at_rows, weight, made)


def policy_features(
    history: History, spec: ProblemSpec, edge_probs: Float[Array, "d d"]
) -> PolicyObservation:
    """The observation from a history and the probabilities of its edges."""
    target = spec.target
    lines = _draw_lines(history, spec, edge_probs)
    clear = unconfounded_probs(edge_probs, target)
    data = _rows_by_variable(history, spec, clear, lines)
    fit = fit_curves(data, lines.at_candidates)
    tried = average_curve(fit, lines.at_candidates)
    gain = expected_improvement(fit, data, lines.at_candidates)
    acted = history.intervened & history.row_mask[:, None]
    rows = acted.any(axis=1)
    best = _lowest(lines.outcome, rows)
    hope = jnp.where(spec.allowed[:, None], tried.mean, jnp.inf).min()
    share = jnp.linspace(0.0, 1.0, CANDIDATES)
    whole = jnp.ones_like(gain)
    column = lambda x: whole * x[:, None]
    count = lambda flags: jnp.log1p(flags.sum().astype(gain.dtype))
    features = [
        squash(lines.at_candidates),
        squash(tried.mean),
        squash(tried.deviation),
        column(tried.straight),
        column(tried.rough),
        column(edge_probs[:, target]),
        column(ancestor_probs(edge_probs, target)),
        column(clear),
        whole * (2 * share - 1)[None],
        whole * ((share == 0) | (share == 1)).astype(gain.dtype)[None],
        squash(lines.scaled),
        column(jnp.log1p(acted.sum(axis=0).astype(gain.dtype))),
        jnp.log1p(fit.near),
        whole * squash(best),
        whole * (count(history.row_mask & ~rows) - 3.0),
        whole * count(rows),
        squash(tried.mean - hope),
        squash((tried.mean - hope) / tried.deviation),
        jnp.log(gain + LEAST_GAIN),
    ]
    return PolicyObservation(
        jnp.where(spec.mask[:, None, None], jnp.stack(features, axis=-1), 0.0),
        tried.mean,
        tried.deviation,
        gain,
        spec.low,
        spec.high,
        spec.allowed,
    )
