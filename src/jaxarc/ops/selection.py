"""The cells an operation acts on, as bits and as the box around them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt

from jaxarc import bits


class Selection(eqx.Module):
    """Selected cells; the box is meaningless where none are."""

    rows: UInt[Array, " h"]
    top: Int[Array, ""]
    left: Int[Array, ""]
    bottom: Int[Array, ""]
    right: Int[Array, ""]
    count: Int[Array, ""]

    @property
    def empty(self) -> Bool[Array, ""]:
        """Whether no cell is selected."""
        return self.count == 0

    def box(self) -> UInt[Array, " h"]:
        """The bits of the smallest rectangle around the selection."""
        sides = (self.top, self.left, self.bottom, self.right)
        rows = bits.rectangle(self.rows.shape[0], *sides, self.rows.dtype)
        return jnp.where(self.empty, bits.words(0, rows.dtype), rows)


def select_rectangle(
    top: Int[Array, ""],
    left: Int[Array, ""],
    bottom: Int[Array, ""],
    right: Int[Array, ""],
    height: int,
    dtype: Any,
) -> Selection:
    """Every cell of a rectangle; an empty one where a side lies before its opposite."""
    rows = bits.rectangle(height, top, left, bottom, right, dtype)
    count = jnp.maximum(bottom - top + 1, 0) * jnp.maximum(right - left + 1, 0)
    return Selection(rows, top, left, bottom, right, count)


def select_rows(rows: UInt[Array, " h"]) -> Selection:
    """Any cells at all."""
    filled = rows != 0
    height = rows.shape[0]
    columns = jax.lax.reduce(
        rows, bits.words(0, rows.dtype), jax.lax.bitwise_or, dimensions=(0,)
    )
    lowest = columns & (bits.words(0, rows.dtype) - columns)
    length = jnp.iinfo(rows.dtype).bits
    return Selection(
        rows,
        jnp.argmax(filled).astype(jnp.int32),
        jax.lax.population_count(lowest - bits.words(1, rows.dtype)).astype(jnp.int32),
        height - 1 - jnp.argmax(filled[::-1]).astype(jnp.int32),
        length - 1 - jax.lax.clz(columns).astype(jnp.int32),
        bits.count(rows),
    )


def or_everything(
    selection: Selection, size: Int[Array, " two"], active: UInt[Array, " h"]
) -> Selection:
    """The selection, or the whole active area where nothing is selected."""
    zero = jnp.zeros((), jnp.int32)
    height, width = size[0], size[1]
    whole = Selection(active, zero, zero, height - 1, width - 1, height * width)
    empty = selection.empty
    return jax.tree.map(lambda a, b: jnp.where(empty, a, b), whole, selection)
