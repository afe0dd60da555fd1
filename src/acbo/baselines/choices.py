"""Turning scores of variables and values into one allowed action."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.environment import Action, Setting
from acbo.history import History


def uniform_action(key: PRNGKeyArray, setting: Setting) -> Action:
    """Any allowed variable, any value of its range."""
    which, where = jax.random.split(key)
    logits = jnp.where(setting.allowed, 0.0, -jnp.inf)
    variable = jax.random.categorical(which, logits)
    share = jax.random.uniform(where)
    return Action(variable, value_at(setting, share)[variable])


def value_at(setting: Setting, share: Float[Array, ""]) -> Float[Array, " d"]:
    """The value of each variable at a share of the way through its range."""
    value = setting.low + share * (setting.high - setting.low)
    return jnp.clip(value, setting.low, setting.high)


def value_grid(setting: Setting, count: int) -> Float[Array, "d count"]:
    """Evenly spaced values of each variable, both ends of its range among them."""
    shares = jnp.linspace(0.0, 1.0, count)
    return jax.vmap(lambda share: value_at(setting, share), out_axes=1)(shares)


def highest(
    score: Float[Array, "d count"], values: Float[Array, "d count"], setting: Setting
) -> Action:
    """The allowed variable and value of the highest score."""
    score = jnp.where(setting.allowed[:, None], score, -jnp.inf)
    variable, place = jnp.divmod(jnp.argmax(score), score.shape[1])
    return Action(variable, values[variable, place])


def best_end(
    intercept: Float[Array, " d"], slope: Float[Array, " d"], setting: Setting
) -> Action:
    """The best action where E[Y | do(X_i = v)] = intercept_i + slope_i v."""
    ends = value_grid(setting, 2)
    outcome = intercept[:, None] + slope[:, None] * ends
    return highest(-setting.sign * outcome, ends, setting)


def weighted_mean(values: Float[Array, " n"], weight: Float[Array, " n"]) -> Array:
    """Mean over rows by weight; 0 where all weights are 0."""
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1e-9)


def observational(history: History) -> Float[Array, " rows"]:
    """Weight 1 for filled rows in which nothing was set; for all filled rows where
    there is no such row.
    """
    seen = history.row_mask & ~history.intervened.any(axis=1)
    return jnp.where(seen.any(), seen, history.row_mask).astype(jnp.float32)
