"""Interventions on a named problem, and what is true of them."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

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

    def play(key: Any, proposer: Any) -> Record:
        first = first_history(named_key(key, "rows"), scm, rows, 0, rows + steps)
        act = named_key(key, "episode")
        return run_episode(act, scm, proposer, first, steps, problem.direction, False)

    record = jax.device_get(jax.jit(play)(jax.random.key(seed), proposer))
    chosen = tuple(scm.names[int(i)] for i in record.action.variable)
    values = np.asarray(record.action.value, np.float64)
    pairs = zip(chosen, values.tolist(), strict=True)
    expected = np.array([problem.expected_outcome({n: v}) for n, v in pairs])
    rest, best = problem.observational_mean, problem.optimum.outcome
    shares = np.maximum.accumulate((rest - expected) / (rest - best))
    seen = np.asarray(record.rows[:, scm.names.index(problem.target)], np.float64)
    return Run(problem, chosen, values, seen, expected, shares, record)


def true_edges(problem: Problem) -> Bool[np.ndarray, "d d"]:
    """Direct causes of each variable in the data, hidden ones left out."""
    names, edges = problem.scm.names, problem.scm.edges
    return np.array([[(a, b) in edges for b in names] for a in names])
