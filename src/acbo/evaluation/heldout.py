"""Held-out problems, frozen by a seed: models of one family and size, and first rows.

The key of a problem depends on seed, family, size and index only, so that more problems
extend a set and leave the ones before as they were.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Int, PRNGKeyArray

from acbo.environment import first_history
from acbo.families import SCMConfig, random_scm
from acbo.history import History
from acbo.scm import SCM
from acbo.surrogate.encode import VARIABLE_BUCKETS
from acbo.types import check_direction
from jaxrig.keys import Keys, batch_keys, named_key


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
        """In short, for tables."""
        rows = f"{self.observational}+{self.interventional}"
        return f"{self.family} d={self.size} rows={rows}"

    @property
    def rows(self) -> int:
        """Rows given in all."""
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
        """Number of columns in which models of this size are held."""
        room = [d for d in self.buckets if d >= size]
        if not room:
            raise ValueError(
                f"size={size} does not fit into buckets={self.buckets}: give a larger"
            )
        return min(room)


class Task(eqx.Module):
    """A held-out problem: the model, the rows given, and a key for what follows."""

    scm: SCM
    history: History  # with room for the steps of an episode
    key: Any


def task_keys(seed: int, family: str, size: int, count: int) -> Keys:
    """The keys of the first `count` problems of a family and size."""
    key = named_key(jax.random.key(seed), family)
    return batch_keys(jax.random.fold_in(key, size), count)


def draw_scm(
    key: PRNGKeyArray, size: Int[Array, ""], family: str, config: SCMConfig, d: int
) -> SCM:
    """The model of a problem's key."""
    only = replace(config, families=(family,))
    return random_scm(named_key(key, "model"), only, size, d)


def draw_task(
    key: PRNGKeyArray, scm: SCM, cell: Cell, steps: int, clip_to_range: bool
) -> Task:
    """The problem of a key and its model, with room for `steps` more rows."""
    history = first_history(
        named_key(key, "data"),
        scm,
        cell.observational,
        cell.interventional,
        cell.rows + steps,
        clip_to_range,
    )
    return Task(scm, history, named_key(key, "episode"))
