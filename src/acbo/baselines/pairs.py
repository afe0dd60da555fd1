"""Interventions on one variable or on two at once, by chance and by processes."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.baselines.gaussian import (
    condition,
    expected_improvement,
    matern,
    prior_scales,
    widths,
)
from acbo.environment import Setting
from acbo.history import History
from acbo.interventions import Intervention, set_variables

# A set of variables: two columns, the same one twice where it has one member.
Arm = Int[Array, "2"]


def all_arms(d: int) -> Int[np.ndarray, "arms 2"]:
    """Every set of one or two of d variables."""
    return np.stack(np.triu_indices(d), axis=1).astype(np.int32)


def allowed_arms(setting: Setting) -> Bool[Array, " arms"]:
    """Which of `all_arms` may be set."""
    first, second = all_arms(setting.mask.shape[0]).T
    return setting.allowed[first] & setting.allowed[second]


def set_arm(arm: Arm, shares: Float[Array, "2"], setting: Setting) -> Intervention:
    """Set the variables of a set to values at shares of the way through their ranges;
    one that is alone goes by the first share.
    """
    columns = jnp.arange(setting.mask.shape[0])
    first, second = columns == arm[0], columns == arm[1]
    share = jnp.where(first, shares[0], shares[1])
    value = setting.low + share * (setting.high - setting.low)
    return set_variables(first | second, jnp.clip(value, setting.low, setting.high))


class RandomPairs(eqx.Module):
    """Any one or two allowed variables, any values of their ranges."""

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Intervention:
        """The next intervention."""
        which, where = jax.random.split(key)
        logits = jnp.where(allowed_arms(setting), 0.0, -jnp.inf)
        arm = jax.random.categorical(which, logits)
        arms = jnp.asarray(all_arms(setting.mask.shape[0]))
        return set_arm(arms[arm], jax.random.uniform(where, (2,)), setting)


class GaussianPairs(eqx.Module):
    """Plain Bayesian optimization that ignores all structure, over sets of one or two
    variables: each set has a process over its ranges, as in `GaussianProcess`.
    """

    grid: int = eqx.field(static=True, default=17)
    length: float = eqx.field(static=True, default=0.4)  # in widths of the ranges

    def propose(
        self, key: PRNGKeyArray, history: History, setting: Setting, truth: Any
    ) -> Intervention:
        """The intervention of highest expected improvement, on a grid and then on a
        finer one around the best of it.
        """
        outcome = setting.sign * history.values[:, setting.target]
        mean, noise, amplitude = prior_scales(outcome, history, setting)
        along, across = matern(amplitude, self.length), matern(1.0, self.length)
        kernel = lambda a, b: along(a[:, 0], b[:, 0]) * across(a[:, 1], b[:, 1])
        prior = lambda points: jnp.broadcast_to(mean, points.shape[:1])
        shares = (history.values - setting.low[None]) / widths(setting)[None]

        def posterior(arm: Arm, points: Float[Array, "m 2"]):
            columns = jnp.arange(setting.mask.shape[0])
            members = (columns == arm[0]) | (columns == arm[1])
            used = (history.intervened == members[None]).all(axis=1)
            seen = (shares[:, arm], outcome, used & history.row_mask)
            return condition(kernel, prior, seen, _alone(arm, points), noise)

        arms, allowed = jnp.asarray(all_arms(shares.shape[1])), allowed_arms(setting)
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
        return set_arm(arms[chosen], finer[jnp.argmax(gain)], setting)


def _alone(arm: Arm, points: Float[Array, "m 2"]) -> Float[Array, "m 2"]:
    """Points as they are set: of one variable alone, by the first share."""
    same = jnp.stack([points[:, 0], points[:, 0]], axis=1)
    return jnp.where(arm[0] == arm[1], same, points)


def _product(a: Float[Array, " n"], b: Float[Array, " m"]) -> Float[Array, "nm 2"]:
    first, second = jnp.meshgrid(a, b, indexing="ij")
    return jnp.stack([first.ravel(), second.ravel()], axis=1)
