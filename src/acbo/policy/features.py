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
from acbo.posterior.scores import column_scale
from acbo.surrogate import encode
from acbo.surrogate.encode import sweep_out
from acbo.surrogate.predictor import Surrogate

LENGTH_SCALES = (0.05, 0.1, 0.2, 0.4)  # of basis functions, as shares of the range
AMPLITUDES = (0.3, 2.0, 12.0)  # variances of a curve over that of its noise
LINE = 0.7  # prior probability that a curve departs from the line, not from 0
SLOPE = 4.0  # variance of what the line is multiplied by, in variances of the noise
NOISE = (2.0, 1.0)  # shape and scale of the noise's inverse gamma prior


class Fit(NamedTuple):
    """Every curve considered: around 0 or the line [t], of a variable [d], a length
    scale [w] and an amplitude [h], at the candidates [m].
    """

    share: Float[Array, "t d w h"]  # posterior probability, over t, w and h
    weights: Float[Array, "t d w h b"]  # expected, of the basis and the line
    mean: Float[Array, "t d w h m"]
    noise: Float[Array, "t d w h"]  # expected variance
    inverse: Float[Array, "d w h b b"]  # covariance of the weights over it
    near: Float[Array, "d m"]  # rows about each candidate


class Curve(NamedTuple):
    """The average of a fit's curves at the candidates, and what they are like."""

    mean: Float[Array, "d m"]
    std: Float[Array, "d m"]
    linear_prob: Float[Array, " d"]  # probability that it departs from the line
    roughness: Float[Array, " d"]  # mean logarithm of 1 over its length scale


class RegressionRows(NamedTuple):
    """Rows as each variable's regression sees them; `place` is 0 to 1 in its range."""

    place: Float[Array, "n d"]
    outcome: Float[Array, " n"]
    line: Float[Array, "n d"]  # what the linear model expects at each row
    weight: Float[Array, "n d"]  # from 0 to 1: how far it tells about the curve
    made: Bool[Array, "n d"]  # the variable was set there


def rbf_basis(x: Float[Array, "*n"], candidates: int) -> Float[Array, "*n w m"]:
    """Return one Gaussian at each candidate, of every length scale, together of norm 1:
    a curve is then as uncertain at the ends of the range as in its middle.
    """
    grid = jnp.linspace(0.0, 1.0, candidates)
    wide = jnp.array(LENGTH_SCALES)[:, None]
    away = x[..., None, None] - jnp.broadcast_to(grid, (*(1,) * x.ndim, 1, candidates))
    height = -0.5 * jnp.square(away / wide.reshape((1,) * x.ndim + wide.shape))
    # Half the log of the sum of squares, which is the norm; squared first, narrow
    # Gaussians between two candidates would vanish in single precision.
    high = jax.nn.logsumexp(2 * height, axis=-1, keepdims=True) / 2
    return jnp.exp(height - high)


def parts_at(
    place: Float[Array, "n d"], line: Float[Array, "n d"], candidates: int
) -> Float[Array, "n d w b"]:
    """Return what curves are made of at some places: the basis, and the line."""
    made = rbf_basis(place, candidates)
    straight = jnp.broadcast_to(line[..., None, None], (*made.shape[:-1], 1))
    return jnp.concatenate([made, straight], axis=-1)


def parts_at_candidates(line: Float[Array, "d m"]) -> Float[Array, "m d w b"]:
    """Return the same at the candidates of every variable."""
    d, m = line.shape
    grid = jnp.linspace(0.0, 1.0, m)[:, None]
    return parts_at(jnp.broadcast_to(grid, (m, d)), line.T, m)


def fit_curves(data: RegressionRows, line: Float[Array, "d m"]) -> Fit:
    """Fit Bayesian regressions of unknown noise, for every length scale and amplitude,
    around 0 and around `line`, the linear model's expectation at the candidates.

    The prior is conjugate (normal inverse gamma), so the evidence has a closed form:
    Bishop, Pattern Recognition and Machine Learning, 3.5 and exercise 3.23.
    """
    m = line.shape[1]
    high = jnp.broadcast_to(jnp.array(AMPLITUDES)[:, None], (len(AMPLITUDES), m))
    prior = jnp.concatenate([high, jnp.full((len(AMPLITUDES), 1), SLOPE)], axis=1)
    root = jnp.sqrt(data.weight)
    rows = root[..., None, None] * parts_at(data.place, data.line, m)
    gram = jnp.einsum("niwa,niwb->iwab", rows, rows)
    full = gram[:, :, None] + jax.vmap(jnp.diag)(1 / prior)[None, None]
    inverse, log_det = sweep_out(full)  # [variable, width, height, ...]

    rest = root * data.outcome[:, None]
    bent = root * (data.outcome[:, None] - data.line)
    left = jnp.stack([rest, bent])  # what a curve around 0 or the line explains
    aim = jnp.einsum("niwa,tni->tiwa", rows, left)
    weights = jnp.einsum("iwhab,tiwb->tiwha", inverse, aim)
    total = jnp.square(left).sum(axis=1)[:, :, None, None]
    misfit = total - jnp.einsum("tiwa,tiwha->tiwh", aim, weights)
    count = data.weight.sum(axis=0)[None, :, None, None]
    shape = NOISE[0] + count / 2
    scale = NOISE[1] + jnp.maximum(misfit, 0.0) / 2
    volume = jnp.log(prior).sum(axis=1)[None, None] + log_det
    start = jnp.log(jnp.array([1 - LINE, LINE]))[:, None, None, None]
    evidence = start - volume[None] / 2 - shape * jnp.log(scale)
    around = jnp.stack([jnp.zeros_like(line), line])[:, :, None, None]
    return Fit(
        jax.nn.softmax(evidence, axis=(0, 2, 3)),
        weights,
        around + jnp.einsum("miwa,tiwha->tiwhm", parts_at_candidates(line), weights),
        # The mean of an inverse gamma; finite, since the prior shape exceeds 1.
        scale / (shape - 1),
        inverse,
        jnp.square(rows[:, :, 1, :m]).sum(axis=0),
    )


def _average(fit: Fit, x: Float[Array, "t d w h m"]) -> Float[Array, "d m"]:
    return (fit.share[..., None] * x).sum(axis=(0, 2, 3))


def average_curve(fit: Fit, line: Float[Array, "d m"]) -> Curve:
    """Return mean, deviation and character of each variable's curve."""
    at = parts_at_candidates(line)
    mean = _average(fit, fit.mean)
    spread = jnp.einsum("miwa,iwhab,miwb->iwhm", at, fit.inverse, at)
    variance = fit.noise[..., None] * jnp.maximum(spread, 0.0)[None]
    # Law of total variance: the mean of the squares less the square of the mean.
    square = _average(fit, jnp.square(fit.mean) + variance)
    return Curve(
        mean,
        jnp.sqrt(jnp.maximum(square - jnp.square(mean), 1e-6)),
        fit.share[1].sum(axis=(1, 2)),
        -jnp.einsum("tiwh,w->i", fit.share, jnp.log(jnp.array(LENGTH_SCALES))),
    )


DRAWS = 256


def _kinds(share: Float[Array, "t d w h"], draws: int) -> Float[Array, "k d t w h"]:
    """Return one kind of curve for each draw and variable, one-hot, as often as it is
    likely: even steps through their cumulated probabilities (stratified sampling).
    """
    t, d, w, h = share.shape
    total = jnp.cumsum(share.swapaxes(0, 1).reshape(d, -1), axis=1)
    level = (jnp.arange(draws).astype(share.dtype) + 0.5) / draws
    passed = (level[:, None, None] > total[None]).sum(axis=-1)
    kind = jnp.minimum(passed, t * w * h - 1)  # rounding may keep the sum below 1
    return jax.nn.one_hot(kind, t * w * h).reshape(draws, d, t, w, h)


def expected_improvement(
    fit: Fit, data: RegressionRows, line: Float[Array, "d m"], draws: int = DRAWS
) -> Float[Array, "d m"]:
    """Return E[max(best made - E[Y | do(X_i = v)], 0)] at every candidate; the best
    made is that of all variables, or doing nothing, at 0.
    """
    m = line.shape[1]
    pick = _kinds(fit.share, draws)
    straight, wide = pick.sum(axis=(3, 4))[:, :, 1], pick.sum(axis=(2, 4))
    noise = jnp.sqrt(jnp.einsum("kitwh,tiwh->ki", pick, fit.noise))
    # The same numbers for every variable and each time: neither the order of the
    # variables nor a second call may change what is chosen.
    unit = jax.random.normal(jax.random.key(0), (draws, fit.weights.shape[-1]))
    root = jnp.linalg.cholesky(fit.inverse)
    away = jnp.einsum("iwhab,kiwh,kb->kia", root, pick.sum(axis=2), unit)
    mean = jnp.einsum("tiwha,kitwh->kia", fit.weights, pick)
    weights = mean + noise[..., None] * away

    bent = jnp.einsum("miwa,kia,kiw->kim", parts_at_candidates(line), weights, wide)
    curve = straight[..., None] * line[None] + bent
    parts = parts_at(data.place, data.line, m)
    bent = jnp.einsum("niwa,kia,kiw->kin", parts, weights, wide)
    at_rows = straight[..., None] * data.line.T[None] + bent
    own = jnp.where(data.made.T[None], at_rows, jnp.inf).min(axis=2)
    best = jnp.minimum(jnp.minimum(own, _of_others(own)), 0.0)
    return jnp.maximum(best[..., None] - curve, 0.0).mean(axis=0)


def _of_others(own: Float[Array, "k d"]) -> Float[Array, "k d"]:
    """Return the lowest of the other variables, of another draw: what is not known of
    two variables is independent.
    """
    far = jnp.roll(own, len(own) // 2, axis=0)
    same = jnp.eye(own.shape[1], dtype=bool)[None]
    return jnp.where(same, jnp.inf, far[:, None, :]).min(axis=2)


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
) -> RegressionRows:
    """Weigh rows in which a variable was set by 1, and those in which it was free by
    the probability that nothing confounds it.
    """
    width = jnp.where(spec.high > spec.low, spec.high - spec.low, 1.0)
    place = (history.values - spec.low[None]) / width[None]
    there = history.row_mask[:, None] & (place >= -BESIDE) & (place <= 1 + BESIDE)
    telling = jnp.where(history.intervened, 1.0, unconfounded[None])
    made = there & history.intervened
    weight = jnp.where(there, telling, 0.0)
    return RegressionRows(place, lines.outcome, lines.at_rows, weight, made)


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
    fit = fit_curves(data, lines.at_candidates)
    curve = average_curve(fit, lines.at_candidates)
    gain = expected_improvement(fit, data, lines.at_candidates)
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
