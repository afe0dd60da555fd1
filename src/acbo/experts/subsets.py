"""Functions of subsets of d variables, as dense tables indexed by bit mask."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from acbo.experts.scores import NEVER
from acbo.graphs.parent_sets import parent_set_membership


@functools.lru_cache(maxsize=32)
def set_masks(d: int, max_parents: int) -> np.ndarray:
    """Bit mask of every candidate parent set of every variable: [d, K]."""
    bits = 1 << np.arange(d)
    held = [parent_set_membership(d, max_parents, j) for j in range(d)]
    return np.stack([(rows * bits).sum(axis=1) for rows in held]).astype(np.int32)


@functools.lru_cache(maxsize=32)
def _places(d: int, max_parents: int) -> np.ndarray:
    """Where in the enumeration of j's sets a mask stands, or K where nowhere."""
    masks = set_masks(d, max_parents)
    places = np.full((d, 2**d), masks.shape[1], np.int32)
    np.put_along_axis(places, masks, np.arange(masks.shape[1])[None, :], axis=1)
    return places


@functools.lru_cache(maxsize=32)
def masks_by_size(d: int) -> tuple[np.ndarray, ...]:
    """The bit masks of the subsets of each size, from 0 to d."""
    masks = np.arange(2**d, dtype=np.int32)
    sizes = np.bitwise_count(masks)
    return tuple(masks[sizes == size] for size in range(d + 1))


def elements_of(masks: np.ndarray, d: int) -> np.ndarray:
    """Elements of sets of one size, ascending: [sets, size]."""
    held = (masks[:, None] >> np.arange(d)) & 1 == 1
    return np.nonzero(held)[1].reshape(len(masks), -1).astype(np.int32)


def add_logs(a: Float[Array, "*n"], b: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """log(exp a + exp b) of finite numbers."""
    return jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(a - b)))


def halves(
    table: Float[Array, "n subsets"], element: int
) -> tuple[Float[Array, "n half"], Float[Array, "n half"]]:
    """The entries of the sets without an element, and of the same sets with it."""
    n, subsets = table.shape
    split = table.reshape(n, -1, 2, 2**element)
    shape = (n, subsets // 2)
    return split[:, :, 0].reshape(shape), split[:, :, 1].reshape(shape)


def _turn(
    table: Float[Array, "n subsets"], combine: Callable[[Array, Array], list[Array]]
) -> Float[Array, "n subsets"]:
    """Combine the entries without and with an element, for one element after another.

    Each round treats the lowest bit and makes it the highest, so that all rounds are
    the same program and the last one restores the order.
    """

    def turn(_: Any, table: Float[Array, "n subsets"]) -> Float[Array, "n subsets"]:
        pair = table.reshape(table.shape[0], -1, 2)
        return jnp.concatenate(combine(pair[:, :, 0], pair[:, :, 1]), axis=1)

    return jax.lax.fori_loop(0, table.shape[1].bit_length() - 1, turn, table)


def sum_subsets(table: Float[Array, "n subsets"]) -> Float[Array, "n subsets"]:
    """Log of the sum over all subsets of each set, given and returned as logs."""
    return _turn(table, lambda without, holding: [without, add_logs(without, holding)])


def sum_supersets(table: Float[Array, "n subsets"]) -> Float[Array, "n subsets"]:
    """Log of the sum over all supersets of each set, given and returned as logs."""
    return _turn(table, lambda without, holding: [add_logs(without, holding), holding])


def sum_parent_sets(
    scores: Float[Array, "d sets"], max_parents: int
) -> Float[Array, "d subsets"]:
    """Log of the summed scores of j's parent sets within W, for every j and W."""
    d = scores.shape[0]
    padded = jnp.pad(scores, ((0, 0), (0, 1)), constant_values=NEVER)
    places = jnp.asarray(_places(d, max_parents))
    return sum_subsets(jnp.take_along_axis(padded, places, axis=1))
