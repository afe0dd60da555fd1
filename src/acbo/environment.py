"""The experimenter's side of an episode: what is known, what may be done, what follows.

An episode starts from rows already seen; each of its steps sets one variable, or
several, sees one row, and adds it to the history.
"""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.history import History, append, start_history
from acbo.scm import (
    AbstractSCM,
    Intervention,
    no_intervention,
    sample_each,
    set_variable,
)
from acbo.types import lower_is_better


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
