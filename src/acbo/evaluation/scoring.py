"""Scores of one system on one held-out problem, for mapping over many.

A predictor has `predict(values, intervened, row_mask, var_mask, target)`, which gives
parent probabilities [d] and None or, for beliefs over whole sets, a pair of log
probabilities [K] and members [K, d]. A proposer has `propose`; see `acbo.environment`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from acbo.environment import as_intervention, run_episode
from acbo.evaluation import metrics
from acbo.evaluation.calibration import Reliability, reliability
from acbo.evaluation.heldout import Protocol, Task
from acbo.optimum import best_on_noise, common_noise, mean_under
from acbo.types import lower_is_better

PARENT_SCORES = {
    "f1": metrics.parent_f1,
    "precision": metrics.precision,
    "recall": metrics.recall,
    "auprc": metrics.auprc,
    "auroc": metrics.auroc,
    "log_loss": metrics.log_loss,
    "brier": metrics.brier,
    "shd": metrics.parent_shd,
    "exact_set": metrics.exact_set,
}


class Scores(eqx.Module):
    """Numbers of one problem by name: single ones, and one for each step."""

    single: dict[str, Float[Array, "*batch"]]
    curves: dict[str, Float[Array, "*batch steps"]]
    reliability: Reliability | None


def _parents(task: Task) -> tuple[Bool[Array, " d"], Bool[Array, " d"]]:
    """True parents of the target, and the variables that could be."""
    scm = task.scm
    mask = scm.mask & (jnp.arange(scm.size) != scm.target)
    return scm.adjacency[:, scm.target] & mask, mask


def score_parents(task: Task, predictor: Any, protocol: Protocol, rows: int) -> Scores:
    """How well a predictor tells the parents of the target from the `rows` given."""
    seen, scm = task.history, task.scm
    values, intervened = seen.values[:rows], seen.intervened[:rows]
    probs, sets = predictor.predict(
        values, intervened, seen.row_mask[:rows], scm.mask, scm.target
    )
    parents, mask = _parents(task)
    given = (probs, parents, mask)
    single = {name: score(*given) for name, score in PARENT_SCORES.items()}
    if sets is not None:
        log_probs, members = sets
        right = (members == parents[None]).all(axis=1)
        single["exact_set"] = right[jnp.argmax(log_probs)].astype(jnp.float32)
        loss = -jnp.where(right, log_probs, -jnp.inf).max()
        single["set_log_loss"] = jnp.minimum(loss, -jnp.log(metrics.SMALLEST))
    return Scores(single, {}, reliability(*given, protocol.bins))


def find_optimum(task: Task, protocol: Protocol) -> Float[Array, ""]:
    """The best mean outcome over single interventions, on the problem's own noise."""
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
    """How well a proposer does in `steps` interventions.

    Regret is measured by mean outcomes without luck, against the optimum over single
    interventions on the same noise; an action between the points of the grid, or on
    several variables, that beats it becomes the optimum: regret is never negative.
    """
    (task, optimum), direction = task_and_optimum, protocol.direction
    scm, clip = task.scm, protocol.clip_episodes
    play = jax.random.fold_in(task.key, 1)
    record = run_episode(play, scm, proposer, task.history, steps, direction, clip)
    noise = common_noise(task.key, scm, protocol.draws)
    done = jax.vmap(lambda each: as_intervention(each, scm.size))(record.action)
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
