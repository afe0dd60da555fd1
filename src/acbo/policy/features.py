"""Features of the policy: every variable at a row of candidate values.

A linear model whose coefficients shrink where an edge is unlikely gives a first guess
of E[Y | do(X_i = v)]; curves through the rows correct it.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.environment import ProblemSpec
from acbo.history import History
from acbo.policy import curves
from acbo.posterior.scores import column_scale
from acbo.surrogate import encode
from acbo.surrogate.predictor import Surrogate

CANDIDATES = 17  # values of each variable, both ends of its range among them
SMALLEST_PROB = 1e-3  # probabilities of edges stay this far from 0 and 1
LARGEST_EFFECT = 30.0  # in deviations; cycles of unlikely edges must not run away
FARTHEST = 40.0  # deviations of the target that a line may promise
BESIDE = 0.1  # of a range: rows farther outside tell nothing about it
LEAST_GAIN = 1e-3  # in deviations of the target; smaller ones are all alike


class CellFeatures(NamedTuple):
    """The inputs of the policy network for each variable at each candidate value.

    Outcomes are in deviations of the target, lower is better; large ones are squashed.
    """

    linear_outcome: Float[Array, "d m"]
    curve_mean: Float[Array, "d m"]
    curve_std: Float[Array, "d m"]
    linear_prob: Float[Array, "d m"]  # that the curve departs from the line, not from 0
    roughness: Float[Array, "d m"]  # mean log of 1 over the length scale
    parent_prob: Float[Array, "d m"]
    ancestor_prob: Float[Array, "d m"]
    unconfounded_prob: Float[Array, "d m"]
    place: Float[Array, "d m"]  # of the candidate in its range, from -1 to 1
    is_end: Float[Array, "d m"]  # 1 at both ends of the range
    candidate: Float[Array, "d m"]  # in deviations of its variable
    times_set: Float[Array, "d m"]  # log(1 + interventions on this variable)
    rows_nearby: Float[Array, "d m"]  # log(1 + rows about the candidate)
    best_seen: Float[Array, "d m"]
    observational_rows: Float[Array, "d m"]  # log(1 + rows) - 3
    interventional_rows: Float[Array, "d m"]  # log(1 + rows)
    above_best_mean: Float[Array, "d m"]
    above_best_in_stds: Float[Array, "d m"]
    log_improvement: Float[Array, "d m"]


FEATURES = len(CellFeatures._fields)


class PolicyObservation(eqx.Module):
    """Features of each variable and candidate, and the expected outcome behind them.

    Outcomes are in deviations of the target, lower is better whatever the direction.
    """

    features: Float[Array, "*batch d m f"]
    mean: Float[Array, "*batch d m"]
    std: Float[Array, "*batch d m"]
    gain: Float[Array, "*batch d m"]  # expected improvement over what was tried
    low: Float[Array, "*batch d"]
    high: Float[Array, "*batch d"]
    allowed: Bool[Array, "*batch d"]


def structural_weights(
    z: Float[Array, "n d"],
    free: Float[Array, "n d"],
    edge_probs: Float[Array, "d d"],
) -> Float[Array, "d d"]:
    """Return the linear effects of i on j [i, j], by ridge regressions over rows where
    j was free; the ridge of a coefficient is the odds against its edge.
    """
    d = z.shape[1]
    moments = encode.moments_by_effect(z, free)
    sure = jnp.clip(edge_probs, SMALLEST_PROB, 1 - SMALLEST_PROB)
    odds = (1 - sure) / sure + 0.05
    own = jnp.eye(d, dtype=bool)
    ridge = jnp.where(own, 1e6, odds).T  # [effect, cause]
    ridge = jnp.concatenate([ridge, jnp.full((d, 1), 0.05)], axis=1)
    inverse, _ = encode.sweep_out(moments + jax.vmap(jnp.diag)(ridge))
    aim = jnp.einsum("jaj->ja", moments[:, :, :d])
    weights = jnp.einsum("jab,jb->ja", inverse, aim)[:, :d].T
    return jnp.where(own, 0.0, weights)


def _along_paths(
    edges: Float[Array, "d d"], target: Int[Array, ""], extend: Callable[[Array], Array]
) -> Float[Array, " d"]:
    """Return what comes of all paths to the target, one edge longer at each step."""
    start = jnp.arange(edges.shape[0]) == target
    step = lambda reached, _: (jnp.where(start, 1.0, extend(reached)), None)
    first = start.astype(edges.dtype)
    reached, _ = jax.lax.scan(step, first, None, edges.shape[0] - 1)
    return jnp.where(start, 0.0, reached)


def total_effects(
    weights: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """Return the sum over all paths to the target of products of weights.

    In a DAG this is (I - W)^-1; the clipped iteration also stands unlikely cycles.
    """
    clip = lambda effect: jnp.clip(effect, -LARGEST_EFFECT, LARGEST_EFFECT)
    return _along_paths(weights, target, lambda reached: clip(weights @ reached))


def ancestor_probs(
    edge_probs: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """Return the probability that a path leads to the target, edges independent."""
    missed = lambda reached: jnp.prod(1 - edge_probs * reached[None, :], axis=1)
    return _along_paths(edge_probs, target, lambda reached: 1 - missed(reached))


def unconfounded_probs(
    edge_probs: Float[Array, "d d"], target: Int[Array, ""]
) -> Float[Array, " d"]:
    """Return the probability that P(Y | X_i) is P(Y | do(X_i)): no cause of X_i leads
    to the target past it (no open back door), nor does the target lead to X_i.
    """
    d = edge_probs.shape[0]

    def shut(i: Int[Array, ""]) -> Float[Array, ""]:
        past_it = jnp.where(jnp.arange(d)[None] == i, 0.0, edge_probs)
        behind = edge_probs[:, i] * ancestor_probs(past_it, target)
        return jnp.prod(1 - behind)

    after = ancestor_probs(edge_probs.T, target)
    return jax.vmap(shut)(jnp.arange(d)) * (1 - after)


def edges_of(
    surrogate: Surrogate, history: History, spec: ProblemSpec
) -> Float[Array, "d d"]:
    """Return P(i causes j) for every pair, as the surrogate reads the history."""
    found = surrogate.read(*history.rows, spec.mask, spec.target)
    return jax.nn.sigmoid(found.edge_logits)


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
    z = encode.standardize(history.values, history.intervened, seen, spec.mask)
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
    history: History, spec: ProblemSpec, unconfounded: Float[Array, " d"], lines: Lines
) -> curves.RegressionRows:
    """Weigh rows in which a variable was set by 1, and those in which it was free by
    the probability that nothing confounds it.
    """
    width = jnp.where(spec.high > spec.low, spec.high - spec.low, 1.0)
    place = (history.values - spec.low[None]) / width[None]
    there = history.row_mask[:, None] & (place >= -BESIDE) & (place <= 1 + BESIDE)
    telling = jnp.where(history.intervened, 1.0, unconfounded[None])
    made = there & history.intervened
    weight = jnp.where(there, telling, 0.0)
    return curves.RegressionRows(place, lines.outcome, lines.at_rows, weight, made)


def policy_features(
    history: History, spec: ProblemSpec, edge_probs: Float[Array, "d d"]
) -> PolicyObservation:
    """Return what the policy sees of a history and the probabilities of its edges."""
    target = spec.target
    # Whatever stands in the padding, nothing below may depend on it.
    cells = history.row_mask[:, None] & spec.mask[None, :]
    history = History(
        jnp.where(cells, history.values, 0.0), history.intervened & cells, history.count
    )
    lines = _draw_lines(history, spec, edge_probs)
    unconfounded = unconfounded_probs(edge_probs, target)
    data = _rows_by_variable(history, spec, unconfounded, lines)
    fit = curves.fit_curves(data, lines.at_candidates)
    curve = curves.average_curve(fit, lines.at_candidates)
    gain = curves.expected_improvement(fit, data, lines.at_candidates)
    acted = history.intervened.any(axis=1)
    best = jnp.where(acted, lines.outcome, jnp.inf).min()
    best = jnp.where(jnp.isfinite(best), best, 0.0)  # nothing was tried yet
    above = curve.mean - jnp.where(spec.allowed[:, None], curve.mean, jnp.inf).min()
    share = jnp.linspace(0.0, 1.0, CANDIDATES)
    whole = jnp.ones_like(gain)
    column = lambda x: whole * x[:, None]
    log_count = lambda flags: jnp.log1p(flags.sum(axis=0).astype(gain.dtype))
    features = CellFeatures(
        linear_outcome=encode.squash(lines.at_candidates),
        curve_mean=encode.squash(curve.mean),
        curve_std=encode.squash(curve.std),
        linear_prob=column(curve.linear_prob),
        roughness=column(curve.roughness),
        parent_prob=column(edge_probs[:, target]),
        ancestor_prob=column(ancestor_probs(edge_probs, target)),
        unconfounded_prob=column(unconfounded),
        place=whole * (2 * share - 1)[None],
        is_end=whole * ((share == 0) | (share == 1)).astype(gain.dtype)[None],
        candidate=encode.squash(lines.scaled),
        times_set=column(log_count(history.intervened)),
        rows_nearby=jnp.log1p(fit.near),
        best_seen=whole * encode.squash(best),
        observational_rows=whole * (log_count(history.row_mask & ~acted) - 3.0),
        interventional_rows=whole * log_count(acted),
        above_best_mean=encode.squash(above),
        above_best_in_stds=encode.squash(above / curve.std),
        log_improvement=jnp.log(gain + LEAST_GAIN),
    )
    return PolicyObservation(
        jnp.where(spec.mask[:, None, None], jnp.stack(features, axis=-1), 0.0),
        curve.mean,
        curve.std,
        gain,
        spec.low,
        spec.high,
        spec.allowed,
    )
