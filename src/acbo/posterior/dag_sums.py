"""Sums over all orders and all directed acyclic graphs, by tables over subsets.

Functions of subsets of d variables are dense arrays indexed by bit mask. Over orders
(Koivisto and Sood, 2004) graphs that fit more orders count more often; all terms are
positive, so single precision does. Over graphs (Tian and He, 2009) each counts once.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from acbo.graphs import parent_set_membership
from acbo.posterior.scores import LOG_ZERO


@functools.lru_cache(maxsize=32)
def set_masks(d: int, max_parents: int) -> np.ndarray:
    """Return the bit mask of every candidate parent set of every variable: [d, K]."""
    bits = 1 << np.arange(d)
    held = [parent_set_membership(d, max_parents, j) for j in range(d)]
    return np.stack([(rows * bits).sum(axis=1) for rows in held]).astype(np.int32)


@functools.lru_cache(maxsize=32)
def _places(d: int, max_parents: int) -> np.ndarray:
    """Return the index of a mask in the enumeration of j's sets, or K if not there."""
    masks = set_masks(d, max_parents)
    places = np.full((d, 2**d), masks.shape[1], np.int32)
    np.put_along_axis(places, masks, np.arange(masks.shape[1])[None, :], axis=1)
    return places


@functools.lru_cache(maxsize=32)
def masks_by_size(d: int) -> tuple[np.ndarray, ...]:
    """Return the bit masks of the subsets of each size, from 0 to d."""
    masks = np.arange(2**d, dtype=np.int32)
    sizes = np.bitwise_count(masks)
    return tuple(masks[sizes == size] for size in range(d + 1))


def elements_of(masks: np.ndarray, d: int) -> np.ndarray:
    """Return the elements of sets of one size, ascending: [sets, size]."""
    held = (masks[:, None] >> np.arange(d)) & 1 == 1
    return np.nonzero(held)[1].reshape(len(masks), -1).astype(np.int32)


def add_logs(a: Float[Array, "*n"], b: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return log(exp a + exp b) of finite numbers."""
    # `jnp.logaddexp` also answers for infinities, by two selects per entry that finite
    # tables do not need.
    return jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(a - b)))


def split_on_element(
    table: Float[Array, "n subsets"], element: int
) -> tuple[Float[Array, "n half"], Float[Array, "n half"]]:
    """Return the entries of sets without an element, and of the same sets with it."""
    n, subsets = table.shape
    split = table.reshape(n, -1, 2, 2**element)
    shape = (n, subsets // 2)
    return split[:, :, 0].reshape(shape), split[:, :, 1].reshape(shape)


def _transform(
    table: Float[Array, "n subsets"], combine: Callable[[Array, Array], list[Array]]
) -> Float[Array, "n subsets"]:
    """Combine the entries without and with an element, for one element after another.

    Each round treats the lowest bit and makes it the highest, so that all rounds are
    the same program and the last one restores the order.
    """

    # Yates (1937): d rounds over 2^d entries, where the sums one by one have 3^d terms.
    # A round per bit position would be a program of its own for each of them.
    def turn(_: Any, table: Float[Array, "n subsets"]) -> Float[Array, "n subsets"]:
        pair = table.reshape(table.shape[0], -1, 2)
        return jnp.concatenate(combine(pair[:, :, 0], pair[:, :, 1]), axis=1)

    return jax.lax.fori_loop(0, table.shape[1].bit_length() - 1, turn, table)


def sum_subsets(table: Float[Array, "n subsets"]) -> Float[Array, "n subsets"]:
    """Sum over all subsets of each set, in logs."""
    return _transform(
        table, lambda without, holding: [without, add_logs(without, holding)]
    )


def sum_supersets(table: Float[Array, "n subsets"]) -> Float[Array, "n subsets"]:
    """Sum over all supersets of each set, in logs."""
    return _transform(
        table, lambda without, holding: [add_logs(without, holding), holding]
    )


def sum_parent_sets(
    scores: Float[Array, "d sets"], max_parents: int
) -> Float[Array, "d subsets"]:
    """Sum the scores of j's parent sets within W, for every j and W, in logs."""
    d = scores.shape[0]
    padded = jnp.pad(scores, ((0, 0), (0, 1)), constant_values=LOG_ZERO)
    places = jnp.asarray(_places(d, max_parents))
    return sum_subsets(jnp.take_along_axis(padded, places, axis=1))


@functools.lru_cache(maxsize=32)
def _steps(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each size its sets W, their last elements and what W was before.

    Rows of unlike length are filled with repetitions, which change no sum: a repeated
    set is only written again, and absent elements are marked by d.
    """
    levels = masks_by_size(d)[1:]
    widest = max(len(masks) for masks in levels)
    masks = np.stack([np.resize(level, widest) for level in levels])
    held = (masks[:, :, None] >> np.arange(d)) & 1 == 1
    last = np.where(held, np.arange(d), d)
    before = np.where(held, masks[:, :, None] ^ (1 << np.arange(d)), 0)
    return masks, last.astype(np.int32), before.astype(np.int32)


def _sum_levels(
    sums: Float[Array, "d subsets"], outward: bool
) -> Float[Array, " subsets"]:
    """Run over the sets by size, upward for `sum_orders_into`, else downward."""
    d, subsets = sums.shape
    masks, last, before = (jnp.asarray(x) for x in _steps(d))
    padded = jnp.pad(sums, ((0, 1), (0, 0)), constant_values=LOG_ZERO)
    full = subsets - 1

    # With a_j(W) for `sums`: L(W) = sum over j in W of L(W - j) a_j(W - j), from the
    # empty set up, and R(W) = sum over j outside W of a_j(W) R(W + j), from the full
    # set down (Koivisto and Sood, 2004). One scan over padded levels is one program for
    # all sizes of W.
    def step(table: Float[Array, " subsets"], level: Any):
        mask, element, smaller = level
        if outward:  # W lacks what the complementary set holds
            origin, given = full ^ smaller, full ^ mask[:, None]
            terms = table[origin] + padded[element, given]
            place = full ^ mask
        else:
            terms, place = table[smaller] + padded[element, smaller], mask
        return table.at[place].set(jax.nn.logsumexp(terms, axis=1)), None

    return jax.lax.scan(step, jnp.zeros(subsets, sums.dtype), (masks, last, before))[0]


def sum_orders_into(sums: Float[Array, "d subsets"]) -> Float[Array, " subsets"]:
    """Return log weight of all orders of W with their graphs, for every W.

    `sums` are those of `acbo.posterior.dag_sums.sum_parent_sets`.
    """
    return _sum_levels(sums, outward=False)


def sum_orders_out(sums: Float[Array, "d subsets"]) -> Float[Array, " subsets"]:
    """Return log weight of all orders of the rest, with their graphs, after W."""
    return _sum_levels(sums, outward=True)


@functools.lru_cache(maxsize=32)
def _with_each(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return W with j added, and whether j was in W already: [d, 2**d] each."""
    masks = np.arange(2**d, dtype=np.int32)
    bits = (1 << np.arange(d, dtype=np.int32))[:, None]
    return masks | bits, (masks & bits) > 0


def predecessor_weights(sums: Float[Array, "d subsets"]) -> Float[Array, "d subsets"]:
    """Return log P(the predecessors of j are W) for every j and W."""
    # P(W before j) = L(W) a_j(W) R(W + j) / L(all).
    added, held = _with_each(sums.shape[0])
    into, out = sum_orders_into(sums), sum_orders_out(sums)
    found = into[None, :] + sums + out[added] - into[-1]
    return jnp.where(held, LOG_ZERO, jnp.maximum(found, LOG_ZERO))


class _Level(NamedTuple):
    """Tables for the sets W of one size, over the non-empty T outside and inside W."""

    masks: np.ndarray  # [sets]
    outside: np.ndarray  # elements not in W [sets, d - size]
    union: np.ndarray  # W | T for T outside W [sets, 2**(d - size) - 1]
    rest: np.ndarray  # W - T for T inside W [sets, 2**size - 1]
    place: np.ndarray  # of (W - T, T) among all products [sets, 2**size - 1]


def _subset_masks(elements: np.ndarray) -> np.ndarray:
    """Return all subsets of each row of elements as masks, the empty one first."""
    masks = np.zeros((len(elements), 1), np.int32)
    for column in elements.T:
        masks = np.concatenate([masks, masks | (1 << column)[:, None]], axis=1)
    return masks.astype(np.int32)


def _compress(subset: np.ndarray, whole: np.ndarray, d: int) -> np.ndarray:
    """Return the subset as a mask over the elements of the whole set, ascending."""
    found = np.zeros_like(subset)
    for element in range(d):
        rank = np.bitwise_count(whole & ((1 << element) - 1)).astype(np.int32)
        found |= ((subset >> element) & 1) << rank
    return found


@functools.lru_cache(maxsize=16)
def _levels(d: int) -> tuple[_Level, ...]:
    full = 2**d - 1
    start, first = 0, np.zeros(2**d, np.int32)  # where the products of W begin
    for masks in masks_by_size(d):
        width = 2 ** (d - int(masks[0]).bit_count())
        first[masks] = start + width * np.arange(len(masks))
        start += width * len(masks)
    levels = []
    for masks in masks_by_size(d):
        outside = elements_of(full ^ masks, d)
        union = masks[:, None] | _subset_masks(outside)[:, 1:]
        inside = _subset_masks(elements_of(masks, d))[:, 1:]
        rest = masks[:, None] ^ inside
        place = first[rest] + _compress(inside, full ^ rest, d)
        tables = (masks, outside, union, rest, place)
        # Unsigned, so that no check for negative places is compiled in.
        levels.append(_Level(*(table.astype(np.uint32) for table in tables)))
    return tuple(levels)


def _choices(size: int) -> np.ndarray:
    """Return which of `size` elements each of their subsets holds: [2**size, size]."""
    return (np.arange(2**size)[:, None] >> np.arange(size)) & 1


def _products(
    sums: Float[Array, "d subsets"], level: _Level
) -> Float[Array, "sets choices"]:
    """Return the log of the product over T of the sums of its members given W."""
    # A product over T is a sum of logs, so that one matrix product with the 0/1 table
    # of all T makes all of them. Half precision, a default of accelerators, would err
    # by whole units of these logs.
    factors = sums[level.outside, level.masks[:, None]]
    chosen = jnp.asarray(_choices(factors.shape[1]).T, sums.dtype)
    return jnp.matmul(factors, chosen, precision="highest")


def _signed_sum(
    terms: Float[Array, "sets choices"], size: int
) -> tuple[Float[Array, " sets"], Float[Array, "sets choices"]]:
    """Return the largest term of each row, and the signed terms over it."""
    largest = terms.max(axis=1)
    # +1 for the subsets of odd size, -1 for the non-empty even ones.
    odd = np.bitwise_count(np.arange(1, 2**size)) % 2 == 1
    signs = jnp.asarray(np.where(odd, 1.0, -1.0), terms.dtype)[None, :]
    return largest, signs * jnp.exp(terms - largest[:, None])


def _log_total(
    largest: Float[Array, " sets"], shares: Float[Array, "sets choices"]
) -> Float[Array, " sets"]:
    # No term exceeds the whole, so less than 1 is rounding.
    return largest + jnp.log(jnp.maximum(shares.sum(axis=1), 1))


def layer_weights(sums: Float[Array, "d subsets"]) -> Float[Array, "d subsets"]:
    """Return signed weights w[j, W], the counterpart of P(the predecessors of j are W).

    Variables join in layers: W, then a set T all of whose parents lie in W. A graph
    admits many choices of T, the non-empty subsets of its sources outside W, and
    inclusion-exclusion over T counts it once. Every signed term is at most the sum it
    belongs to, so the relative error is below 3**d times the rounding of a number:
    about 1e-10 at d = 12 in double precision, and in single precision 4e-4 at d = 8.

    The weights sum to 1 for each j, and P(parents of j = S) is the sum over the W that
    hold S of w[j, W] times the share of S among the parent sets within W. `sums` are
    those of `sum_parent_sets`.
    """
    d = sums.shape[0]
    levels = _levels(d)
    products = [_products(sums, level) for level in levels]
    flat = jnp.concatenate([x.reshape(-1) for x in products])
    # Robinson (1973) counts acyclic graphs so; here each is weighed: I(W) = sum over T
    # in W, not empty, of (-1)^(|T| + 1) I(W - T) prod over j in T of a_j(W - T).
    into = jnp.zeros(2**d, sums.dtype)
    for size, level in enumerate(levels[1:], start=1):
        terms = into[level.rest] + flat[level.place]
        total = _log_total(*_signed_sum(terms, size))
        into = into.at[level.masks].set(total, unique_indices=True)
    # The same from the other end: O(W) = sum over T outside W of (-1)^(|T| + 1)
    # O(W + T) prod over j in T of a_j(W); j takes part by the T that hold it.
    out = jnp.zeros(2**d, sums.dtype)
    weights = jnp.zeros((d, 2**d), sums.dtype)
    for size in reversed(range(d)):
        level = levels[size]
        terms = products[size][:, 1:] + out[level.union]
        largest, shares = _signed_sum(terms, d - size)
        total = _log_total(largest, shares)
        out = out.at[level.masks].set(total, unique_indices=True)
        holds = jnp.asarray(_choices(d - size)[1:], sums.dtype)
        each = jnp.matmul(shares, holds, precision="highest")
        scale = jnp.exp(largest + into[level.masks] - into[-1])
        place = (level.outside, level.masks[:, None])
        weights = weights.at[place].set(each * scale[:, None], unique_indices=True)
    return weights
