"""Posterior over graphs of any number of variables, coherent by construction.

For every variable a short list of candidate causes is screened, and all subsets of the
list are scored exactly. Given an order of the variables, the sum over all graphs that
fit it is then a product of table look-ups (Friedman & Koller, Being Bayesian about
network structure, 2003). All orders of few variables are summed; with more, chains
move through them. Edges, ancestors and sets of causes come from the same distribution,
and so agree with each other.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from acbo.posterior import inputs
from acbo.posterior.dag_sums import elements_of, masks_by_size
from acbo.posterior.distribution import USUAL_DISCREPANCY, GraphPosterior
from acbo.posterior.inputs import Fit, check_fits, free_moments, standardized
from acbo.posterior.subset_scores import (
    CANDIDATES,
    FEW_VARIABLES,
    log_sum,
    score_subsets,
    screen_causes,
    tame_tails,
)
from jaxrig.compile_guard import compile_once

CHAINS = 16
SWEEPS = 60
BURN_IN = 20
# Powers of the evidence of the rows and of a second opinion, such as a network's, in
# the logarithmic pool. They were chosen on random tables by log loss and F1: both are
# surer than they are right where mechanisms are not as either assumes.
ROWS_SHARE, OPINION_SHARE = 0.5, 0.3
SLIGHT = 0.1  # nats per variable: contradictions much smaller than it tell nothing
NEVER = -1e30  # log of a probability of 0, finite

Opinion = np.ndarray | Callable[[inputs.CheckedData], np.ndarray | None]


def sample_graphs(
    values: Any,
    intervened: Any = None,
    *,
    names: Iterable[Any] | None = None,
    required: Iterable[Any] = (),
    forbidden: Iterable[Any] = (),
    tiers: Iterable[Any] | None = None,
    opinion: Opinion | None = None,
    soft: Any = None,
    candidates: int = CANDIDATES,
    chains: int = CHAINS,
    sweeps: int = SWEEPS,
    seed: int = 0,
) -> GraphPosterior:
    """Return graphs sampled from the posterior given the rows.

    Mechanisms may be linear or curved and noise need not be Gaussian; the number of
    variables is not limited; each may have up to `candidates` causes. The data and the
    constraints are those of `exact_parent_posterior`. Shifting or scaling a column
    changes nothing, nor does the order of columns and rows. `opinion` holds
    probabilities of edges [cause, effect] from elsewhere, or gives them for the checked
    data, or None; they count less where the rows contradict them the more surely.
    `soft` marks cells whose mechanism was shifted or scaled, which kept their causes.
    """
    if min(candidates, chains, sweeps - BURN_IN) < 1:
        raise ValueError(
            f"candidates={candidates}, chains={chains} and sweeps={sweeps}: give one "
            f"or more, and more sweeps than the {BURN_IN} that are dropped at first"
        )
    data = values, intervened, None, names
    table = inputs.check_data(*data, constants=True, soft=soft)
    slots = min(candidates, len(table.names) - 1)
    rules = inputs.edge_rules(table.names, required, forbidden, tiers, slots)
    given = opinion(table) if callable(opinion) else opinion
    # Chains and draws go by the places of columns, so these must not depend on how the
    # table was written.
    order = _column_order(table)
    pairs = np.ix_(order, order)
    moved = table._replace(
        values=table.values[:, order],
        intervened=table.intervened[:, order],
        soft=table.soft[:, order],
    )
    wanted, banned = (rule[pairs] for rule in rules)
    told = None if given is None else given[pairs]
    effort = slots, chains, sweeps, seed
    found = _infer(tame_tails(moved), wanted, banned, told, effort)
    back = np.argsort(order)
    turned = np.ix_(back, back)
    candidates_of = np.append(order, len(order))[found.candidates[back]]
    return replace(
        found,
        fits=check_fits(table, candidates_of, found.set_probs[back]),
        graphs=found.graphs[:, back][:, :, back],
        edge_probs=found.edge_probs[turned],
        confounded_probs=found.confounded_probs[turned],
        candidates=candidates_of,
        set_probs=found.set_probs[back],
    )


def _infer(
    table: inputs.CheckedData,
    required: Bool[np.ndarray, "d d"],
    forbidden: Bool[np.ndarray, "d d"],
    opinion: Float[np.ndarray, "d d"] | None,
    effort: tuple[int, int, int, int],
) -> GraphPosterior:
    """Screen and score the causes of every variable, and sum over the orders."""
    slots, chains, sweeps, seed = effort
    d = len(table.names)
    grams = free_moments(standardized(table), table.intervened)
    lists = screen_causes(grams, table, required, forbidden, slots)
    scores, hidden = score_subsets(table, grams, lists)
    draw = np.random.default_rng(seed)

    def solve(scores: Float[np.ndarray, "d subsets"]):
        partial = _sum_subsets(_constrain(scores, lists, required, forbidden))
        if d <= FEW_VARIABLES and slots == d - 1:
            count = chains * (sweeps - BURN_IN)
            masks, weights, drawn = _sum_orders(partial[-1], lists, count, draw)
        else:
            given = required, chains, sweeps, seed
            masks = drawn = _sample_orders(partial[-1], lists, *given)
            weights = None
        return partial, drawn, _set_probs(partial, masks, weights)

    discrepancy = 0.0
    if opinion is not None:
        alone = _without_partners(solve(scores)[2], hidden, lists)[0]
        fits = check_fits(table, lists, alone)
        discrepancy = _contradiction(_edges_of(alone, lists), opinion, fits)
        scores = ROWS_SHARE * scores + _opinion_scores(opinion, lists, discrepancy)
    partial, drawn, sets = solve(scores)
    sets, half = _without_partners(sets, hidden, lists)
    chosen = _draw_subsets(partial, drawn, draw)
    return GraphPosterior(
        table.names,
        _draw_graphs(chosen, lists, hidden, draw),
        _edges_of(sets, lists),
        half + half.T,
        lists,
        sets,
        discrepancy,
    )


def _column_order(table: inputs.CheckedData) -> Int[np.ndarray, " d"]:
    """Return an order of the columns that names, units, signs and places do not change.

    By the fourth moments of the columns that each goes with: a number of its own for
    every column, unless two are alike in all of this.
    """
    z = standardized(table)
    size = (z**2).mean(axis=0)
    together = (z.T @ z / len(z)) ** 2 / np.maximum(np.outer(size, size), 1e-12)
    return np.argsort(together @ (1 + (z**4).mean(axis=0)), kind="stable")


def _sample_orders(
    sums: Float[np.ndarray, "d subsets"],
    lists: Int[np.ndarray, "d slots"],
    required: Bool[np.ndarray, "d d"],
    chains: int,
    sweeps: int,
    seed: int,
) -> Int[np.ndarray, "orders d"]:
    """Return the predecessors of every variable in sampled orders, as slots."""
    d, slots = lists.shape
    keys = jax.random.split(jax.random.key(seed), sweeps)
    ranks = _starting_orders(required, chains, seed)
    starts = ranks, _predecessor_masks(ranks, lists).astype(np.int32)
    bit_of = np.zeros((d + 1, d), np.int32)
    bit_of[lists, np.arange(d)[:, None]] = 1 << np.arange(slots)
    tables = sums.astype(np.float32), lists.astype(np.int32), bit_of[:d]
    *given, begun = jax.device_put((*tables, starts))
    masks = _compiled_chains(given[0], given[1], given[2], begun, keys)
    return np.asarray(masks)[BURN_IN:].reshape(-1, d)


def _contradiction(
    edges: Float[np.ndarray, "d d"],
    opinion: Float[np.ndarray, "d d"],
    fits: Sequence[Fit],
) -> float:
    """Return how many times as surely the rows contradict an opinion as it does them.

    KL(opinion || rows) counts what the rows are sure of and the opinion denies. What is
    in doubt tells more by which of the two sees more edges, and by the noise that the
    rows can read and a network was not trained on; curves are what the rows miss. The
    weights were chosen on random tables.
    """
    p, q = (np.clip(each.astype(float), 0.01, 0.99) for each in (edges, opinion))
    off = ~np.eye(len(p), dtype=bool)
    kl = lambda a, b: a * np.log(a / b) + (1 - a) * np.log((1 - a) / (1 - b))
    surely = lambda a, b: SLIGHT + float(kl(a, b)[off].sum()) / len(p)
    more = float(p[off].sum() + 1e-9) / float(q[off].sum() + 1e-9)
    share = lambda what: float(np.mean([what in fit.misfits for fit in fits]))
    misfit = 0.27 * share("skewed noise") - 0.55 * math.sqrt(share("curves"))
    return surely(q, p) / surely(p, q) * more**0.4 * math.exp(misfit)


def _opinion_scores(
    opinion: Float[np.ndarray, "d d"],
    lists: Int[np.ndarray, "d slots"],
    discrepancy: float,
) -> Float[np.ndarray, "d subsets"]:
    """Return log odds of subsets by those of edges; farther off, they count less."""
    # The product of powers of both distributions over graphs is one again, whereas
    # probabilities of edges alone need not belong to any.
    d, slots = lists.shape
    share = OPINION_SHARE * min(1, USUAL_DISCREPANCY / max(discrepancy, 1e-9))
    sure = np.clip(opinion, 1e-4, 1 - 1e-4)
    odds = np.pad(share * np.log(sure / (1 - sure)), ((0, 1), (0, 0)))
    held = (np.arange(1 << slots)[:, None] >> np.arange(slots)) & 1
    return odds[lists, np.arange(d)[:, None]] @ held.T


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


def _sum_subsets(scores: np.ndarray) -> list[Float[np.ndarray, "d subsets"]]:
    """Return for every set of predecessors the log of the sum over its subsets, last.

    Entry k of the tables before has summed over the first k slots only.
    """
    tables = [scores]
    for k in range(scores.shape[1].bit_length() - 1):
        halves = tables[-1].reshape(len(scores), -1, 2, 1 << k).copy()
        without, holding = halves[:, :, 0], halves[:, :, 1]
        apart = np.abs(without - holding)
        # As `np.logaddexp` of finite numbers, in a fraction of the time.
        halves[:, :, 1] = np.maximum(without, holding) + np.log(1 + np.exp(-apart))
        tables.append(halves.reshape(scores.shape))
    return tables


def _sum_orders(
    sums: Float[np.ndarray, "d subsets"],
    lists: Int[np.ndarray, "d slots"],
    count: int,
    draw: np.random.Generator,
) -> tuple[
    Int[np.ndarray, "sets d"], Float[np.ndarray, "sets d"], Int[np.ndarray, "samples d"]
]:
    """Return every set of predecessors as slots of each variable, P(it precedes the
    variable), and the predecessors in sampled orders.

    In NumPy, since a table is asked once: compiling would take longer than all of it.
    """
    d, slots = lists.shape
    every, full = np.arange(d), (1 << d) - 1
    sets = np.arange(1 << d)
    # The predecessors of j as a set of variables, told as slots of its list.
    as_slots = ((sets[:, None, None] >> lists) & 1) @ (1 << np.arange(slots))
    gain = sums[every, as_slots]  # [sets, d]
    levels = masks_by_size(d)
    into, out = np.zeros(1 << d), np.zeros(1 << d)
    for masks in levels[1:]:
        last = elements_of(masks, d)
        before = masks[:, None] ^ (1 << last)
        into[masks] = log_sum((into[before] + gain[before, last]).T)
    for masks in reversed(levels[:-1]):
        after = elements_of(full ^ masks, d)
        terms = gain[masks[:, None], after] + out[masks[:, None] | (1 << after)]
        out[masks] = log_sum(terms.T)
    held = (sets[:, None] >> every) & 1 == 1
    logs = into[:, None] + gain + out[sets[:, None] | (1 << every)] - into[full]
    weights = np.where(held, 0, np.exp(np.where(held, 0, logs)))
    before = _draw_orders(into, gain, draw, count)
    return as_slots, weights, as_slots[before, every]


def _draw_orders(
    into: np.ndarray, gain: np.ndarray, draw: np.random.Generator, count: int
) -> Int[np.ndarray, "samples d"]:
    """Draw orders from the last variable on; return who comes before each."""
    d = gain.shape[1]
    rows, every = np.arange(count), np.arange(d)
    left = np.full(count, (1 << d) - 1)
    found = np.zeros((count, d), int)
    for _ in range(d):
        there = (left[:, None] >> every) & 1 == 1
        before = np.where(there, left[:, None] ^ (1 << every), 0)
        terms = into[before] + gain[before, every] + draw.gumbel(size=before.shape)
        last = np.where(there, terms, -np.inf).argmax(axis=1)
        left = found[rows, last] = before[rows, last]
    return found


def _starting_orders(required: np.ndarray, chains: int, seed: int) -> np.ndarray:
    """Return a random order for each chain, as ranks; required causes come before."""
    depth = np.zeros(len(required))
    for _ in required:
        depth = np.where(required, depth[:, None] + 1, 0.0).max(axis=0)
    draw = np.random.default_rng(seed)
    keys = depth + draw.random((chains, len(required)))
    return keys.argsort(axis=1).argsort(axis=1).astype(np.int32)


def _sweep(
    sums: Float[Array, "d subsets"],
    lists: Int[Array, "d slots"],
    bit_of: Int[Array, "d d"],
    state: tuple[Int[Array, " d"], Int[Array, " d"]],
    key: PRNGKeyArray,
) -> tuple[Int[Array, " d"], Int[Array, " d"]]:
    """Take every variable out of the order once, and put it back anywhere.

    The state is the rank of every variable, and its predecessors as bits of its list;
    `bit_of[i, j]` is the bit of i in the list of j.
    """
    d, slots = lists.shape
    every = jnp.arange(d, dtype=jnp.int32)
    bit = (1 << jnp.arange(slots)).astype(jnp.int32)

    def move(state: tuple[Array, Array], turn: tuple[Array, Array]):
        (rank, before), (v, level) = state, turn
        rank = rank - (rank > rank[v]).astype(rank.dtype)
        rank = rank.at[v].set(d)  # out of the order: before nobody
        before = before & ~bit_of[v]
        gain = sums[every, before | bit_of[v]] - sums[every, before]
        # Who comes at place p or later has v before it if v is put at p.
        by_place = (
            jnp.zeros(d).at[rank].add(jnp.where(every == v, 0.0, gain), mode="drop")
        )
        after = jnp.cumsum(by_place[::-1])[::-1]
        # An unused slot names variable d, which comes after all the others.
        seen = jnp.append(rank, d)[lists[v]]
        own = jnp.sum(jnp.where(seen[None] < every[:, None], bit[None], 0), axis=1)
        logs = sums[v, own] + after
        share = jnp.cumsum(jnp.exp(logs - logs.max()))
        at = jnp.sum(share < level * share[-1]).astype(rank.dtype)
        later = rank >= at
        before = jnp.where(later, before | bit_of[v], before)
        rank = jnp.where(every == v, at, rank + later.astype(rank.dtype))
        return (rank, jnp.where(every == v, own[at], before)), None

    order_key, level_key = jax.random.split(key)
    turns = jax.random.permutation(order_key, d)
    # Drawn by inversion, with one random number for a place among d.
    levels = jax.random.uniform(level_key, (d,))
    return jax.lax.scan(move, state, (turns, levels))[0]


def _chains(
    sums: Float[Array, "d subsets"],
    lists: Int[Array, "d slots"],
    bit_of: Int[Array, "d d"],
    starts: tuple[Int[Array, "chains d"], Int[Array, "chains d"]],
    keys: Key[Array, " sweeps"],
) -> Int[Array, "sweeps chains d"]:
    """Return the predecessors of every variable in all chains, after every sweep."""
    every_chain = jax.vmap(_sweep, in_axes=(None, None, None, 0, 0))

    def sweep(state: tuple[Array, Array], key: PRNGKeyArray):
        chains = len(state[0])
        state = every_chain(sums, lists, bit_of, state, jax.random.split(key, chains))
        return state, state[1]

    return jax.lax.scan(sweep, starts, keys)[1]


# One trace for each number of variables that a session meets.
_compiled_chains = compile_once(_chains, max_traces=128)


def _predecessor_masks(ranks: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """Return which slots of every list come before their variable, as bits."""
    d, slots = lists.shape
    wide = np.concatenate([ranks, np.full((len(ranks), 1), d)], axis=1)
    before = wide[:, lists] < ranks[:, :, None]
    return (before * (1 << np.arange(slots))).sum(axis=2)


def _set_probs(
    partial: list[np.ndarray],
    masks: Int[np.ndarray, "orders d"],
    weights: Float[np.ndarray, "orders d"] | None,
) -> Float[np.ndarray, "d subsets"]:
    """Return P(causes of j = S), exactly for each order.

    Given its predecessors W, a set within W has the share exp(score(S) - sum(W)).
    Without weights all orders count alike.
    """
    scores, sums = partial[0], partial[-1]
    mass = np.stack(
        [
            np.bincount(column, None if weights is None else weights[:, j], len(sums.T))
            for j, column in enumerate(masks.T)
        ]
    )
    with np.errstate(divide="ignore"):
        logs = np.log(mass / mass.sum(axis=1, keepdims=True))
    logs = np.maximum(logs, NEVER) - sums
    # Sums over all W that hold S: over subsets, with the numbers running backwards.
    return np.exp(scores + _sum_subsets(logs[:, ::-1])[-1][:, ::-1])


def _edges_of(
    sets: Float[np.ndarray, "d subsets"], lists: Int[np.ndarray, "d slots"]
) -> Float[np.ndarray, "d d"]:
    """Return P(i causes j) from the probabilities of sets."""
    d, slots = lists.shape
    found = np.zeros((d + 1, d))
    held = (np.arange(1 << slots)[:, None] >> np.arange(slots)) & 1
    found[lists, np.arange(d)[:, None]] = np.clip(sets @ held, 0, 1)
    return found[:d]


def _without_partners(
    sets: Float[np.ndarray, "d subsets"],
    hidden: Float[np.ndarray, "shaped d subsets"],
    lists: Int[np.ndarray, "d slots"],
) -> tuple[Float[np.ndarray, "d subsets"], Float[np.ndarray, "d d"]]:
    """Return P(causes of j = S) without partners by a hidden cause, and P(i is such a
    partner of j), in the direction in which it was scored.
    """
    d = len(lists)
    found = sets.copy()
    shared = np.zeros((d + 1, d))
    for k, share in enumerate(hidden):
        # Slot k is in every other block of 2^k subsets; in the rest it has no share.
        split = lambda table, bit=1 << k: table.reshape(d, -1, 2, bit)
        partner = split(sets)[:, :, 1] * split(share)[:, :, 1]
        split(found)[:, :, 1] -= partner
        split(found)[:, :, 0] += partner
        shared[lists[:, k], np.arange(d)] = partner.sum(axis=(1, 2))
    return found, shared[:d]


def _draw_subsets(
    partial: list[np.ndarray],
    masks: Int[np.ndarray, "samples d"],
    draw: np.random.Generator,
) -> Int[np.ndarray, "samples d"]:
    """Return one subset for each variable and order, drawn from its predecessors.

    The last slot is drawn first: the table that has summed over the slots before it
    tells how likely it is in.
    """
    every = np.arange(masks.shape[1])
    chosen = masks.copy()  # bits drawn already, below them still all predecessors
    for k in reversed(range(len(partial) - 1)):
        bit = 1 << k
        without = chosen & ~bit
        log_in = partial[k][every, without | bit] - partial[k + 1][every, chosen]
        taken = (chosen & bit > 0) & (np.log(draw.random(masks.shape)) < log_in)
        chosen = np.where(taken, chosen, without)
    return chosen


def _draw_graphs(
    chosen: Int[np.ndarray, "samples d"],
    lists: Int[np.ndarray, "d slots"],
    hidden: Float[np.ndarray, "shaped d subsets"],
    draw: np.random.Generator,
) -> Bool[np.ndarray, "samples d d"]:
    """Return the edges of every sample; partners by a hidden cause have none."""
    d, slots = lists.shape
    every = np.arange(d)
    graphs = np.zeros((len(chosen), d + 1, d), bool)
    # At most one slot of a subset is of a hidden cause: so they are scored.
    point = draw.random(chosen.shape)
    for k in range(slots):
        held = chosen >> k & 1 == 1
        share = hidden[k][every, chosen] if k < len(hidden) else np.zeros(held.shape)
        partner = held & (point >= 0) & (point < share)
        point = point - share
        graphs[:, lists[:, k], every] |= held & ~partner
    return graphs[:, :d]
