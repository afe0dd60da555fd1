"""Candidate parent sets in one fixed order: by size, then by the places of members.

Index i of any array over parent sets means the same set everywhere, whether the sets
are of names (host) or of columns (device).
"""

import functools
from collections.abc import Collection, Set
from itertools import combinations
from math import comb

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from acbo.types import Index


def check_max_parents(max_parents: int) -> int:
    """The largest size of a parent set; ValueError for a negative one."""
    if max_parents < 0:
        raise ValueError(f"max_parents={max_parents}: give 0 or more")
    return max_parents


def count_parent_sets(d: int, max_parents: int = 3) -> int:
    """How many sets of at most `max_parents` of the other d - 1 variables there are.

    >>> count_parent_sets(8), count_parent_sets(10, 5)
    (64, 382)
    """
    if d < 1:
        raise ValueError(f"d={d}: there is at least one variable, the target")
    largest = min(check_max_parents(max_parents), d - 1)
    return sum(comb(d - 1, size) for size in range(largest + 1))


def enumerate_possible_parent_sets(
    variables: Collection[str], target: str, max_parent_size: int = 3
) -> list[frozenset[str]]:
    """All sets of at most `max_parent_size` other variables, the empty set first.

    Within one size the order is lexicographic in the places of `variables`, which is
    the order of every array over parent sets; an unordered set of names is sorted.

    >>> [sorted(s) for s in enumerate_possible_parent_sets(["A", "B", "Y"], "Y")]
    [[], ['A'], ['B'], ['A', 'B']]
    """
    names = sorted(variables) if isinstance(variables, Set) else list(variables)
    if target not in names:
        raise ValueError(f"target {target!r} is not one of the variables {names}")
    if len(set(names)) != len(names):
        raise ValueError(f"the variables {names} hold a name twice: make them unique")
    others = [name for name in names if name != target]
    largest = min(check_max_parents(max_parent_size), len(others))
    return [
        frozenset(chosen)
        for size in range(largest + 1)
        for chosen in combinations(others, size)
    ]


@functools.lru_cache(maxsize=64)
def parent_set_ranks(d: int, max_parents: int) -> np.ndarray:
    """Members of every set [K, max_parents] as ranks among the other variables.

    The rank of column i is i for columns before the target and i - 1 after it. Unused
    places hold d - 1, which is no rank.
    """
    ranks = np.full((count_parent_sets(d, max_parents), max_parents), d - 1, np.int32)
    row = 0
    for size in range(min(max_parents, d - 1) + 1):
        for chosen in combinations(range(d - 1), size):
            ranks[row, :size] = chosen
            row += 1
    ranks.setflags(write=False)
    return ranks


@functools.lru_cache(maxsize=64)
def rank_membership(d: int, max_parents: int) -> np.ndarray:
    """Which of the other d - 1 variables, by rank, each set holds: [K, d - 1]."""
    ranks = parent_set_ranks(d, max_parents)
    held = (ranks[:, :, None] == np.arange(d - 1)).any(axis=1)
    held.setflags(write=False)
    return held


@functools.lru_cache(maxsize=256)
def parent_set_membership(d: int, max_parents: int, target: int) -> np.ndarray:
    """Which of d columns each candidate parent set of column `target` holds: [K, d]."""
    if not 0 <= target < d:
        raise ValueError(f"target={target} is not one of the columns 0 to {d - 1}")
    held = np.insert(rank_membership(d, max_parents), target, False, axis=1)
    held.setflags(write=False)
    return held


def parent_set_members(
    d: int, max_parents: int, target: Index
) -> Int[Array, "K max_parents"]:
    """Columns of every set's members; unused places hold d. For traced targets."""
    ranks = jnp.asarray(parent_set_ranks(d, max_parents))
    return ranks + (ranks >= target.astype(ranks.dtype)).astype(ranks.dtype)


def bucket_parent_sets(
    var_mask: Bool[Array, " d"], target: Index, max_parents: int
) -> tuple[Bool[Array, " K"], Bool[Array, "K d"]]:
    """Which sets are candidates, and what they hold, for variables of a padded bucket.

    A set that holds a padded variable is no candidate.
    """
    d = var_mask.shape[0]
    members = parent_set_members(d, max_parents, target)
    columns = jnp.arange(d, dtype=members.dtype)[None, None, :]
    held = (members[:, :, None] == columns).any(axis=1)
    return ~(held & ~var_mask[None, :]).any(axis=1), held
