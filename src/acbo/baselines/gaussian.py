"""Bayesian optimization without causes: a Gaussian process for every variable."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.baselines.choices import highest, observational, value_grid, weighted_mean
from acbo.environment import Action, Setting
from acbo.history import History

Kernel = Callable[[Array, Array], Array]  # of n and of m places -> [n, m]


def matern(amplitude: Float[Array, ""] | float, length: float) -> Kernel:
    """Matern covariance of smoothness 5/2; the amplitude is a variance."""

    def covariance(a: Float[Array, " n"], b: Float[Array, " m"]) -> Array:
        distance = jnp.abs(a[:, None] - b[None, :]) * (5.0**0.5 / length)
        shape = 1.0 + distance + jnp.square(distance) / 3.0
        return amplitude * shape * jnp.exp(-distance)

    return covariance


def condition(
    kernel: Kernel,
    prior: Callable[[Array], Array],
    seen: tuple[Float[Array, "n ..."], Float[Array, " n"], Bool[Array, " n"]],
    points: Float[Array, "m ..."],
    noise: Float[Array, ""],
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Mean and variance at points, given places, outcomes and which of them count."""
    x, y, mask = seen
    both = mask[:, None] & mask[None, :]
    covariance = jnp.where(both, kernel(x, x), 0.0)
    covariance = covariance + jnp.diag(jnp.where(mask, noise, 1.0))
    factor = cho_factor(covariance)
    cross = jnp.where(mask[None, :], kernel(points, x), 0.0)
    residual = jnp.where(mask, y - prior(x), 0.0)
    mean = prior(points) + cross @ cho_solve(factor, residual)
    own = jnp.diagonal(kernel(points, points))
    variance = own - (cross * cho_solve(factor, cross.T).T).sum(axis=1)
    return mean, jnp.maximum(variance, 1e-9)


def expected_improvement(
    mean: Float[Array, "*n"], variance: Float[Array, "*n"], best: Float[Array, ""]
) -> Float[Array, "*n"]:
    """E[max(best - Y, 0)] for a normal Y: lower outcomes are better."""
    spread = jnp.sqrt(variance)
    z = (best - mean) / spread
    return spread * (z * norm.cdf(z) + norm.pdf(z))


def improve(
    posterior: Callable[[Int[Array, ""], Array], tuple[Array, Array]],
    setting: Setting,
    grid: int,
) -> Action:
    """The action of highest expected improvement, on a grid and then on a finer one
    around its best value; `posterior` gives outcomes of which lower ones are better.

    Outcomes are noisy, so improvement counts from the best mean, not the best row.
    """
    values = value_grid(setting, grid)
    mean, variance = jax.vmap(posterior)(jnp.arange(values.shape[0]), values)
    best = jnp.where(setting.allowed[:, None], mean, jnp.inf).min()
    coarse = highest(expected_improvement(mean, variance, best), values, setting)
    low, high = setting.low[coarse.variable], setting.high[coarse.variable]
    step = (high - low) / (grid - 1)
    near = coarse.value + step * jnp.linspace(-1.0, 1.0, grid)
    fine = jnp.append(jnp.clip(near, low, high), coarse.value)
    score = expected_improvement(*posterior(coarse.variable, fine), best)
    return Action(coarse.variable, fine[jnp.argmax(score)])


class GaussianProcess(eqx.Module):
    """Plain Bayesian optimization that ignores all structure.

    Each variable has a process of its own over its range, seen at the rows in which it
    was set. The prior is the observational mean; the noise is the observational
    variance, and the amplitude how far interventions have moved the target so far.
    """

    grid: int = eqx.field(static=True, default=33)
    length: float = eqx.field(static=True, default=0.4)  # in widths of the range

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        outcome = setting.sign * history.values[:, setting.target]
        mean, noise, amplitude = prior_scales(outcome, history, setting)
        kernel = matern(amplitude, self.length)
        prior = lambda points: jnp.broadcast_to(mean, points.shape)

        def posterior(i: Int[Array, ""], values: Float[Array, " m"]):
            share = lambda v: (v - setting.low[i]) / widths(setting)[i]
            used = history.row_mask & history.intervened[:, i]
            seen = (share(history.values[:, i]), outcome, used)
            return condition(kernel, prior, seen, share(values), noise)

        return improve(posterior, setting, self.grid)


def prior_scales(
    outcome: Float[Array, " rows"], history: History, setting: Setting
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """What a process begins with: mean and variance of the outcome where nothing was
    set, and how far interventions have moved it so far, squared.
    """
    resting = observational(history)
    mean = weighted_mean(outcome, resting)
    noise = weighted_mean(jnp.square(outcome - mean), resting) + 1e-6
    acted = history.row_mask & setting_rows(history, setting)
    moved = weighted_mean(jnp.square(outcome - mean), acted.astype(jnp.float32))
    return mean, noise, jnp.maximum(moved, noise)


def widths(setting: Setting) -> Float[Array, " d"]:
    """Width of each variable's range, never 0."""
    return jnp.maximum(setting.high - setting.low, 1e-6)


def setting_rows(history: History, setting: Setting) -> Bool[Array, " rows"]:
    """Rows in which something that may be set was set."""
    return (history.intervened & setting.allowed[None, :]).any(axis=1)
