"""Proposers by chance, the truth and a given posterior; and what proposers share."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.environment import (
    DRAWS,
    GRID,
    Action,
    ProblemSpec,
    best_on_noise,
    common_noise,
)
from acbo.history import History


def uniform_action(key: PRNGKeyArray, spec: ProblemSpec) -> Action:
    """Draw an allowed variable and a value of its range, both uniformly."""
    which, where = jax.random.split(key)
    logits = jnp.where(spec.allowed, 0.0, -jnp.inf)
    variable = jax.random.categorical(which, logits)
    share = jax.random.uniform(where)
    return Action(variable, value_at(spec, share)[variable])


def value_at(spec: ProblemSpec, share: Float[Array, ""]) -> Float[Array, " d"]:
    """Return the value of each variable at a share of the way through its range."""
    value = spec.low + share * (spec.high - spec.low)
    return jnp.clip(value, spec.low, spec.high)


def value_grid(spec: ProblemSpec, count: int) -> Float[Array, "d count"]:
    """Return evenly spaced values of each variable, from end to end of its range."""
    shares = jnp.linspace(0.0, 1.0, count)
    return jax.vmap(lambda share: value_at(spec, share), out_axes=1)(shares)


def highest(
    score: Float[Array, "d count"], values: Float[Array, "d count"], spec: ProblemSpec
) -> Action:
    """Return the allowed variable and value of the highest score."""
    score = jnp.where(spec.allowed[:, None], score, -jnp.inf)
    variable, place = jnp.divmod(jnp.argmax(score), score.shape[1])
    return Action(variable, values[variable, place])


def best_end(
    intercept: Float[Array, " d"], slope: Float[Array, " d"], spec: ProblemSpec
) -> Action:
    """Return the best action where E[Y | do(X_i = v)] = intercept_i + slope_i v."""
    ends = value_grid(spec, 2)
    outcome = intercept[:, None] + slope[:, None] * ends
    return highest(-spec.sign * outcome, ends, spec)


def weighted_mean(values: Float[Array, " n"], weight: Float[Array, " n"]) -> Array:
    """Return the weighted mean over rows; 0 where all weights are 0."""
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1e-9)


def observational(history: History) -> Float[Array, " rows"]:
    """Return weight 1 for filled rows in which nothing was set; for all filled rows
    where there is no such row.
    """
    seen = history.row_mask & ~history.intervened.any(axis=1)
    return jnp.where(seen.any(), seen, history.row_mask).astype(jnp.float32)


Predict = Callable[..., tuple[Float[Array, " d"], Any]]


class Random(eqx.Module):
    """Any allowed variable, any value of its range."""

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        return uniform_action(key, spec)


class Oracle(eqx.Module):
    """The truly best single intervention, from the model itself."""

    grid: int = eqx.field(static=True, default=GRID)
    draws: int = eqx.field(static=True, default=DRAWS)
    clip_to_range: bool = eqx.field(static=True, default=True)

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        best = best_on_noise(
            truth,
            common_noise(key, truth, self.draws),
            spec.sign,
            grid=self.grid,
            clip_to_range=self.clip_to_range,
        )
        return Action(best.variable, best.setting)


class ParentOracle(eqx.Module):
    """The true parent that moves the target most, directly, at one end of its range.

    An ancestor that acts through several parents can beat it. Parametric models only;
    a target without parents gets any allowed variable.
    """

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        d = spec.mask.shape[0]
        ends = value_grid(spec, 2)
        mechanism = lambda row: truth.features.of(spec.target, row)
        alone = lambda i, end: mechanism(jnp.where(jnp.arange(d) == i, end, 0.0))
        effect = jax.vmap(lambda i: jax.vmap(lambda end: alone(i, end))(ends[i]))(
            jnp.arange(d)
        )
        gain = -spec.sign * (effect - mechanism(jnp.zeros(d)))
        parents = truth.adjacency[:, spec.target]
        chosen = highest(jnp.where(parents[:, None], gain, -jnp.inf), ends, spec)
        other = uniform_action(key, spec)
        pick = lambda a, b: jnp.where((parents & spec.allowed).any(), a, b)
        return jax.tree.map(pick, chosen, other)


class Greedy(eqx.Module):
    """The likeliest parent by a given posterior, at the end of its range to which the
    regression slope of the target on it points.
    """

    posterior: Predict

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        probs = self.posterior(*history.rows, spec.mask, spec.target)[0]
        likeliest = jnp.argmax(jnp.where(spec.allowed, probs, -jnp.inf))
        slope = _slope(history, spec, likeliest)
        rising = spec.sign * slope > 0
        value = jnp.where(rising, spec.low[likeliest], spec.high[likeliest])
        return Action(likeliest, value)


def _slope(history: History, spec: ProblemSpec, variable: Array) -> Float[Array, ""]:
    """Return the least-squares slope of the target on one variable."""
    free = history.row_mask & ~history.intervened[:, spec.target]
    weight = free.astype(jnp.float32)
    x, y = history.values[:, variable], history.values[:, spec.target]
    x = x - weighted_mean(x, weight)
    return weighted_mean(x * y, weight) / jnp.maximum(
        weighted_mean(x * x, weight), 1e-9
    )
