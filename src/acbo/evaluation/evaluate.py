"""Run systems on held-out random models, or on the named problems, and report how they
did. All systems meet the same problems, frozen by a seed.

A predictor has `predict(values, intervened, row_mask, var_mask, target)`, which gives
parent probabilities [d] and None or, for beliefs over whole sets, a pair of log
probabilities [K] and members [K, d]. A proposer has `propose`; see `acbo.environment`.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.environment import (
    as_intervention,
    best_on_noise,
    common_noise,
    first_history,
    mean_under,
    run_episode,
)
from acbo.evaluation import metrics
from acbo.evaluation.report import EPISODES, PARENTS, PROBLEMS, Cell, Report, Result
from acbo.history import History
from acbo.problems import Problem, get
from acbo.random_models import SCMConfig, random_scm
from acbo.runs import interventions_of, player, shares_of_the_way
from acbo.scm import SCM
from acbo.surrogate.encode import variable_bucket
from acbo.types import check_direction, lower_is_better
from jaxrig.batching import ChunkedMap, map_chunked, to_host
from jaxrig.keys import Keys, batch_keys, named_key
from jaxrig.progress import Meter

FAMILIES = ("chain", "fork", "scale_free", "er1", "er2")
REFERENCES = ("random", "exact_thompson", "exact", "regression")


@dataclass(frozen=True)
class Protocol:
    """How problems are drawn and judged.

    `clip_data` keeps the rows for parent prediction within the ranges, `clip_episodes`
    all of an episode and its optimum; the target is never clipped. `grid` and `draws`
    are those of `acbo.environment`.
    """

    scms: SCMConfig = field(default_factory=SCMConfig)
    direction: str = "MINIMIZE"
    clip_data: bool = False
    clip_episodes: bool = True
    grid: int = 33
    draws: int = 512
    bins: int = 10
    chunk_size: int = 64

    def __post_init__(self) -> None:
        check_direction(self.direction)


class Task(eqx.Module):
    """A held-out problem: the model, the rows given, and a key for what follows."""

    scm: SCM
    history: History  # with room for the steps of an episode
    key: Any


def task_keys(seed: int, family: str, size: int, count: int) -> Keys:
    """Return the keys of the first `count` problems of a family and size."""
    key = named_key(jax.random.key(seed), family)
    return batch_keys(jax.random.fold_in(key, size), count)


def draw_scm(
    key: PRNGKeyArray, size: Int[Array, ""], family: str, config: SCMConfig, d: int
) -> SCM:
    """Return the model of a problem's key."""
    only = replace(config, families=(family,))
    return random_scm(named_key(key, "model"), only, size, d)


def draw_task(
    key: PRNGKeyArray, scm: SCM, cell: Cell, steps: int, clip_to_range: bool
) -> Task:
    """Return the problem of a key and its model, with room for `steps` more rows."""
    history = first_history(
        named_key(key, "data"),
        scm,
        cell.observational,
        cell.interventional,
        cell.rows + steps,
        clip_to_range,
    )
    return Task(scm, history, named_key(key, "episode"))


class Scores(eqx.Module):
    """Numbers of one problem by name: single ones, and one for each step."""

    single: dict[str, Float[Array, "*batch"]]
    curves: dict[str, Float[Array, "*batch steps"]]
    reliability: Float[Array, "*batch 3 bins"] | None  # see `metrics.reliability`


def _parents(task: Task) -> tuple[Bool[Array, " d"], Bool[Array, " d"]]:
    """Return the true parents of the target, and the candidates."""
    scm = task.scm
    mask = scm.mask & (jnp.arange(scm.size) != scm.target)
    return scm.adjacency[:, scm.target] & mask, mask


def score_parents(task: Task, predictor: Any, protocol: Protocol, rows: int) -> Scores:
    """Return how well a predictor tells the target's parents from `rows` rows."""
    seen, scm = task.history, task.scm
    values, intervened = seen.values[:rows], seen.intervened[:rows]
    probs, sets = predictor.predict(
        values, intervened, seen.row_mask[:rows], scm.mask, scm.target
    )
    parents, mask = _parents(task)
    given = (probs, parents, mask)
    single = {name: score(*given) for name, score in metrics.PARENT_SCORES.items()}
    if sets is not None:
        log_probs, members = sets
        right = (members == parents[None]).all(axis=1)
        single["exact_set"] = right[jnp.argmax(log_probs)].astype(jnp.float32)
        loss = -jnp.where(right, log_probs, -jnp.inf).max()
        single["set_log_loss"] = jnp.minimum(loss, -jnp.log(metrics.SMALLEST))
    return Scores(single, {}, metrics.reliability(*given, protocol.bins))


def find_optimum(task: Task, protocol: Protocol) -> Float[Array, ""]:
    """Return the best mean outcome over single interventions, on the task's noise."""
    sign = jnp.asarray(lower_is_better(protocol.direction))
    noise = common_noise(task.key, task.scm, protocol.draws)
    grid, clip = protocol.grid, protocol.clip_episodes
    return best_on_noise(task.scm, noise, sign, grid=grid, clip_to_range=clip).value


def score_episode(
    task_and_optimum: tuple[Task, Float[Array, ""]],
    proposer: Any,
    protocol: Protocol,
    steps: int,
) -> Scores:
    """Return how well a proposer does in `steps` interventions.

    Regret is measured by mean outcomes without luck, against the optimum over single
    interventions on the same noise; an action between the points of the grid, or on
    several variables, that beats it becomes the optimum: regret is never negative.
    """
    (task, optimum), direction = task_and_optimum, protocol.direction
    scm, clip = task.scm, protocol.clip_episodes
    # The noise of the optimum is that of `task.key` itself: actions are compared with
    # it on the very same draws, the episode on others.
    play = jax.random.fold_in(task.key, 1)
    record = run_episode(play, scm, proposer, task.history, steps, direction, clip)
    noise = common_noise(task.key, scm, protocol.draws)
    done = jax.vmap(lambda each: as_intervention(each, scm.size))(record.action)
    # One action at a time: all at once would hold steps times draws rows in memory.
    made = jax.lax.map(lambda each: mean_under(scm, noise, each, clip), done)
    sign = lower_is_better(direction)
    optimum = sign * jnp.minimum(sign * optimum, (sign * made).min())
    seen = record.rows[:, scm.target]
    curves = {
        "simple_regret": metrics.simple_regret(made, optimum, direction),
        "cumulative_regret": metrics.cumulative_regret(made, optimum, direction),
        "best_outcome": metrics.best_so_far(seen, direction),
    }
    parents, _ = _parents(task)
    single = {name: curve[-1] for name, curve in curves.items()}
    rate = metrics.parent_selection_rate(done.mask, parents)
    return Scores({**single, "parent_rate": rate}, curves, None)


class _Harness(NamedTuple):
    """Compiled functions, one for each system, bucket and number of rows."""

    protocol: Protocol
    problems: int
    seed: int
    steps: int
    meter: Meter
    maps: dict[tuple[Any, ...], ChunkedMap]

    def judge(self, cell: Cell, systems: Mapping[str, Any]) -> Iterator[Result]:
        """Yield results of all systems in one cell, by what each of them can do."""
        protocol, steps = self.protocol, self.steps
        predictors = {k: v for k, v in systems.items() if hasattr(v, "predict")}
        proposers = {k: v for k, v in systems.items() if hasattr(v, "propose")}
        if predictors:
            tasks = self._tasks(cell, protocol.clip_data)
            score = lambda task, each: score_parents(task, each, protocol, cell.rows)
            yield from self._results(PARENTS, cell, score, tasks, predictors)
        if proposers:
            tasks = self._tasks(cell, protocol.clip_episodes)
            optimum = lambda task: find_optimum(task, protocol)
            given = tasks, self._map(optimum, cell, "optimum")(tasks)
            score = lambda item, each: score_episode(item, each, protocol, steps)
            yield from self._results(EPISODES, cell, score, given, proposers)

    def _results(
        self,
        kind: str,
        cell: Cell,
        score: Callable[..., Scores],
        given: Any,
        systems: Mapping[str, Any],
    ) -> Iterator[Result]:
        for name, system in systems.items():
            found: Any = to_host(self._map(score, cell, name, kind)(given, system))
            arrays = found.single, found.curves, found.reliability
            yield Result(cell, name, kind, *arrays)

    def _tasks(self, cell: Cell, clip: bool) -> Task:
        """Return the problems of a cell; models and rows are drawn by programs of their
        own, as one of them serves all numbers of rows and the other all families.
        """
        config, d = self.protocol.scms, variable_bucket(cell.size)
        keys = task_keys(self.seed, cell.family, cell.size, self.problems)
        draw = lambda key, size: draw_scm(key, size, cell.family, config, d)
        models = self._map(draw, cell, "models", cell.family, rows=False)
        scms = models(keys, jnp.asarray(cell.size))
        fill = lambda item: draw_task(item[0], item[1], cell, self.steps, clip)
        return self._map(fill, cell, "rows", clip)((keys, scms))

    def _map(
        self,
        function: Callable[..., Any],
        cell: Cell,
        name: str,
        *what: Any,
        rows: bool = True,
    ) -> ChunkedMap:
        """Return the function over chunks of problems, made once for each shape."""
        d = variable_bucket(cell.size)
        # What a program depends on: families share it, since models are arrays.
        place = name, *what, d, rows and (cell.observational, cell.interventional)
        if place not in self.maps:
            self.maps[place] = map_chunked(
                function,
                chunk_size=min(self.protocol.chunk_size, self.problems),
                meter=self.meter,
                label=f"{name}, d={d}, {cell.rows} rows",
            )
        return self.maps[place]


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
    protocol: Protocol | None = None,
    meter: Meter | None = None,
) -> Report:
    """Run every system on `n_scms` problems of every family, size and number of rows.

    A system with `predict` is judged by the parents it finds, one with `propose` by
    what it does in `steps` interventions, one with both by both. `rows` are pairs of
    observational and interventional rows given at the start. All systems meet the same
    problems, and the same seed gives the same numbers. Paired tests compare with the
    systems named in `references`, by default those of the usual names that take part.
    """
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
    for name in references or ():
        if name not in systems:
            listed = ", ".join(systems)
            raise ValueError(f"reference {name!r} is not one of the systems: {listed}")
    if references is None:
        references = [name for name in REFERENCES if name in systems]
    protocol = protocol or Protocol()
    harness = _Harness(protocol, n_scms, seed, steps, meter or Meter(), {})
    results: list[Result] = []
    for size, given, family in itertools.product(sizes, rows, families):
        results += harness.judge(Cell(family, size, *given), systems)
    settings = {
        "n_scms": n_scms,
        "steps": steps,
        "systems": list(systems),
        "protocol": asdict(protocol),
    }
    return Report(tuple(results), tuple(references), seed, settings)


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
    """Return the true expected outcomes of all actions, and the best share."""
    made = interventions_of(actions, problem.scm.names)
    means = [problem.expected_outcome(each) for each in made]
    outcomes = np.reshape(means, jax.tree.leaves(actions)[0].shape[:2])
    rest, best = problem.observational_mean, problem.optimum.outcome
    share = shares_of_the_way(problem, outcomes)
    reached = rest - share * (rest - best)
    # Below 0 where a pair gets beyond the optimum over single variables.
    regret = lower_is_better(problem.direction) * (reached - best)
    curves = {"share": share, "outcome": reached, "regret": regret}
    scores = {name: curve[:, -1] for name, curve in curves.items()}
    return Result(cell, system, PROBLEMS, scores, curves)
