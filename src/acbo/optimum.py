"""The best that one intervention can do: E[Y | do(X_i = v)] over variables and values.

Everything compared is averaged over the same noise: differences are effects, not luck.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acbo.scm import SCM, AbstractSCM, Intervention, set_variable
from jaxrig.keys import batch_keys

GRID = 33  # values of each variable, both ends of its range among them
DRAWS = 512


class Best(eqx.Module):
    """The best single intervention: what it gives, on which variable, set to what."""

    value: Float[Array, "*batch"]
    variable: Int[Array, "*batch"]
    setting: Float[Array, "*batch"]


def common_noise(key: PRNGKeyArray, scm: AbstractSCM, draws: int = DRAWS) -> Any:
    """Return noise of `draws` rows; the parametric model's is antithetic (mirrored
    around zero), which makes the mean exact wherever the outcome is linear in it.
    """
    if not isinstance(scm, SCM):
        return jax.vmap(scm.draw)(batch_keys(key, draws))
    if draws % 2:
        raise ValueError(f"draws={draws} is odd: antithetic samples come in pairs")
    # All kinds of noise are symmetric around 0, so the mirrored half is as likely.
    half = jax.vmap(scm.draw)(batch_keys(key, draws // 2))
    return jnp.concatenate([half, -half])


def mean_under(
    scm: AbstractSCM, noise: Any, done: Intervention, clip_to_range: bool = True
) -> Float[Array, ""]:
    """Return the mean of the target over rows of given noise under any intervention."""
    respond = lambda each: scm.respond(each, done, clip_to_range)[scm.target]
    return jax.vmap(respond)(noise).mean()


def best_on_noise(
    scm: AbstractSCM,
    noise: Any,
    sign: Float[Array, ""],
    *,
    grid: int = GRID,
    clip_to_range: bool = True,
) -> Best:
    """Return the best intervention on one variable, over a grid of values with both
    ends of the range and a finer grid around the best of them.

    `sign` is 1 if lower outcomes are better, else -1; the noise is of `common_noise`.
    """
    if grid < 2:
        raise ValueError(f"grid={grid}: the two ends of a range need at least 2")
    share = jnp.linspace(0.0, 1.0, grid)
    bounded = jnp.isfinite(scm.low) & jnp.isfinite(scm.high)
    allowed = scm.mask & bounded & (jnp.arange(scm.size) != scm.target)

    def at(variable: Int[Array, ""], shares: Float[Array, " grid"]):
        low, high = scm.low[variable], scm.high[variable]
        values = jnp.clip(low + shares * (high - low), low, high)
        done = lambda v: set_variable(variable, v, scm.size)
        each = lambda v: mean_under(scm, noise, done(v), clip_to_range)
        scores = sign * jax.vmap(each)(values)
        place = jnp.argmin(scores)
        return scores[place], values[place], shares[place]

    # One variable at a time: all at once would hold d times the rows in memory.
    places = jnp.arange(scm.size)
    scores, _, shares = jax.lax.map(lambda i: at(i, share), places)
    variable = jnp.argmin(jnp.where(allowed, scores, jnp.inf))
    nearby = shares[variable] + (2.0 * share - 1.0) / (grid - 1)
    fine = jnp.append(jnp.clip(nearby, 0.0, 1.0), shares[variable])
    score, value, _ = at(variable, fine)
    return Best(sign * score, variable, value)
