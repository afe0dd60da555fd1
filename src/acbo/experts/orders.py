"""Sums over all orders of the variables (Koivisto and Sood, 2004).

An order and, for each variable, parents among its predecessors: graphs that fit more
orders count more often. All sums are of positive terms, so single precision does.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from acbo.experts.scores import NEVER
from acbo.experts.subsets import masks_by_size


@functools.lru_cache(maxsize=32)
def _steps(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each size: its sets W, their last elements and what W was before.

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
    """One pass over the sets by size, upward for `sum_orders_into`, else downward."""
    d, subsets = sums.shape
    masks, last, before = (jnp.asarray(x) for x in _steps(d))
    padded = jnp.pad(sums, ((0, 1), (0, 0)), constant_values=NEVER)
    full = subsets - 1

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
    """Log weight of all orders of W with their graphs, for every W.

    `sums` are those of `acbo.experts.subsets.sum_parent_sets`.
    """
    return _sum_levels(sums, outward=False)


def sum_orders_out(sums: Float[Array, "d subsets"]) -> Float[Array, " subsets"]:
    """Log weight of all orders of the rest, with their graphs, after W came first."""
    return _sum_levels(sums, outward=True)


@functools.lru_cache(maxsize=32)
def _with_each(d: int) -> tuple[np.ndarray, np.ndarray]:
    """W with j added, and whether j was in W already: [d, 2**d] each."""
    masks = np.arange(2**d, dtype=np.int32)
    bits = (1 << np.arange(d, dtype=np.int32))[:, None]
    return masks | bits, (masks & bits) > 0


def predecessor_weights(sums: Float[Array, "d subsets"]) -> Float[Array, "d subsets"]:
    """log P(the predecessors of j are W) for every j and W."""
    added, held = _with_each(sums.shape[0])
    into, out = sum_orders_into(sums), sum_orders_out(sums)
    found = into[None, :] + sums + out[added] - into[-1]
    return jnp.where(held, NEVER, jnp.maximum(found, NEVER))
