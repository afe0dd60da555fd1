"""Run systems on held-out random models, or on the named problems, and report how they
did. All systems meet the same problems, frozen by a seed.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acbo.evaluation import scoring
from acbo.evaluation.report import EPISODES, PARENTS, Report, Result
from acbo.problems import Problem, get
from acbo.runs import interventions_of, player, shares_of_the_way
from jaxrig.batching import ChunkedMap, map_chunked, to_host
from jaxrig.keys import batch_keys, named_key
from jaxrig.progress import Meter

FAMILIES = ("chain", "fork", "scale_free", "er1", "er2")
REFERENCES = ("random", "exact_thompson", "exact", "regression")


def evaluate(
    systems: Mapping[str, Any],
    *,
    seed: int = 0,
    n_scms: int = 200,
    steps: int = 5,
    families: Sequence[str] = FAMILIES,
    sizes: Sequence[int] = (5, 8),
    rows: Sequence[tuple[int, int]] = ((20, 10),),
    references: Sequence[str] | None = None,
    protocol: scoring.Protocol | None = None,
    meter: Meter | None = None,
) -> Report:
    """Run every system on `n_scms` problems of every family, size and number of rows.

    A system with `predict` is judged by the parents it finds, one with `propose` by
    what it does in `steps` interventions, one with both by both. `rows` are pairs of
    observational and interventional rows given at the start. All systems meet the same
    problems, and the same seed gives the same numbers. Paired tests compare with the
    systems named in `references`, by default those of the usual names that take part.
    """
    _check(systems, n_scms, steps, references)
    if references is None:
        references = [name for name in REFERENCES if name in systems]
    protocol = protocol or scoring.Protocol()
    harness = _Harness(protocol, n_scms, seed, steps, meter or Meter())
    results: list[Result] = []
    for size in sizes:
        for observational, interventional in rows:
            for family in families:
                cell = scoring.Cell(family, size, observational, interventional)
                results += harness.judge(cell, systems)
    settings = {
        "n_scms": n_scms,
        "steps": steps,
        "systems": list(systems),
        "protocol": dataclasses.asdict(protocol),
    }
    return Report(tuple(results), tuple(references), seed, settings)


def _check(
    systems: Mapping[str, Any],
    n_scms: int,
    steps: int,
    references: Sequence[str] | None,
) -> None:
    if not systems or n_scms < 1 or steps < 1:
        raise ValueError(
            f"{len(systems)} systems, n_scms={n_scms}, steps={steps}: need at least 1"
        )
    for name, system in systems.items():
        if not (hasattr(system, "predict") or hasattr(system, "propose")):
            raise TypeError(
                f"system {name!r} of type {type(system).__qualname__} has neither "
                "predict nor propose: give it one of them"
            )
    unknown = [name for name in references or () if name not in systems]
    if unknown:
        raise ValueError(
            f"reference {unknown[0]!r} is not one of the systems: {', '.join(systems)}"
        )


class _Harness:
    """Compiled functions, one for each system, bucket and number of rows."""

    def __init__(
        self,
        protocol: scoring.Protocol,
        n_scms: int,
        seed: int,
        steps: int,
        meter: Meter,
    ):
        self._protocol, self._count, self._seed = protocol, n_scms, seed
        self._steps, self._meter = steps, meter
        self._maps: dict[tuple[Any, ...], ChunkedMap] = {}

    def judge(self, cell: scoring.Cell, systems: Mapping[str, Any]) -> list[Result]:
        """Return results of all systems in one cell, by what each of them can do."""
        predictors = {k: v for k, v in systems.items() if hasattr(v, "predict")}
        proposers = {k: v for k, v in systems.items() if hasattr(v, "propose")}
        protocol = self._protocol
        results: list[Result] = []
        if predictors:
            tasks = self._tasks(cell, protocol.clip_data)
            results += self._judge_parents(cell, tasks, predictors)
        if proposers:
            tasks = self._tasks(cell, protocol.clip_episodes)
            results += self._judge_episodes(cell, tasks, proposers)
        return results

    def _judge_parents(
        self, cell: scoring.Cell, tasks: scoring.Task, systems: Mapping[str, Any]
    ) -> Iterator[Result]:
        run = lambda task, system: scoring.score_parents(
            task, system, self._protocol, cell.rows
        )
        for name, system in systems.items():
            scores = self._map(run, cell, name, PARENTS)(tasks, system)
            yield _result(cell, name, PARENTS, scores)

    def _judge_episodes(
        self, cell: scoring.Cell, tasks: scoring.Task, systems: Mapping[str, Any]
    ) -> Iterator[Result]:
        optimum = lambda task: scoring.find_optimum(task, self._protocol)
        best = self._map(optimum, cell, "optimum")(tasks)
        run = lambda item, system: scoring.score_episode(
            item, system, self._protocol, self._steps
        )
        for name, system in systems.items():
            scores = self._map(run, cell, name, EPISODES)((tasks, best), system)
            yield _result(cell, name, EPISODES, scores)

    def _tasks(self, cell: scoring.Cell, clip: bool) -> scoring.Task:
        """Return the problems of a cell; models and rows are drawn by programs of their
        own, as one of them serves all numbers of rows and the other all families.
        """
        config, d = self._protocol.scms, self._protocol.bucket(cell.size)
        keys = scoring.task_keys(self._seed, cell.family, cell.size, self._count)
        draw = lambda key, size: scoring.draw_scm(key, size, cell.family, config, d)
        models = self._map(draw, cell, "models", cell.family, rows=False)
        scms = models(keys, jnp.asarray(cell.size))
        fill = lambda item: scoring.draw_task(item[0], item[1], cell, self._steps, clip)
        return self._map(fill, cell, "rows", clip)((keys, scms))

    def _map(
        self,
        function: Callable[..., Any],
        cell: scoring.Cell,
        name: str,
        *what: Any,
        rows: bool = True,
    ) -> ChunkedMap:
        """Return the function over chunks of problems, made once for each shape."""
        d = self._protocol.bucket(cell.size)
        given = (cell.observational, cell.interventional) if rows else ()
        # What a program depends on: families share it, since models are arrays.
        place = (name, *what, d, *given)
        if place not in self._maps:
            self._maps[place] = map_chunked(
                function,
                chunk_size=min(self._protocol.chunk_size, self._count),
                meter=self._meter,
                label=f"{name}, d={d}, {cell.rows} rows",
            )
        return self._maps[place]


def _result(
    cell: scoring.Cell, system: str, kind: str, scores: scoring.Scores
) -> Result:
    single, curves, bins = to_host((scores.single, scores.curves, scores.reliability))
    sums = bins and np.stack([bins.count, bins.predicted, bins.happened])
    return Result(cell, system, kind, single, curves, sums)


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
        cell = scoring.Cell(problem.name, len(problem.scm.names), observational, 0)
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


def _judge(problem: Problem, cell: scoring.Cell, system: str, actions: Any) -> Result:
    """Return the true expected outcomes of all actions, and the best share."""
    made = interventions_of(actions, problem.scm.names)
    means = [problem.expected_outcome(each) for each in made]
    outcomes = np.reshape(means, jax.tree.leaves(actions)[0].shape[:2])
    rest, best = problem.observational_mean, problem.optimum.outcome
    share = shares_of_the_way(problem, outcomes)
    reached = rest - share * (rest - best)
    curves = {"share": share, "outcome": reached, "regret": np.abs(reached - best)}
    scores = {name: curve[:, -1] for name, curve in curves.items()}
    return Result(cell, system, PROBLEMS, scores, curves)
