"""The experimenter's side of an episode: what is known, what may be done, what follows,
and the best that one intervention can do.

An episode starts from rows already seen; each of its steps sets one variable, or
several, sees one row, and adds it to the history. For the optimum everything compared
is averaged over the same noise: differences are effects, not luck.
"""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.history import History, append, start_history
from acbo.scm import (
    SCM,
    AbstractSCM,
    Intervention,
    no_intervention,
    sample_each,
    set_variable,
)
from acbo.types import lower_is_better
from jaxrig.keys import batch_keys

GRID = 33  # values of each variable, both ends of its range among them
DRAWS = 512


class ProblemSpec(eqx.Module):
    """What an experimenter knows beside the data: target, ranges and direction."""

    target: Int[Array, "*batch"]
    low: Float[Array, "*batch d"]
    high: Float[Array, "*batch d"]
    mask: Bool[Array, "*batch d"]
    allowed: Bool[Array, "*batch d"]  # which variables may be set
    sign: Float[Array, "*batch"]  # 1: lower outcomes are better; -1: higher ones


class Action(eqx.Module):
    """do(X_variable = value)."""

    variable: Int[Array, "*batch"]
    value: Float[Array, "*batch"]


@runtime_checkable
class Proposer(Protocol):
    """Chooses the next experiment; only an oracle may look at `truth`.

    What sets more than one variable gives an `Intervention`.
    """

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action | Intervention:
        """Return the next intervention; pure, so that it can be compiled and mapped."""
        ...


class Record(eqx.Module):
    """What an episode did: its actions, the rows they led to, and all that was seen."""

    action: Action | Intervention
    rows: Float[Array, "*batch steps d"]
    history: History


def problem_spec(scm: AbstractSCM, direction: str = "MINIMIZE") -> ProblemSpec:
    """Return what may be known of a model without its mechanisms."""
    allowed = scm.allowed
    return ProblemSpec(
        scm.target,
        # What cannot be set may have no range at all; keep the numbers finite.
        jnp.where(jnp.isfinite(scm.low), scm.low, 0.0),
        jnp.where(jnp.isfinite(scm.high), scm.high, 0.0),
        scm.mask,
        allowed,
        jnp.asarray(lower_is_better(direction)),
    )


def first_history(
    key: PRNGKeyArray,
    scm: AbstractSCM,
    observational: int,
    interventional: int,
    capacity: int,
    clip_to_range: bool = False,
) -> History:
    """Return observational rows, then rows with one random variable set at random."""
    draw, act = jax.random.split(key)
    nothing = no_intervention(scm.size)
    rows = observational + interventional
    which, value = jax.random.split(act)
    spec = problem_spec(scm)
    logits = jnp.where(spec.allowed, 0.0, -jnp.inf)
    chosen = jax.random.categorical(which, logits, shape=(rows,))
    share = jax.random.uniform(value, (rows,))
    values = spec.low[chosen] + share * (spec.high - spec.low)[chosen]
    done = jax.vmap(lambda i, v: set_variable(i, v, scm.size))(chosen, values)
    seen = jnp.arange(rows) < observational
    pick = lambda a, b: jnp.where(seen[:, None], a[None], b)
    interventions = jax.tree.map(pick, nothing, done)
    values = sample_each(draw, scm, interventions, clip_to_range)
    return start_history(values, interventions.mask, capacity)


def as_intervention(action: Action | Intervention, d: int) -> Intervention:
    """Return which of d variables one action sets, and to what."""
    if isinstance(action, Intervention):
        return action
    return set_variable(action.variable, action.value, d)


def perform(
    key: PRNGKeyArray,
    scm: AbstractSCM,
    history: History,
    action: Action | Intervention,
    clip_to_range: bool = True,
) -> tuple[History, Float[Array, " d"]]:
    """Do the experiment once: one row, added to the history."""
    intervention = as_intervention(action, scm.size)
    row = scm.respond(scm.draw(key), intervention, clip_to_range)
    return append(history, row, intervention.mask), row


def run_episode(
    key: PRNGKeyArray,
    scm: AbstractSCM,
    proposer: Proposer,
    history: History,
    steps: int,
    direction: str = "MINIMIZE",
    clip_to_range: bool = True,
) -> Record:
    """Make `steps` interventions in a row, each chosen from all rows before it."""
    spec = problem_spec(scm, direction)

    def go(history: History, index: Int[Array, ""]):
        choose, draw = jax.random.split(jax.random.fold_in(key, index))
        action = proposer.propose(choose, history, spec, scm)
        history, row = perform(draw, scm, history, action, clip_to_range)
        return history, (action, row)

    history, (actions, rows) = jax.lax.scan(go, history, jnp.arange(steps))
    return Record(actions, rows, history)


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
