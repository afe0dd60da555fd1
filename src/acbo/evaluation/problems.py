"""Proposers on the named problems: how far they get from doing nothing to the best."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from acbo.evaluation.heldout import Cell
from acbo.evaluation.report import Report, Result
from acbo.problems import Problem, get
from acbo.runs import interventions_of, player, shares_of_the_way
from jaxrig.batching import map_chunked
from jaxrig.keys import batch_keys, named_key
from jaxrig.progress import Meter

PROBLEMS = "problems"


def evaluate_problems(
    systems: Mapping[str, Any],
    problems: Sequence[str | Problem],
    *,
    seed: int = 0,
    runs: int = 10,
    steps: int = 10,
    observational: int = 20,
    references: Sequence[str] = (),
    chunk_size: int = 64,
    meter: Meter | None = None,
) -> Report:
    """Let every proposer make `steps` interventions on every problem, `runs`
    times from as many sets of observational rows, the same for all proposers.

    "share" is how much of the way from the observational mean to the optimum over
    single variables the best intervention made covers, by true expected outcomes: 1 is
    the optimum, 0 no better than doing nothing, below 0 worse; a proposer of pairs may
    get above 1.
    """
    unknown = [name for name in references if name not in systems]
    if unknown or min(runs, steps, observational) < 1:
        raise ValueError(
            f"references={list(references)}, runs={runs}, steps={steps}, "
            f"observational={observational}: need names of systems and 1 or more"
        )
    found = [get(each) if isinstance(each, str) else each for each in problems]
    results = []
    for problem in found:
        keys = batch_keys(named_key(jax.random.key(seed), problem.name), runs)
        cell = Cell(problem.name, len(problem.scm.names), observational, 0)
        play = player(problem, observational, steps)
        for name, system in systems.items():
            run = map_chunked(
                lambda key, proposer, play=play: play(key, proposer).action,
                chunk_size=min(chunk_size, runs),
                to_host=True,
                meter=meter,
                label=f"{name} on {problem.name}",
            )
            actions = run(keys, system)
            results.append(_judge(problem, cell, name, actions))
    settings = {"runs": runs, "steps": steps, "observational": observational}
    return Report(tuple(results), tuple(references), seed, settings)


def _judge(problem: Problem, cell: Cell, system: str, actions: Any) -> Result:
    """True expected outcomes of all actions, and how far the best of them is."""
    made = interventions_of(actions, problem.scm.names)
    means = [problem.expected_outcome(each) for each in made]
    outcomes = np.reshape(means, jax.tree.leaves(actions)[0].shape[:2])
    rest, best = problem.observational_mean, problem.optimum.outcome
    share = shares_of_the_way(problem, outcomes)
    reached = rest - share * (rest - best)
    curves = {"share": share, "outcome": reached, "regret": np.abs(reached - best)}
    scores = {name: curve[:, -1] for name, curve in curves.items()}
    return Result(cell, system, PROBLEMS, scores, curves)
