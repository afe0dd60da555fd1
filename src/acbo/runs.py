"""Interventions on a named problem, and what is true of them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from acbo.environment import Record, first_history, run_episode
from acbo.problems import Problem
from jaxrig.keys import named_key


@dataclass(frozen=True, eq=False)
class Run:
    """The interventions made, one entry for each step; `record` has all rows."""

    problem: Problem
    variables: tuple[str, ...]
    values: Float[np.ndarray, " steps"]
    outcomes: Float[np.ndarray, " steps"]  # as seen, with noise
    expected: Float[np.ndarray, " steps"]  # true means
    shares: Float[np.ndarray, " steps"]  # of the way to the optimum, best so far
    record: Record

    @property
    def best(self) -> int:
        """The step whose true mean is the best."""
        return int(np.argmax(self.shares))


def run_problem(
    problem: Problem, proposer: Any, *, steps: int, rows: int, seed: int = 0
) -> Run:
    """Give a proposer `rows` observational rows, then `steps` single interventions.

    A share of 1 is the optimum over single variables, 0 no better than doing nothing,
    by true expected outcomes. Nothing is clipped, as in the problem's equations.
    """
    scm = problem.scm
    play = _compiled_player(problem, rows, steps)
    record = jax.device_get(play(jax.random.key(seed), proposer))
    chosen = tuple(scm.names[int(i)] for i in record.action.variable)
    values = np.asarray(record.action.value, np.float64)
    pairs = zip(chosen, values.tolist(), strict=True)
    expected = np.array([problem.expected_outcome({n: v}) for n, v in pairs])
    shares = shares_of_the_way(problem, expected)
    seen = np.asarray(record.rows[:, scm.names.index(problem.target)], np.float64)
    return Run(problem, chosen, values, seen, expected, shares, record)


def player(
    problem: Problem, rows: int, steps: int
) -> Callable[[PRNGKeyArray, Any], Record]:
    """A pure function of a key and a proposer: one run, nothing clipped."""
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
    """Compiled once for all seeds of a problem."""
    return jax.jit(player(problem, rows, steps))


def shares_of_the_way(
    problem: Problem, expected: Float[np.ndarray, "*runs steps"]
) -> Float[np.ndarray, "*runs steps"]:
    """How far the best intervention so far leads from doing nothing to the optimum
    over single variables; the sign of the direction cancels, so higher is better.
    """
    rest, best = problem.observational_mean, problem.optimum.outcome
    return np.maximum.accumulate((rest - expected) / (rest - best), axis=-1)


def true_edges(problem: Problem) -> Bool[np.ndarray, "d d"]:
    """Direct causes of each variable in the data, hidden ones left out."""
    names, edges = problem.scm.names, problem.scm.edges
    return np.array([[(a, b) in edges for b in names] for a in names])
