"""Bayesian optimization without causes: a Gaussian process for every variable, or for
every set of one or two variables.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.baselines.proposers import highest, observational, value_grid, weighted_mean
from acbo.environment import Action, ProblemSpec
from acbo.history import History
from acbo.scm import Intervention, set_variables

Kernel = Callable[[Array, Array], Array]  # of n and of m places -> [n, m]


def matern(amplitude: Float[Array, ""] | float, length: float) -> Kernel:
    """Matern covariance of smoothness 5/2; the amplitude is a variance."""

    def covariance(a: Float[Array, " n"], b: Float[Array, " m"]) -> Array:
        # Rasmussen and Williams (2006), equation 4.17.
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
    """Return mean and variance at points, given places, outcomes and a mask."""
    x, y, mask = seen
    # A row that does not count has variance 1 and no covariance: shapes stay fixed,
    # and it moves no prediction.
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
    """Return E[max(best - Y, 0)] for a normal Y: lower outcomes are better."""
    # Jones, Schonlau and Welch (1998), equation 15, for minimization.
    spread = jnp.sqrt(variance)
    z = (best - mean) / spread
    return spread * (z * norm.cdf(z) + norm.pdf(z))


def improve(
    posterior: Callable[[Int[Array, ""], Array], tuple[Array, Array]],
    spec: ProblemSpec,
    grid: int,
) -> Action:
    """Return the action of highest expected improvement, on a grid and then on a finer
    one around its best value; `posterior` gives outcomes of which lower ones are
    better.

    Outcomes are noisy, so improvement counts from the best mean, not the best row.
    """
    values = value_grid(spec, grid)
    mean, variance = jax.vmap(posterior)(jnp.arange(values.shape[0]), values)
    best = jnp.where(spec.allowed[:, None], mean, jnp.inf).min()
    coarse = highest(expected_improvement(mean, variance, best), values, spec)
    low, high = spec.low[coarse.variable], spec.high[coarse.variable]
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
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        outcome = spec.sign * history.values[:, spec.target]
        mean, noise, amplitude = prior_scales(outcome, history, spec)
        kernel = matern(amplitude, self.length)
        prior = lambda points: jnp.broadcast_to(mean, points.shape)

        def posterior(i: Int[Array, ""], values: Float[Array, " m"]):
            share = lambda v: (v - spec.low[i]) / widths(spec)[i]
            used = history.row_mask & history.intervened[:, i]
            seen = (share(history.values[:, i]), outcome, used)
            return condition(kernel, prior, seen, share(values), noise)

        return improve(posterior, spec, self.grid)


def prior_scales(
    outcome: Float[Array, " rows"], history: History, spec: ProblemSpec
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return what a process begins with: mean and variance of the outcome where nothing
    was set, and how far interventions have moved it so far, squared.
    """
    resting = observational(history)
    mean = weighted_mean(outcome, resting)
    noise = weighted_mean(jnp.square(outcome - mean), resting) + 1e-6
    acted = (history.intervened & spec.allowed[None, :]).any(axis=1) & history.row_mask
    moved = weighted_mean(jnp.square(outcome - mean), acted.astype(jnp.float32))
    return mean, noise, jnp.maximum(moved, noise)


def widths(spec: ProblemSpec) -> Float[Array, " d"]:
    """Return the width of each variable's range, never 0."""
    return jnp.maximum(spec.high - spec.low, 1e-6)


# A set of variables: two columns, the same one twice where it has one member.
Arm = Int[Array, "2"]


def all_arms(d: int) -> Int[np.ndarray, "arms 2"]:
    """Return every set of one or two of d variables."""
    return np.stack(np.triu_indices(d), axis=1).astype(np.int32)


def allowed_arms(spec: ProblemSpec) -> Bool[Array, " arms"]:
    """Return which of `all_arms` may be set."""
    first, second = all_arms(spec.mask.shape[0]).T
    return spec.allowed[first] & spec.allowed[second]


def set_arm(arm: Arm, shares: Float[Array, "2"], spec: ProblemSpec) -> Intervention:
    """Set the variables of a set to values at shares of the way through their ranges;
    one that is alone goes by the first share.
    """
    columns = jnp.arange(spec.mask.shape[0])
    first, second = columns == arm[0], columns == arm[1]
    share = jnp.where(first, shares[0], shares[1])
    value = spec.low + share * (spec.high - spec.low)
    return set_variables(first | second, jnp.clip(value, spec.low, spec.high))


class RandomPairs(eqx.Module):
    """Any one or two allowed variables, any values of their ranges."""

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Intervention:
        """Return the next intervention."""
        which, where = jax.random.split(key)
        logits = jnp.where(allowed_arms(spec), 0.0, -jnp.inf)
        arm = jax.random.categorical(which, logits)
        arms = jnp.asarray(all_arms(spec.mask.shape[0]))
        return set_arm(arms[arm], jax.random.uniform(where, (2,)), spec)


class GaussianPairs(eqx.Module):
    """Plain Bayesian optimization that ignores all structure, over sets of one or two
    variables: each set has a process over its ranges, as in `GaussianProcess`.
    """

    grid: int = eqx.field(static=True, default=17)
    length: float = eqx.field(static=True, default=0.4)  # in widths of the ranges

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Intervention:
        """Return the intervention of highest expected improvement, on a grid and then
        on a finer one around the best of it.
        """
        outcome = spec.sign * history.values[:, spec.target]
        mean, noise, amplitude = prior_scales(outcome, history, spec)
        along, across = matern(amplitude, self.length), matern(1.0, self.length)
        kernel = lambda a, b: along(a[:, 0], b[:, 0]) * across(a[:, 1], b[:, 1])
        prior = lambda points: jnp.broadcast_to(mean, points.shape[:1])
        shares = (history.values - spec.low[None]) / widths(spec)[None]

        def posterior(arm: Arm, points: Float[Array, "m 2"]):
            columns = jnp.arange(spec.mask.shape[0])
            members = (columns == arm[0]) | (columns == arm[1])
            used = (history.intervened == members[None]).all(axis=1)
            seen = (shares[:, arm], outcome, used & history.row_mask)
            # Of one variable alone, only the first share is set.
            alone = jnp.broadcast_to(points[:, :1], points.shape)
            points = jnp.where(arm[0] == arm[1], alone, points)
            return condition(kernel, prior, seen, points, noise)

        arms, allowed = jnp.asarray(all_arms(shares.shape[1])), allowed_arms(spec)
        ends = jnp.linspace(0.0, 1.0, self.grid)
        points = _product(ends, ends)
        found, spread = jax.vmap(lambda arm: posterior(arm, points))(arms)
        best = jnp.where(allowed[:, None], found, jnp.inf).min()
        gain = expected_improvement(found, spread, best)
        gain = jnp.where(allowed[:, None], gain, -jnp.inf)
        chosen, place = jnp.divmod(jnp.argmax(gain), gain.shape[1])
        near = jnp.linspace(-1.0, 1.0, self.grid) / (self.grid - 1)
        middle = points[place][None]
        finer = jnp.clip(middle + _product(near, near), 0.0, 1.0)
        finer = jnp.concatenate([finer, middle])
        gain = expected_improvement(*posterior(arms[chosen], finer), best)
        return set_arm(arms[chosen], finer[jnp.argmax(gain)], spec)


def _product(a: Float[Array, " n"], b: Float[Array, " m"]) -> Float[Array, "nm 2"]:
    first, second = jnp.meshgrid(a, b, indexing="ij")
    return jnp.stack([first.ravel(), second.ravel()], axis=1)
