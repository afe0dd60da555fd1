"""Posterior over graphs of many variables: chains over orders, exact within an order.

For every variable a short list of candidate causes is screened, and all subsets of the
list are scored exactly. Given an order of the variables, the sum over all graphs that
fit it is then a product of table look-ups (Friedman & Koller, Being Bayesian about
network structure, 2003), so chains need only move through orders. Edges, ancestors and
sets of causes come from the same sampled graphs, and so agree with each other.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from acbo.posterior import inputs
from acbo.posterior.distribution import ParentSetPosterior, create_parent_set_posterior
from acbo.posterior.scores import ScorePrior
from jaxrig.compile_guard import compile_once
from jaxrig.notebook import Shown

CANDIDATES = 12  # per variable; a table of 2**12 subsets for each
# One variance alone fails on weak effects or on strong ones, so three are averaged.
WEIGHT_VARIANCES = (0.1, 1.0, 10.0)
CHAINS = 16
SWEEPS = 60
BURN_IN = 20


@dataclass(frozen=True)
class GraphPosterior(Shown):
    """Graphs sampled from the posterior, [samples, cause, effect].

    `edge_probs[i, j]` is P(i causes j directly), averaged exactly over the graphs of
    each sampled order.
    """

    shown_by: ClassVar[str] = "acbo.pictures.notebook:show_graphs"
    names: tuple[str, ...]
    graphs: np.ndarray
    edge_probs: np.ndarray

    @cached_property
    def ancestor_probs(self) -> np.ndarray:
        """Return P(i causes j, directly or not) for every pair [i, j]."""
        reach = self.graphs.astype(np.float32)
        # Squaring doubles the length of the paths that are counted.
        for _ in range(max(1, math.ceil(math.log2(len(self.names))))):
            reach = np.minimum(reach + reach @ reach, 1)
        return reach.mean(axis=0)

    def parent_sets(self, target: Any) -> ParentSetPosterior:
        """Return the posterior over the sets of direct causes of one variable."""
        column = inputs.find_column(target, self.names)
        sets, counts = np.unique(self.graphs[:, :, column], axis=0, return_counts=True)
        named = [
            frozenset(name for name, held in zip(self.names, row, strict=True) if held)
            for row in sets
        ]
        others = [name for name in self.names if name != self.names[column]]
        return create_parent_set_posterior(
            self.names[column],
            named,
            counts / counts.sum(),
            metadata={"all_variables": others, "method": "order-chains"},
        )


def sample_graphs(
    values: Any,
    intervened: Any = None,
    *,
    names: Iterable[Any] | None = None,
    required: Iterable[Any] = (),
    forbidden: Iterable[Any] = (),
    tiers: Iterable[Any] | None = None,
    candidates: int = CANDIDATES,
    chains: int = CHAINS,
    sweeps: int = SWEEPS,
    seed: int = 0,
) -> GraphPosterior:
    """Return graphs sampled from the posterior of linear-Gaussian models.

    The number of variables is not limited; each may have up to `candidates` causes.
    The data and the constraints are those of `exact_parent_posterior`. Shifting or
    scaling a column changes nothing.
    """
    if candidates < 1 or chains < 1 or sweeps <= BURN_IN:
        raise ValueError(
            f"candidates={candidates}, chains={chains} and sweeps={sweeps}: give one "
            f"or more, and more sweeps than the {BURN_IN} that are dropped at first"
        )
    table = inputs.check_data(values, intervened, None, names)
    wanted = inputs.edge_matrix(required, table.names)
    banned = inputs.edge_matrix(forbidden, table.names)
    banned |= inputs.tier_matrix(tiers, table.names)
    d = len(table.names)
    slots = min(candidates, d - 1)
    inputs.check_constraints(wanted, banned, table.names, slots)
    if d == 1:
        nothing = np.zeros((chains, 1, 1), bool)
        return GraphPosterior(table.names, nothing, np.zeros((1, 1)))
    grams, counts = _statistics(table.values, table.intervened)
    lists = screen_causes(grams, table, wanted, banned, slots)
    scores = score_subsets(grams, counts, lists)
    scores = _constrain(scores, lists, wanted, banned)
    sums = _sum_subsets(scores)
    starts = _starting_orders(wanted, chains, seed)
    ranks = _run_chains(sums, lists, starts, sweeps, seed)
    masks = _predecessor_masks(ranks, lists)
    edges = _average_edges(sums, lists, masks)
    graphs = _draw_graphs(scores, lists, masks, np.random.default_rng(seed))
    return GraphPosterior(table.names, graphs, edges)


def _statistics(
    values: np.ndarray, intervened: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for every variable the moments of (1, z) over rows where it was free."""
    observed = ~intervened.any(axis=1)
    chosen = values[observed] if observed.sum() >= 2 else values
    z = (values - chosen.mean(axis=0)) / chosen.std(axis=0)
    design = np.concatenate([np.ones((len(z), 1)), z], axis=1)
    whole = design.T @ design
    grams = np.empty((z.shape[1], *whole.shape))
    for j, was_set in enumerate(intervened.T):
        # Few rows are set, so they are taken out of the sum over all.
        grams[j] = whole - design[was_set].T @ design[was_set]
    return grams, (~intervened).sum(axis=0).astype(float)


def screen_causes(
    grams: np.ndarray,
    table: inputs.CheckedData,
    required: np.ndarray,
    forbidden: np.ndarray,
    slots: int,
) -> Int[np.ndarray, "d slots"]:
    """Return the candidate causes of every variable; d marks an unused slot.

    Required causes come first. Then three rankings take turns: forward selection,
    correlation, and how far the variable moved when another was set.
    """
    d = len(table.names)
    closed = forbidden | np.eye(d, dtype=bool)
    rankings = [
        _forward_ranking(grams, closed, slots),
        np.argsort(-_correlations(grams), axis=0, kind="stable").T,
        np.argsort(-_shifts(table), axis=0, kind="stable").T,
    ]
    chosen: list[list[int]] = []
    for j in range(d):
        picked = [int(i) for i in np.flatnonzero(required[:, j])]
        for turn in zip(*(ranking[j] for ranking in rankings), strict=False):
            for i in turn:
                if i not in picked and not closed[i, j] and len(picked) < slots:
                    picked.append(int(i))
        chosen.append(picked)
    return _made_mutual(chosen, closed, required, slots)


def _made_mutual(
    chosen: list[list[int]], closed: np.ndarray, required: np.ndarray, slots: int
) -> np.ndarray:
    """Let a strong candidate in one direction be one in the other as well.

    Otherwise the screening, and not the data, would decide the direction.
    """
    d = len(chosen)
    first = slots // 2
    lists = np.full((d, slots), d)
    for j, own in enumerate(chosen):
        asked = [i for i in range(d) if j in chosen[i][:first] and not closed[i, j]]
        fixed = [i for i in own if required[i, j]]
        merged = dict.fromkeys([*fixed, *own[:first], *asked, *own[first:]])
        kept = list(merged)[:slots]
        lists[j, : len(kept)] = kept
    return lists


def _forward_ranking(
    grams: np.ndarray, closed: np.ndarray, steps: int
) -> Int[np.ndarray, "d steps"]:
    """Return the variables in the order in which they reduce the residual most."""
    d = len(grams)
    every = np.arange(d)
    # The intercept is swept out first; a little ridge keeps copies of a column apart.
    rest = grams[:, 1:, 1:] - (
        grams[:, 1:, :1] * grams[:, :1, 1:] / np.maximum(grams[:, :1, :1], 1)
    )
    rest = rest + 1e-6 * np.eye(d)[None]
    left = ~closed.T
    found = np.empty((d, steps), int)
    for step in range(steps):
        own = np.einsum("jii->ji", rest)
        gain = np.where(left, rest[every, :, every] ** 2 / np.maximum(own, 1e-9), -1.0)
        best = gain.argmax(axis=1)
        found[:, step] = best
        left[every, best] = False
        row = rest[every, best]
        pivot = np.maximum(own[every, best], 1e-9)
        rest = rest - row[:, :, None] * (row / pivot[:, None])[:, None, :]
    return found


def _correlations(grams: np.ndarray) -> Float[np.ndarray, "d d"]:
    """Return how strongly i and j go together [i, j], over rows where j was free."""
    count = np.maximum(grams[:, 0, 0], 1)
    mean = grams[:, 0, 1:] / count[:, None]
    second = grams[:, 1:, 1:] / count[:, None, None]
    covariance = second - mean[:, :, None] * mean[:, None, :]
    spread = np.sqrt(np.maximum(np.einsum("jii->ji", covariance), 1e-12))
    every = np.arange(len(grams))
    own = covariance[every, :, every] / spread / spread[every, every][:, None]
    return np.abs(own).T


def _shifts(table: inputs.CheckedData) -> Float[np.ndarray, "d d"]:
    """Return how far j moved when i was set [i, j], in standard errors."""
    z, was_set = table.values, table.intervened
    d = z.shape[1]
    free = ~was_set.any(axis=1)
    found = np.zeros((d, d))
    if free.sum() < 2:
        return found
    mean, spread = z[free].mean(axis=0), z[free].std(axis=0)
    for i in np.flatnonzero(was_set.any(axis=0)):
        rows = was_set[:, i][:, None] & ~was_set
        count = rows.sum(axis=0)
        # Squares, since settings on both sides of the mean may cancel.
        moved = np.where(rows, ((z - mean) / spread) ** 2 - 1, 0).sum(axis=0)
        found[i] = np.abs(moved) / np.sqrt(np.maximum(2 * count, 1))
    return found


def score_subsets(
    grams: np.ndarray,
    counts: np.ndarray,
    lists: Int[np.ndarray, "d slots"],
    variances: tuple[float, ...] = WEIGHT_VARIANCES,
) -> Float[np.ndarray, "d subsets"]:
    """Return log P(column j, causes S) for every subset S of the list of j.

    Bit k of the subset's number stands for slot k. The evidence is that of
    `acbo.posterior.scores`, averaged over the variances of the weights; before the
    data, every number of causes is equally likely, and so is every set of a size.
    """
    d, slots = lists.shape
    size = np.array([bin(subset).count("1") for subset in range(1 << slots)])
    sets_of = np.array([math.lgamma(d) - math.lgamma(k + 1) - math.lgamma(d - k)
                        for k in range(slots + 1)])  # fmt: skip
    logs = [
        _evidence(grams, counts, lists, ScorePrior(weight_variance=each))
        for each in variances
    ]
    found = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
    found = found - sets_of[size][None]
    unused = ((lists == d) * (1 << np.arange(slots))).sum(axis=1)
    return np.where(np.arange(1 << slots)[None] & unused[:, None], -np.inf, found)


def _evidence(
    grams: np.ndarray, counts: np.ndarray, lists: np.ndarray, prior: ScorePrior
) -> Float[np.ndarray, "d subsets"]:
    """Return the log evidence of every subset, by Schur complements.

    The table doubles with every slot: each matrix goes on without the slot's row, and
    once more with the row eliminated. So 2**k subsets cost little more than their own
    number, where eliminating each on its own would cost k**3 times as much.
    """
    d, slots = lists.shape
    index = np.concatenate(
        [np.zeros((d, 1), int), lists + 1, np.arange(1, d + 1)[:, None]], axis=1
    )
    padded = np.pad(grams, ((0, 0), (0, 1), (0, 1)))
    every = np.arange(d)[:, None, None]
    matrix = padded[every, index[:, :, None], index[:, None, :]]
    weights = [1 / prior.weight_variance] * slots
    ends = 1 / prior.intercept_variance, 2 * prior.noise_scale
    matrix = matrix + np.diag([ends[0], *weights, ends[1]])
    matrix, pivot = _eliminate(matrix[:, None])
    halves = [(matrix, np.log(pivot) + math.log(prior.intercept_variance))]
    for _ in range(slots):
        matrix, logs = halves.pop()
        reduced, pivot = _eliminate(matrix)
        without = matrix[:, :, 1:, 1:]
        weighed = logs + np.log(pivot) + math.log(prior.weight_variance)
        # The new slot is the higher bit: subsets with it follow those without.
        halves.append(
            (
                np.concatenate([without, reduced], axis=1),
                np.concatenate([logs, weighed], axis=1),
            )
        )
    ((matrix, logs),) = halves
    shape = prior.noise_shape + counts / 2
    return -logs / 2 - shape[:, None] * np.log(matrix[:, :, 0, 0] / 2)


def _eliminate(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eliminate the first row and column; return the rest and the pivot."""
    pivot = matrix[:, :, 0, 0]
    row = matrix[:, :, 0, 1:]
    rest = matrix[:, :, 1:, 1:]
    scaled = row / pivot[:, :, None]
    return rest - row[:, :, :, None] * scaled[:, :, None, :], pivot


def _constrain(
    scores: np.ndarray, lists: np.ndarray, required: np.ndarray, forbidden: np.ndarray
) -> np.ndarray:
    """Return the scores, less the best of each, with barred subsets far below."""
    d, slots = lists.shape
    effect = np.arange(d)[:, None]
    there = lists < d
    cause = np.minimum(lists, d - 1)
    bit = 1 << np.arange(slots)
    must = ((there & required[cause, effect]) * bit).sum(axis=1)[:, None]
    never = ((there & forbidden[cause, effect]) * bit).sum(axis=1)[:, None]
    subset = np.arange(1 << slots)[None]
    open_ = ((subset & must) == must) & ((subset & never) == 0) & np.isfinite(scores)
    best = np.where(open_, scores, -np.inf).max(axis=1, keepdims=True)
    scores = scores - best
    # Finite, since the chains add and subtract these; below every subset that may be.
    floor = np.where(open_, scores, 0.0).min() - 1e3
    return np.where(open_, scores, 2 * floor)


def _sum_subsets(scores: np.ndarray) -> Float[np.ndarray, "d subsets"]:
    """Return for every set of predecessors the log of the sum over its subsets."""
    sums = scores.copy()
    slots = scores.shape[1].bit_length() - 1
    for k in range(slots):
        halves = sums.reshape(len(sums), -1, 2, 1 << k)
        halves[:, :, 1] = np.logaddexp(halves[:, :, 0], halves[:, :, 1])
    return sums


def _starting_orders(required: np.ndarray, chains: int, seed: int) -> np.ndarray:
    """Return a random order for each chain, as ranks; required causes come before."""
    draw = np.random.default_rng(seed)
    d = len(required)
    ranks = np.empty((chains, d), np.int32)
    for chain in range(chains):
        left, place = np.ones(d, bool), 0
        while left.any():
            free = np.flatnonzero(left & ~(required & left[:, None]).any(axis=0))
            picked = draw.choice(free)
            ranks[chain, picked], left[picked] = place, False
            place += 1
    return ranks


def _sweep(
    sums: Float[Array, "d subsets"],
    lists: Int[Array, "d slots"],
    rank: Int[Array, " d"],
    key: PRNGKeyArray,
) -> Int[Array, " d"]:
    """Take every variable out of the order once, and put it back anywhere."""
    d, slots = lists.shape
    every = jnp.arange(d, dtype=jnp.int32)
    bit = (1 << jnp.arange(slots)).astype(jnp.int32)
    # An unused slot names variable d, which comes after all the others.
    wide = lambda ranks: jnp.concatenate([ranks, jnp.full(1, d, ranks.dtype)])

    def move(rank: Array, turn: tuple[Array, Array]) -> tuple[Array, None]:
        v, noise = turn
        rank = rank - (rank > rank[v]).astype(rank.dtype)
        rank = rank.at[v].set(d)  # out of the order: before nobody
        seen = wide(rank)[lists]
        before = jnp.sum(jnp.where(seen < rank[:, None], bit[None], 0), axis=1)
        with_v = before | jnp.sum(jnp.where(lists == v, bit[None], 0), axis=1)
        gain = sums[every, with_v] - sums[every, before]
        # Who comes at place p or later has v before it if v is put at p.
        by_place = (
            jnp.zeros(d).at[rank].add(jnp.where(every == v, 0.0, gain), mode="drop")
        )
        after = jnp.cumsum(by_place[::-1])[::-1]
        own = jnp.sum(jnp.where(seen[v][None] < every[:, None], bit[None], 0), axis=1)
        at = jnp.argmax(sums[v, own] + after + noise).astype(rank.dtype)
        later = (rank >= at).astype(rank.dtype)
        return jnp.where(every == v, at, rank + later), None

    order_key, noise_key = jax.random.split(key)
    turns = jax.random.permutation(order_key, d)
    # The largest of logs with Gumbel noise is a draw from the distribution.
    noise = jax.random.gumbel(noise_key, (d, d))
    return jax.lax.scan(move, rank, (turns, noise))[0]


def _chains(
    sums: Float[Array, "d subsets"],
    lists: Int[Array, "d slots"],
    starts: Int[Array, "chains d"],
    keys: Key[Array, " sweeps"],
) -> Int[Array, "sweeps chains d"]:
    """Return the orders of all chains after every sweep, as ranks."""
    every_chain = jax.vmap(_sweep, in_axes=(None, None, 0, 0))

    def sweep(ranks: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
        ranks = every_chain(sums, lists, ranks, jax.random.split(key, len(ranks)))
        return ranks, ranks

    return jax.lax.scan(sweep, starts, keys)[1]


# One trace for each number of variables that a session meets.
_compiled_chains = compile_once(_chains, max_traces=128)


def _run_chains(
    sums: np.ndarray, lists: np.ndarray, starts: np.ndarray, sweeps: int, seed: int
) -> Int[np.ndarray, "samples d"]:
    keys = jax.random.split(jax.random.key(seed), sweeps)
    tables, slots = jax.device_put((sums.astype(np.float32), lists.astype(np.int32)))
    ranks = _compiled_chains(tables, slots, jax.device_put(starts), keys)
    ranks = np.asarray(ranks)[BURN_IN:]
    return ranks.reshape(-1, ranks.shape[-1])


def _predecessor_masks(ranks: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """Return which slots of every list come before their variable, as bits."""
    d, slots = lists.shape
    wide = np.concatenate([ranks, np.full((len(ranks), 1), d)], axis=1)
    before = wide[:, lists] < ranks[:, :, None]
    return (before * (1 << np.arange(slots))).sum(axis=2)


def _average_edges(
    sums: np.ndarray, lists: np.ndarray, masks: np.ndarray
) -> Float[np.ndarray, "d d"]:
    """Return P(i causes j), exactly for each sampled order: one less the share of the
    subsets that leave i out.
    """
    d, slots = lists.shape
    every = np.arange(d)[None]
    probs = np.zeros((d + 1, d))
    for k in range(slots):
        out = sums[every, masks & ~(1 << k)] - sums[every, masks]
        probs[lists[:, k], np.arange(d)] = -np.expm1(np.minimum(out, 0)).mean(axis=0)
    return probs[:d]


def _draw_graphs(
    scores: np.ndarray, lists: np.ndarray, masks: np.ndarray, draw: np.random.Generator
) -> np.ndarray:
    """Return one graph for each order, its sets of causes drawn given the order."""
    d, slots = lists.shape
    graphs = np.zeros((len(masks), d + 1, d), bool)
    subset = np.arange(1 << slots)
    for j in range(d):
        # Few sets of predecessors are met, so each is looked at once.
        for mask in np.unique(masks[:, j]):
            rows = np.flatnonzero(masks[:, j] == mask)
            inside = subset[(subset & ~mask) == 0]
            share = np.exp(scores[j, inside] - scores[j, inside].max())
            picked = draw.choice(inside, len(rows), p=share / share.sum())
            held = (picked[:, None] >> np.arange(slots)) & 1 == 1
            graphs[rows[:, None], lists[j][None], j] |= held
    return graphs[:, :d]
