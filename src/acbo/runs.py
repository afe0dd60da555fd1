"""Interventions on a named problem, and what is true of them."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from acbo.environment import Action, Record, first_history, run_episode
from acbo.problems import Problem
from acbo.scm import Intervention
from jaxrig.compile_guard import compile_once
from jaxrig.keys import named_key


@dataclass(frozen=True, eq=False)
class Run:
    """The interventions made, one entry for each step; `record` has all rows."""

    problem: Problem
    interventions: tuple[dict[str, float], ...]  # what was set, and to what
    outcomes: Float[np.ndarray, " steps"]  # as seen, with noise
    expected: Float[np.ndarray, " steps"]  # true means
    shares: Float[np.ndarray, " steps"]  # of the way to the optimum, best so far
    record: Record

    @property
    def best(self) -> int:
        """Return the step whose true mean is the best."""
        return int(np.argmax(self.shares))


def run_problem(
    problem: Problem, proposer: Any, *, steps: int, rows: int, seed: int = 0
) -> Run:
    """Give a proposer `rows` observational rows, then `steps` interventions.

    A share of 1 is the optimum over single variables, 0 no better than doing nothing,
    by true expected outcomes; pairs of variables may lead farther. Nothing is clipped,
    as in the problem's equations.
    """
    scm = problem.scm
    play = _compiled_player(problem, rows, steps)
    record = jax.device_get(play(jax.random.key(seed), proposer))
    made = tuple(interventions_of(record.action, scm.names))
    expected = np.array([problem.expected_outcome(each) for each in made])
    shares = shares_of_the_way(problem, expected)
    seen = np.asarray(record.rows[:, scm.names.index(problem.target)], np.float64)
    return Run(problem, made, seen, expected, shares, record)


def interventions_of(
    action: Action | Intervention, names: Sequence[str]
) -> list[dict[str, float]]:
    """Return what each of a row of actions sets by name, or each of a table of them."""
    if isinstance(action, Intervention):
        width = len(names)
        masks = np.reshape(action.mask, (-1, width))
        values = np.reshape(action.values, (-1, width)).tolist()
        picked = [np.flatnonzero(mask).tolist() for mask in masks]
        rows = zip(picked, values, strict=True)
        return [{names[i]: row[i] for i in chosen} for chosen, row in rows]
    pairs = zip(np.ravel(action.variable), np.ravel(action.value), strict=True)
    return [{names[int(i)]: float(value)} for i, value in pairs]


def player(
    problem: Problem, rows: int, steps: int
) -> Callable[[PRNGKeyArray, Any], Record]:
    """Return a pure function of a key and a proposer: one run, nothing clipped."""
    scm = problem.scm

    def play(key: PRNGKeyArray, proposer: Any) -> Record:
        first = first_history(named_key(key, "rows"), scm, rows, 0, rows + steps)
        act = named_key(key, "episode")
        return run_episode(act, scm, proposer, first, steps, problem.direction, False)

    return play


@functools.lru_cache(maxsize=8)
def _compiled_player(
    problem: Problem, rows: int, steps: int
) -> Callable[[PRNGKeyArray, Any], Record]:
    """Compile a run of a problem once per kind of proposer, for all seeds."""
    return compile_once(player(problem, rows, steps), max_traces=32)


def shares_of_the_way(
    problem: Problem, expected: Float[np.ndarray, "*runs steps"]
) -> Float[np.ndarray, "*runs steps"]:
    """Return how far the best intervention so far leads from doing nothing to the
    optimum over single variables; the sign of the direction cancels, so higher is
    better.
    """
    # By expected outcomes: the best of noisy ones would be the luckiest.
    rest, best = problem.observational_mean, problem.optimum.outcome
    return np.maximum.accumulate((rest - expected) / (rest - best), axis=-1)


def true_edges(problem: Problem) -> Bool[np.ndarray, "d d"]:
    """Return the true direct edges between the observed variables."""
    names, edges = problem.scm.names, problem.scm.edges
    return np.array([[(a, b) in edges for b in names] for a in names])
