"""Held-out problems, and scores of one system on one of them.

A predictor has `predict(values, intervened, row_mask, var_mask, target)`, which gives
parent probabilities [d] and None or, for beliefs over whole sets, a pair of log
probabilities [K] and members [K, d]. A proposer has `propose`; see `acbo.environment`.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.environment import as_intervention, first_history, run_episode
from acbo.evaluation import metrics
from acbo.history import History
from acbo.optimum import best_on_noise, common_noise, mean_under
from acbo.random_models import SCMConfig, random_scm
from acbo.scm import SCM
from acbo.surrogate.encode import VARIABLE_BUCKETS, variable_bucket
from acbo.types import check_direction, lower_is_better
from jaxrig.keys import Keys, batch_keys, named_key


class Scores(eqx.Module):
    """Numbers of one problem by name: single ones, and one for each step."""

    single: dict[str, Float[Array, "*batch"]]
    curves: dict[str, Float[Array, "*batch steps"]]
    reliability: metrics.Reliability | None


@dataclass(frozen=True)
class Cell:
    """One kind of problem: family of graphs, number of variables, rows given."""

    family: str
    size: int
    observational: int
    interventional: int

    def __post_init__(self) -> None:
        if self.size < 2 or min(self.observational, self.interventional) < 0:
            raise ValueError(f"{self}: need 2 variables or more and no negative rows")

    @property
    def name(self) -> str:
        """Return a short name for tables."""
        rows = f"{self.observational}+{self.interventional}"
        return f"{self.family} d={self.size} rows={rows}"

    @property
    def rows(self) -> int:
        """Return the total number of rows given."""
        return self.observational + self.interventional


@dataclass(frozen=True)
class Protocol:
    """How problems are drawn and judged.

    `clip_data` keeps the rows for parent prediction within the ranges, `clip_episodes`
    all of an episode and its optimum; the target is never clipped. `grid` and `draws`
    are those of `acbo.optimum`.
    """

    scms: SCMConfig = field(default_factory=SCMConfig)
    direction: str = "MINIMIZE"
    clip_data: bool = False
    clip_episodes: bool = True
    grid: int = 33
    draws: int = 512
    bins: int = 10
    chunk_size: int = 64
    buckets: tuple[int, ...] = VARIABLE_BUCKETS

    def __post_init__(self) -> None:
        check_direction(self.direction)

    def bucket(self, size: int) -> int:
        """Return the number of columns to which models of this size are padded."""
        return variable_bucket(size, self.buckets)


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
    found = best_on_noise(
        task.scm,
        noise,
        sign,
        grid=protocol.grid,
        clip_to_range=protocol.clip_episodes,
    )
    return found.value


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
