"""Cells carried to other cells: one index map, applied to packed rows.

The cell that lands at `(r, c)` comes from row `row_offset ± r` and column
`column_offset ± c` of its source. Rows are gathered as whole words; a column map is a
bit reversal and a shift, so no cell is ever handled on its own.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt

from jaxarc import bits


def carry_columns(
    layers: UInt[Array, "layers rows"],
    offset: Int[Array, ""],
    reverse: Bool[Array, ""],
    wraps: Bool[Array, ""],
    width: Int[Array, ""],
) -> UInt[Array, "layers rows"]:
    """Every word with its bits where they land; what has no source is zero.

    With `wraps`, a bit shifted out of the first `width` comes in at the other side;
    that is for offsets of one.
    """
    length = jnp.iinfo(layers.dtype).bits
    shift = jnp.where(reverse, length - 1 - offset, offset)
    moved = _shifted(jnp.where(reverse, bits.reverse(layers), layers), shift)
    around = _shifted(layers, jnp.where(shift > 0, 1 - width, width - 1))
    goes_round = wraps & (shift != 0)
    return moved | jnp.where(goes_round, around, bits.words(0, layers.dtype))


def _shifted(
    layers: UInt[Array, "layers rows"], by: Int[Array, ""]
) -> UInt[Array, "layers rows"]:
    """Bit `c` becomes what bit `c + by` was."""
    down = layers >> bits.words(jnp.maximum(by, 0), layers.dtype)
    return down << bits.words(jnp.maximum(-by, 0), layers.dtype)


def carry_rows(
    layers: UInt[Array, "layers rows"],
    offset: Int[Array, ""],
    reverse: Bool[Array, ""],
    wraps: Bool[Array, ""],
    size: Int[Array, ""],
    height: int,
) -> UInt[Array, "layers h"]:
    """Every row where it lands, in `height` rows; with `wraps` modulo `size`."""
    rows = layers.shape[-1]
    row = jnp.arange(height, dtype=jnp.int32)
    index = offset + jnp.where(reverse, -row, row)
    around = jnp.where(index < 0, size - 1, jnp.where(index >= size, 0, index))
    index = jnp.where(wraps, around, index)
    inside = (index >= 0) & (index < rows)
    found = jax.lax.platform_dependent(
        layers, index, cpu=_take_rows, default=_take_each
    )
    return jnp.where(inside[None], found, bits.words(0, layers.dtype))


def _take_rows(
    layers: UInt[Array, "layers rows"], index: Int[Array, " h"]
) -> UInt[Array, "layers h"]:
    return jnp.take(layers, index, axis=-1, mode="clip")


def _take_each(
    layers: UInt[Array, "layers rows"], index: Int[Array, " h"]
) -> UInt[Array, "layers h"]:
    """The same, an index for every word: an accelerator fuses it with what follows."""
    everywhere = jnp.broadcast_to(index[None], (layers.shape[0], index.shape[0]))
    return jnp.take_along_axis(layers, everywhere, axis=-1, mode="clip")
