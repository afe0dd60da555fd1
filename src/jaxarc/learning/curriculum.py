"""Which tasks to train on next: by concept, by size, by how often they are solved.

Weights over the rows of a buffer are arrays, and everything here but `concepts` is a
pure function of arrays: a compiled training loop can change its tasks at every update.
"""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxarc.envs.starts import EnvParams
from jaxarc.types import JaxArcTask
from jaxrig.checks import check

Weights = Float[Array, " rows"]
WEIGHT_RULE = (
    "a curriculum leaves no task to draw: weights are finite, not negative, and some "
    "of them above 0; if by_size gave them, raise its largest"
)


def concepts(ids: Sequence[str | None]) -> Int[np.ndarray, " rows"]:
    """Number the concepts that task ids such as "Center/Center3" begin with."""
    names = [(name or "").rpartition("/")[0] for name in ids]
    return np.unique(names, return_inverse=True)[1].astype(np.int32)


def by_concept(groups: Int[Array, " rows"]) -> Weights:
    """Weigh tasks so that every concept is as likely, however many tasks it has."""
    same = groups[:, None] == groups[None, :]
    return 1.0 / jnp.sum(same, axis=1).astype(jnp.float32)


def by_size(tasks: JaxArcTask, largest: Int[Array, ""] | int) -> Weights:
    """Weigh tasks alike whose grids have at most `largest` cells, others not at all."""
    cells = jnp.max(jnp.prod(tasks.sizes, axis=-1), axis=(-2, -1))
    return (cells <= largest).astype(jnp.float32)


class Progress(eqx.Module):
    """How well each task goes: its solve rate, and the update it was last seen at."""

    solve_rate: Float[Array, " rows"]
    last_seen: Int[Array, " rows"]
    updates: Int[Array, ""]


def begin_progress(rows: int) -> Progress:
    """Return what is known before any episode: all tasks worth a try."""
    zero = jnp.zeros((), jnp.int32)
    return Progress(jnp.full(rows, 0.5), jnp.zeros(rows, jnp.int32), zero)


def record(
    progress: Progress,
    rows: Int[Array, " episodes"],
    solved: Bool[Array, " episodes"],
    ended: Bool[Array, " episodes"],
    rate: float = 0.2,
) -> Progress:
    """Add the episodes that ended; solve rates are exponential means over updates."""
    add = lambda values: jnp.zeros_like(progress.solve_rate).at[rows].add(values)
    episodes = add(ended.astype(jnp.float32))
    share = add((ended & solved).astype(jnp.float32)) / jnp.maximum(episodes, 1.0)
    moved = progress.solve_rate + rate * (share - progress.solve_rate)
    seen, updates = episodes > 0, progress.updates + 1
    return Progress(
        jnp.where(seen, moved, progress.solve_rate),
        jnp.where(seen, updates, progress.last_seen),
        updates,
    )


def prioritized(
    progress: Progress, temperature: float = 0.3, staleness: float = 0.1
) -> Weights:
    """Return probabilities of tasks by prioritized level replay.

    The score is learnability `p (1 - p)` of the solve rate `p` (Rutherford et al., No
    Regrets, 2024): tasks that are always or never solved teach nothing. By Jiang et
    al., Prioritized Level Replay (2021), equations 1 to 3, probabilities go by rank,
    `rank ** (-1 / temperature)`, mixed with a share by the time since a task was seen.
    """
    score = progress.solve_rate * (1.0 - progress.solve_rate)
    # Tasks of the same score share the best rank among them.
    rank = 1.0 + jnp.sum(score[None, :] > score[:, None], axis=1).astype(jnp.float32)
    by_rank = rank ** (-1.0 / temperature)
    age = (progress.updates - progress.last_seen).astype(jnp.float32)
    total = jnp.sum(age)
    by_age = jnp.where(total > 0, age / jnp.maximum(total, 1.0), 1.0 / age.size)
    return (1.0 - staleness) * by_rank / jnp.sum(by_rank) + staleness * by_age


def focus(key: PRNGKeyArray, params: EnvParams, weights: Weights, count: int = 256):
    """Return parameters whose episodes start on `count` tasks drawn by their weights.

    They take the place of `subset_indices`, so that an automatic reset draws from them
    (give rows outside of a subset the weight 0): hand them to `env.reset` and
    `env.step` as `env_params`. Needs the configuration's
    `dataset.shuffle_tasks`, since a task may be drawn more than once.
    """
    if not params.config.dataset.shuffle_tasks:
        raise ValueError(
            "dataset.shuffle_tasks is off, and tasks that are drawn have no order: "
            "switch it on"
        )
    tasks = params.buffer.pairs.shape[:1]
    if weights.shape != tasks:
        raise ValueError(
            f"weights has shape {weights.shape}, and the buffer holds {tasks[0]} "
            "tasks: give one weight for each"
        )
    # Of other weights a draw would be row 0 again and again.
    some = jnp.all((weights >= 0) & jnp.isfinite(weights)) & jnp.any(weights > 0)
    logits = jnp.log(check(weights, some, WEIGHT_RULE))
    rows = jax.random.categorical(key, logits, shape=(count,)).astype(jnp.int32)
    return dataclasses.replace(params, subset_indices=rows)
