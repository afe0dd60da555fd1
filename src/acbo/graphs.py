"""Random graphs of named families, and candidate parent sets in one fixed order.

A family draws its graph over places 0, 1, ... in causal order (an edge leads from a
lower to a higher place), of any size up to a bucket, and says which places may hold the
target. Parent sets are ordered by size, then by the places of members: index i of any
array over them means the same set everywhere, by name (host) or column (device).
"""

import functools
from collections.abc import Callable, Collection, Set
from itertools import combinations
from math import comb
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.types import Index, check_known


class RandomGraph(NamedTuple):
    """A graph over places in causal order, and where its target may be."""

    adjacency: Bool[Array, "d d"]
    targets: Bool[Array, " d"]


Size = Int[Array, ""]
Family = Callable[[PRNGKeyArray, Size, int], RandomGraph]


def _order_masks(size: Size, d: int) -> tuple[Bool[Array, " d"], Bool[Array, "d d"]]:
    """Return which places exist, and which edges the order allows."""
    exists = jnp.arange(d) < size
    ordered = jnp.arange(d)[:, None] < jnp.arange(d)[None, :]
    return exists, ordered & exists[:, None] & exists[None, :]


def _choose(
    key: PRNGKeyArray,
    candidates: Bool[Array, "*n d"],
    count: Int[Array, "*n"],
    weight: Float[Array, "*n d"] | None = None,
) -> Bool[Array, "*n d"]:
    """Draw at most `count` of the candidates by weight, without replacement."""
    # Gumbel top-k: the largest perturbed log weights are a draw without replacement
    # (Kool, van Hoof and Welling, 2019).
    score = jax.random.gumbel(key, candidates.shape)
    if weight is not None:
        score = score + jnp.log(jnp.maximum(weight, 1e-6))
    score = jnp.where(candidates, score, -jnp.inf)
    # Counting who scores higher compiles several times faster than sorting.
    rank = (score[..., None, :] > score[..., :, None]).sum(axis=-1)
    return candidates & (rank < jnp.expand_dims(count, -1))


def _with_effect_as_target(
    adjacency: Bool[Array, "d d"], exists: Bool[Array, " d"]
) -> RandomGraph:
    """Return the graph with any variable that has a cause (else any) as target."""
    caused = adjacency.any(axis=0)
    return RandomGraph(adjacency, jnp.where(caused.any(), caused, exists))


def _one_hot(index: Int[Array, ""], d: int) -> Bool[Array, " d"]:
    return jnp.arange(d) == index


def _attach(
    key: PRNGKeyArray,
    edges: Bool[Array, "d d"],
    ordered: Bool[Array, "d d"],
    target: Int[Array, ""],
) -> RandomGraph:
    """Give one cause to each variable that has no edge at all, the target apart."""
    own = _one_hot(target, edges.shape[0])
    alone = ~(edges.any(axis=0) | edges.any(axis=1))
    added = _choose(key, (ordered & ~own[None, :]).T, alone.astype(jnp.int32)).T
    return RandomGraph(edges | added, own)


def _causes_of(
    key: PRNGKeyArray,
    target: Int[Array, ""],
    count: Int[Array, ""],
    ordered: Bool[Array, "d d"],
) -> Bool[Array, "d d"]:
    """Draw edges into the target from at most `count` variables before it."""
    causes = _choose(key, ordered[:, target], count)
    return causes[:, None] & _one_hot(target, ordered.shape[0])[None, :]


def chain(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw a chain: each variable causes the next; the target is any but the first."""
    exists, ordered = _order_masks(size, d)
    following = jnp.arange(d)[:, None] + 1 == jnp.arange(d)[None, :]
    return RandomGraph(following & ordered, exists & (jnp.arange(d) > 0))


def fork(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw one common cause of all others, and up to two edges among the effects.

    The target is an effect with that one cause only.
    """
    exists, ordered = _order_masks(size, d)
    pick, extra, many = jax.random.split(key, 3)
    effects = exists & (jnp.arange(d) > 0)
    target = jax.random.categorical(pick, jnp.where(effects, 0.0, -jnp.inf))
    hub = (jnp.arange(d) == 0)[:, None] & ordered
    free = ordered & effects[:, None] & ~_one_hot(target, d)[None, :]
    logits = jnp.where(free.reshape(-1), 0.0, -jnp.inf)
    # With replacement: a pair drawn twice is one edge, and no permutation is needed.
    chosen = jax.random.categorical(extra, logits, shape=(2,))
    used = jnp.arange(2) < jax.random.randint(many, (), 0, 3)
    flat = jnp.arange(d * d)[None, :] == chosen[:, None]
    edges = (flat & used[:, None]).any(axis=0).reshape(d, d) & free
    return RandomGraph(hub | edges, _one_hot(target, d))


def star(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw a star: every other variable causes the target; no other edges."""
    _, ordered = _order_masks(size, d)
    last = _one_hot(size - 1, d)
    return RandomGraph(ordered & last[None, :], last)


def collider(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw one to three causes of the target; the rest attach at random."""
    _, ordered = _order_masks(size, d)
    place, many, causes, rest = jax.random.split(key, 4)
    target = jax.random.randint(place, (), 1, jnp.maximum(size, 2))
    count = jax.random.randint(many, (), 1, 4)
    edges = _causes_of(causes, target, count, ordered)
    return _attach(rest, edges, ordered, target)


def mixed(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw one or two causes and a chain into the target; the rest attach anywhere."""
    _, ordered = _order_masks(size, d)
    place, many, causes, length, rest = jax.random.split(key, 5)
    target = jax.random.randint(place, (), jnp.minimum(2, size - 1), size)
    count = jax.random.randint(many, (), 1, 3)
    edges = _causes_of(causes, target, count, ordered)
    links = jax.random.randint(length, (), 2, 4)
    places = jnp.arange(d)
    following = places[:, None] + 1 == places[None, :]
    within = (places[None, :] <= target) & (places[:, None] >= target - links)
    return _attach(rest, edges | (following & within & ordered), ordered, target)


def _erdos_renyi(edges_per_variable: float, most: int = 3) -> Family:
    """Return a family of equally likely edges with at most `most` causes each."""

    def draw(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
        exists, ordered = _order_masks(size, d)
        coin, cut = jax.random.split(key)
        pairs = jnp.maximum(size - 1, 1).astype(jnp.float32)
        # edges_per_variable * n edges are expected among n (n - 1) / 2 pairs.
        chance = jnp.minimum(2.0 * edges_per_variable / pairs, 1.0)
        edges = ordered & (jax.random.uniform(coin, (d, d)) < chance)
        return _with_effect_as_target(
            _choose(cut, edges.T, jnp.full(d, most)).T, exists
        )

    return draw


def _dense(density: float) -> Family:
    """Return a family in which each allowed edge has this probability."""

    def draw(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
        exists, ordered = _order_masks(size, d)
        return _with_effect_as_target(
            ordered & (jax.random.uniform(key, (d, d)) < density), exists
        )

    return draw


def scale_free(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw three connected variables, then give every other one to three causes by
    preferential attachment (Barabasi and Albert, 1999).
    """
    exists, ordered = _order_masks(size, d)
    places = jnp.arange(d)
    seed = ordered & (places < 3)[None, :]

    def grow(edges: Bool[Array, "d d"], j: Int[Array, ""]):
        many, which = jax.random.split(jax.random.fold_in(key, j))
        degree = edges.sum(axis=0) + edges.sum(axis=1)
        count = jax.random.randint(many, (), 1, 4)
        causes = _choose(which, ordered[:, j], count, degree.astype(jnp.float32))
        return edges | (causes[:, None] & _one_hot(j, d)[None, :] & (j >= 3)), None

    return _with_effect_as_target(jax.lax.scan(grow, seed, places)[0], exists)


def two_layer(key: PRNGKeyArray, size: Size, d: int) -> RandomGraph:
    """Draw half sources and half sinks: one to three edges from each source, and edges
    between sinks with probability 0.3. The target is a sink.
    """
    exists, ordered = _order_masks(size, d)
    many, which, among = jax.random.split(key, 3)
    sources = jnp.arange(d) < size // 2
    sinks = exists & ~sources
    count = jax.random.randint(many, (d,), 1, 4)
    across = ordered & sources[:, None] & sinks[None, :]
    between = ordered & sinks[:, None] & sinks[None, :]
    between = between & (jax.random.uniform(among, (d, d)) < 0.3)
    edges = _choose(which, across, count) | between
    caused = sinks & edges.any(axis=0)
    return RandomGraph(edges, jnp.where(caused.any(), caused, sinks))


GRAPHS: dict[str, Family] = {
    "chain": chain,
    "fork": fork,
    "true_fork": fork,
    "star": star,
    "collider": collider,
    "mixed": mixed,
    "er1": _erdos_renyi(1.0),
    "er2": _erdos_renyi(2.0),
    "random": _dense(0.5),
    "dense": _dense(0.7),
    "scale_free": scale_free,
    "two_layer": two_layer,
}


def family_named(name: str) -> Family:
    """Return the family of a name; "ER-1" and "er1" are one."""
    plain = name.lower().replace("er-", "er")
    check_known(plain, GRAPHS, "family")
    return GRAPHS[plain]


def check_max_parents(max_parents: int) -> int:
    """Return the largest size of a parent set; ValueError for a negative one."""
    if max_parents < 0:
        raise ValueError(f"max_parents={max_parents}: give 0 or more")
    return max_parents


def count_parent_sets(d: int, max_parents: int = 3) -> int:
    """Count the sets of at most `max_parents` of the other d - 1 variables.

    >>> count_parent_sets(8), count_parent_sets(10, 5)
    (64, 382)
    """
    if d < 1:
        raise ValueError(f"d={d} must be at least 1 (the target)")
    largest = min(check_max_parents(max_parents), d - 1)
    return sum(comb(d - 1, size) for size in range(largest + 1))


def enumerate_possible_parent_sets(
    variables: Collection[str], target: str, max_parent_size: int = 3
) -> list[frozenset[str]]:
    """Enumerate sets of at most `max_parent_size` other variables, the empty set first.

    Within one size the order is lexicographic in the places of `variables`, which is
    the order of every array over parent sets; an unordered set of names is sorted.

    >>> [sorted(s) for s in enumerate_possible_parent_sets(["A", "B", "Y"], "Y")]
    [[], ['A'], ['B'], ['A', 'B']]
    """
    names = sorted(variables) if isinstance(variables, Set) else list(variables)
    check_known(target, names, "target")
    if len(set(names)) != len(names):
        raise ValueError(
            f"the variables {names} contain a duplicate: names must be unique"
        )
    others = [name for name in names if name != target]
    largest = min(check_max_parents(max_parent_size), len(others))
    return [
        frozenset(chosen)
        for size in range(largest + 1)
        for chosen in combinations(others, size)
    ]


@functools.lru_cache(maxsize=64)
def parent_set_ranks(d: int, max_parents: int) -> np.ndarray:
    """Return members of every set [K, max_parents] as ranks among the other variables.

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


@functools.lru_cache(maxsize=256)
def parent_set_membership(d: int, max_parents: int, target: int) -> np.ndarray:
    """Return which of d columns each parent set of column `target` holds: [K, d]."""
    if not 0 <= target < d:
        raise ValueError(f"target={target} is not one of the columns 0 to {d - 1}")
    ranks = parent_set_ranks(d, max_parents)[:, :, None]
    held = np.insert((ranks == np.arange(d - 1)).any(axis=1), target, False, axis=1)
    held.setflags(write=False)
    return held


def parent_set_members(
    d: int, max_parents: int, target: Index
) -> Int[Array, "K max_parents"]:
    """Return the columns of every set's members (unused: d), for traced targets."""
    ranks = jnp.asarray(parent_set_ranks(d, max_parents))
    return ranks + (ranks >= target.astype(ranks.dtype)).astype(ranks.dtype)


def bucket_parent_sets(
    var_mask: Bool[Array, " d"], target: Index, max_parents: int
) -> tuple[Bool[Array, " K"], Bool[Array, "K d"]]:
    """Return which sets are candidates and what they hold, for a padded bucket.

    A set that holds a padded variable is no candidate.
    """
    d = var_mask.shape[0]
    members = parent_set_members(d, max_parents, target)
    columns = jnp.arange(d, dtype=members.dtype)[None, None, :]
    held = (members[:, :, None] == columns).any(axis=1)
    return ~(held & ~var_mask[None, :]).any(axis=1), held
