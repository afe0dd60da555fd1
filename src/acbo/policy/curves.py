"""Curves of E[Y | do(X_i = v)] through rows, one for each variable.

How wide its bumps are, how high it rises, how loud the noise is, and whether it departs
from a line or from 0 is unknown; curves of all of these are averaged by evidence.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from acbo.surrogate.statistics import sweep_out

WIDTHS = (0.05, 0.1, 0.2, 0.4)  # of the bumps of a curve, as shares of the range
HEIGHTS = (0.3, 2.0, 12.0)  # variances of a curve, in variances of its noise
LINE = 0.7  # prior probability that a curve departs from the line, not from 0
TRIED = 0.5  # rows about a candidate from which it counts as tried
NOISE = (2.0, 1.0)  # shape and scale of the noise's inverse gamma prior


class Fit(NamedTuple):
    """Every curve considered: around 0 or the line [t], of a variable [d], a width [w]
    and a height [h], at the candidates [m].
    """

    share: Float[Array, "t d w h"]  # posterior probability, over t, w and h
    mean: Float[Array, "t d w h m"]
    noise: Float[Array, "t d w h"]  # expected variance
    inverse: Float[Array, "d w h m m"]  # covariance of the bumps' weights over it
    near: Float[Array, "d m"]  # rows about each candidate


class Curve(NamedTuple):
    """The average of a fit's curves at the candidates, and what they are like."""

    mean: Float[Array, "d m"]
    deviation: Float[Array, "d m"]
    straight: Float[Array, " d"]  # probability that it departs from the line
    rough: Float[Array, " d"]  # mean logarithm of 1 over its width


class Sight(NamedTuple):
    """Rows as a curve sees them; `place` runs from 0 to 1 over the range."""

    place: Float[Array, "n d"]
    outcome: Float[Array, " n"]
    line: Float[Array, "n d"]  # what the linear model expects at each row
    used: Bool[Array, "n d"]


def _bumps(x: Float[Array, "*n"], candidates: int) -> Float[Array, "*n w m"]:
    """One bump at each candidate, of every width, scaled to the length 1 together: a
    curve is then as uncertain at the ends of the range as in its middle.
    """
    grid = jnp.linspace(0.0, 1.0, candidates)
    wide = jnp.array(WIDTHS)[:, None]
    away = x[..., None, None] - jnp.broadcast_to(grid, (*(1,) * x.ndim, 1, candidates))
    height = -0.5 * jnp.square(away / wide.reshape((1,) * x.ndim + wide.shape))
    high = jax.nn.logsumexp(2 * height, axis=-1, keepdims=True) / 2
    return jnp.exp(height - high)


def _at_candidates(m: int) -> Float[Array, "m w m"]:
    """Bumps [candidate, width, bump] at the candidates themselves."""
    return _bumps(jnp.linspace(0.0, 1.0, m), m)


def fit_curves(sight: Sight, line: Float[Array, "d m"]) -> Fit:
    """Bayesian regression on bumps with unknown noise, for every width and height,
    around 0 and around `line`, the linear model's expectation at the candidates.
    """
    m = line.shape[1]
    ridge = 1 / jnp.array(HEIGHTS)
    rows = jnp.where(sight.used[..., None, None], _bumps(sight.place, m), 0.0)
    gram = jnp.einsum("niwa,niwb->iwab", rows, rows)
    full = gram[:, :, None] + (ridge[:, None, None] * jnp.eye(m)[None])[None, None]
    inverse, log_det = sweep_out(full)  # [variable, width, height, ...]

    rest = jnp.where(sight.used, sight.outcome[:, None], 0.0)
    bent = jnp.where(sight.used, sight.outcome[:, None] - sight.line, 0.0)
    left = jnp.stack([rest, bent])  # what a curve around 0 or the line explains
    aim = jnp.einsum("niwa,tni->tiwa", rows, left)
    weights = jnp.einsum("iwhab,tiwb->tiwha", inverse, aim)
    total = jnp.square(left).sum(axis=1)[:, :, None, None]
    misfit = total - jnp.einsum("tiwa,tiwha->tiwh", aim, weights)
    count = sight.used.sum(axis=0).astype(line.dtype)[None, :, None, None]
    shape = NOISE[0] + count / 2
    scale = NOISE[1] + jnp.maximum(misfit, 0.0) / 2
    prior = jnp.log(jnp.array([1 - LINE, LINE]))[:, None, None, None]
    evidence = prior + (m * jnp.log(ridge)[None, None] - log_det)[None] / 2
    evidence = evidence - shape * jnp.log(scale)
    around = jnp.stack([jnp.zeros_like(line), line])[:, :, None, None]
    return Fit(
        jax.nn.softmax(evidence, axis=(0, 2, 3)),
        around + jnp.einsum("mwa,tiwha->tiwhm", _at_candidates(m), weights),
        scale / (shape - 1),
        inverse,
        jnp.square(rows[:, :, 1]).sum(axis=0),
    )


def _average(fit: Fit, x: Float[Array, "t d w h m"]) -> Float[Array, "d m"]:
    return (fit.share[..., None] * x).sum(axis=(0, 2, 3))


def _variance(fit: Fit, way: Float[Array, "d m w m"]) -> Float[Array, "t d w h m"]:
    """Variance of each curve along weights of the bumps, one set a candidate."""
    spread = jnp.einsum("imwa,iwhab,imwb->iwhm", way, fit.inverse, way)
    return fit.noise[..., None] * jnp.maximum(spread, 0.0)[None]


def average_curve(fit: Fit) -> Curve:
    """Mean, deviation and character of each variable's curve."""
    d, m = fit.near.shape
    at = jnp.broadcast_to(_at_candidates(m)[None], (d, m, len(WIDTHS), m))
    mean = _average(fit, fit.mean)
    square = _average(fit, jnp.square(fit.mean) + _variance(fit, at))
    return Curve(
        mean,
        jnp.sqrt(jnp.maximum(square - jnp.square(mean), 1e-6)),
        fit.share[1].sum(axis=(1, 2)),
        -jnp.einsum("tiwh,w->i", fit.share, jnp.log(jnp.array(WIDTHS))),
    )


def _improvement(
    ahead: Float[Array, "t d w h m"], variance: Float[Array, "t d w h m"]
) -> Float[Array, "t d w h m"]:
    """E[max(G, 0)] of a normal gain G."""
    spread = jnp.sqrt(variance + 1e-9)
    unit = ahead / spread
    return spread * (unit * norm.cdf(unit) + norm.pdf(unit))


def expected_gains(fit: Fit, curve: Curve) -> Float[Array, "d m"]:
    """How much lower each candidate may be than what was tried: than the best of its
    own variable, with which its curve is correlated, and than the best of all.

    Where nothing was tried, doing nothing is what there is to beat, at 0.
    """
    d, m = fit.near.shape
    at = jnp.broadcast_to(_at_candidates(m)[None], (d, m, len(WIDTHS), m))
    known = jnp.where(fit.near > TRIED, curve.mean, jnp.inf)
    tried = jnp.isfinite(known).any(axis=1)
    own = jnp.argmin(known, axis=1)
    here = jax.vmap(lambda x, i: x[i])(at, own)  # [variable, width, bump]
    mean = lambda i: jnp.take_along_axis(fit.mean, i, axis=-1)
    ahead = mean(own[None, :, None, None, None]) - fit.mean
    over_own = _average(fit, _improvement(ahead, _variance(fit, at - here[:, None])))
    best = jnp.minimum(known.min(), 0.0)
    over_all = _average(fit, _improvement(best - fit.mean, _variance(fit, at)))
    return jnp.where(tried[:, None], jnp.minimum(over_own, over_all), over_all)


def read_curves(
    mean: Float[Array, "d m"], place: Float[Array, "n d"]
) -> Float[Array, "n d"]:
    """Curves at places between the candidates, and at the ends beyond them."""
    grid = jnp.linspace(0.0, 1.0, mean.shape[1])
    return jax.vmap(lambda x, y: jnp.interp(x, grid, y), (1, 0), 1)(place, mean)
