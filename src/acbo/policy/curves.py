"""Curves of E[Y | do(X_i = v)] through rows, one for each variable.

Length scale, amplitude and noise of a curve are unknown, and so is whether its prior
mean is a line or 0: curves of all of these are averaged by their evidence (Bayesian
model averaging). The slope of the line is uncertain too, so beyond the rows it is only
a guess.

Expected improvement is by curves drawn from the posterior. The best experiment made is
itself unknown while outcomes are noisy: in every draw it is the lowest of the curves
where something was tried, so trying the same again gains nothing, and trying beside it
little.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.surrogate.encode import sweep_out

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
