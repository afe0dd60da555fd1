"""Proposers without a model of their own: chance, the truth, a given posterior."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.baselines.choices import highest, uniform_action, value_grid, weighted_mean
from acbo.environment import Action, Setting
from acbo.history import History
from acbo.optimum import DRAWS, GRID, best_on_noise, common_noise

Predict = Callable[..., tuple[Float[Array, " d"], Any]]


class Random(eqx.Module):
    """Any allowed variable, any value of its range."""

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        return uniform_action(key, setting)


class Oracle(eqx.Module):
    """The truly best single intervention, from the model itself."""

    grid: int = eqx.field(static=True, default=GRID)
    draws: int = eqx.field(static=True, default=DRAWS)
    clip_to_range: bool = eqx.field(static=True, default=True)

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        best = best_on_noise(
            truth,
            common_noise(key, truth, self.draws),
            setting.sign,
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
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        d = setting.mask.shape[0]
        ends = value_grid(setting, 2)
        mechanism = lambda row: truth.features.of(setting.target, row)
        alone = lambda i, end: mechanism(jnp.where(jnp.arange(d) == i, end, 0.0))
        effect = jax.vmap(lambda i: jax.vmap(lambda end: alone(i, end))(ends[i]))(
            jnp.arange(d)
        )
        gain = -setting.sign * (effect - mechanism(jnp.zeros(d)))
        parents = truth.adjacency[:, setting.target]
        chosen = highest(jnp.where(parents[:, None], gain, -jnp.inf), ends, setting)
        other = uniform_action(key, setting)
        pick = lambda a, b: jnp.where((parents & setting.allowed).any(), a, b)
        return jax.tree.map(pick, chosen, other)


class Greedy(eqx.Module):
    """The likeliest parent by a given posterior, at the end of its range to which the
    regression slope of the target on it points.
    """

    posterior: Predict

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Action:
        """The next intervention."""
        probs = self.posterior(
            history.values,
            history.intervened,
            history.row_mask,
            setting.mask,
            setting.target,
        )[0]
        likeliest = jnp.argmax(jnp.where(setting.allowed, probs, -jnp.inf))
        slope = _slope(history, setting, likeliest)
        rising = setting.sign * slope > 0
        value = jnp.where(rising, setting.low[likeliest], setting.high[likeliest])
        return Action(likeliest, value)


def _slope(history: History, setting: Setting, variable: Array) -> Float[Array, ""]:
    """Least-squares slope of the target on one variable."""
    free = history.row_mask & ~history.intervened[:, setting.target]
    weight = free.astype(jnp.float32)
    x, y = history.values[:, variable], history.values[:, setting.target]
    x = x - weighted_mean(x, weight)
    return weighted_mean(x * y, weight) / jnp.maximum(
        weighted_mean(x * x, weight), 1e-9
    )
