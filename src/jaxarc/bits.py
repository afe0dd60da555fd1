"""Arithmetic on grids of bits (`jaxarc.bit_planes`), compiled: shifts, masks, turns.

Every function works on any number of leading axes unless it says otherwise.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt

# All that is known of bits under one name, `bits`: renamed to themselves, which type
# checkers take for an export.
from jaxarc.bit_planes import LARGEST_SIDE as LARGEST_SIDE
from jaxarc.bit_planes import PADDING as PADDING
from jaxarc.bit_planes import PLANES, along_last
from jaxarc.bit_planes import pack_grid as pack_grid
from jaxarc.bit_planes import pack_rows as pack_rows
from jaxarc.bit_planes import unpack_grid as unpack_grid
from jaxarc.bit_planes import unpack_rows as unpack_rows
from jaxarc.bit_planes import word_type as word_type

P = ParamSpec("P")
T = TypeVar("T")
Index: TypeAlias = Int[Array, ""]
Flag: TypeAlias = Bool[Array, ""]
Size: TypeAlias = Int[Array, " two"]  # height and width
Rows: TypeAlias = UInt[Array, " h"]  # a set of cells
Planes: TypeAlias = UInt[Array, "planes h"]  # a color for every cell


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of arrays and modules that is also called on its own.

    Otherwise each of its operations would be a program there, compiled for every shape.
    In other programs it leaves no trace.
    """
    return cast(Callable[P, T], jax.jit(function, inline=True))


def words(value: Any, dtype: Any) -> Any:
    """Return a constant or an index as words of this type."""
    if isinstance(value, int):
        return np.dtype(dtype).type(value)
    return jnp.asarray(value).astype(dtype)


def below(count: Int[Array, "*batch"], dtype: Any) -> UInt[Array, "*batch"]:
    """Return a word whose lowest `count` bits are ones, from none of them to all."""
    length = jnp.iinfo(dtype).bits
    ones = words(int(jnp.iinfo(dtype).max), dtype)
    # A shift by the whole word is undefined in XLA, so zero is asked for by `where`.
    shift = words(jnp.clip(length - count, 0, length - 1), dtype)
    return jnp.where(count > 0, ones >> shift, words(0, dtype))


def span(
    first: Int[Array, "*batch"], last: Int[Array, "*batch"], dtype: Any
) -> UInt[Array, "*batch"]:
    """Return a word with ones from bit `first` to bit `last`, both included."""
    return below(last + 1, dtype) & ~below(first, dtype)


def rectangle(
    height: int, top: Index, left: Index, bottom: Index, right: Index, dtype: Any
) -> Rows:
    """Return the bits of a rectangle, all four sides included."""
    row = jnp.arange(height, dtype=jnp.int32)
    inside = (row >= top) & (row <= bottom)
    return jnp.where(inside, span(left, right, dtype), words(0, dtype))


def active_rows(
    size: Int[Array, "*batch two"], height: int, dtype: Any
) -> UInt[Array, "*batch h"]:
    """Return the bits of the active area: an anchored rectangle of this size."""
    row = along_last(jnp.arange(height, dtype=jnp.int32), size.ndim)
    filled = below(size[..., 1:2], dtype)
    return jnp.where(row < size[..., 0:1], filled, words(0, dtype))


def constant(color: Index, rows: Rows) -> Planes:
    """Return planes of one color on the cells of `rows` and zeros elsewhere."""
    bit = jnp.arange(PLANES, dtype=jnp.int32)
    present = (color.astype(jnp.int32) >> bit) & 1 == 1
    return jnp.where(present[:, None], rows[None], words(0, rows.dtype))


def write(planes: Planes, rows: Rows, values: Planes) -> Planes:
    """Return the one masked write: `values` on the cells of `rows`, the rest kept."""
    return (planes & ~rows[None]) | (values & rows[None])


def reverse(row: UInt[Array, "*shape"]) -> UInt[Array, "*shape"]:
    """Reverse the bits of every word, by swapping ever larger blocks."""
    # Warren, Hacker's Delight, 7-1: log2(bits) rounds of masked shifts.
    length = jnp.iinfo(row.dtype).bits
    step = 1
    while step < length:
        low = alternating(step, row.dtype)
        shift = words(step, row.dtype)
        row = (row >> shift & low) | ((row & low) << shift)
        step *= 2
    return row


def transpose(rows: UInt[Array, "*batch h"]) -> UInt[Array, "*batch h"]:
    """Turn rows into columns: bit `c` of row `r` moves to bit `r` of row `c`.

    A processor swaps ever smaller blocks; an accelerator, where each round of swaps
    would be a pass through memory, collects the bits of every column at once.
    """
    return jax.lax.platform_dependent(
        rows, cpu=_transpose_by_blocks, default=_transpose_by_bits
    )


def _transpose_by_blocks(rows: UInt[Array, "*batch h"]) -> UInt[Array, "*batch h"]:
    """Swap off-diagonal blocks of a square as large as the word."""
    # Warren, Hacker's Delight, 7-3: swap the off-diagonal halves, then their halves.
    *batch, height = rows.shape
    length = jnp.iinfo(rows.dtype).bits
    square = jnp.pad(rows, [(0, 0)] * len(batch) + [(0, length - height)])
    step = length // 2
    while step:
        low, shift = alternating(step, rows.dtype), words(step, rows.dtype)
        blocks = square.reshape(*batch, length // (2 * step), 2, step)
        upper, lower = blocks[..., 0, :], blocks[..., 1, :]
        swap = (upper >> shift ^ lower) & low
        blocks = jnp.stack([upper ^ swap << shift, lower ^ swap], axis=-2)
        square = blocks.reshape(*batch, length)
        step //= 2
    return square[..., :height]


def _transpose_by_bits(rows: UInt[Array, "*batch h"]) -> UInt[Array, "*batch h"]:
    height, dtype = rows.shape[-1], rows.dtype
    column = along_last(jnp.arange(height, dtype=dtype), rows.ndim)[..., None]
    place = along_last(jnp.arange(height, dtype=dtype), rows.ndim + 1)
    picked = (rows[..., None, :] >> column & words(1, dtype)) << place
    # No two terms share a bit, so that their sum is their union and nothing carries.
    return jnp.sum(picked, axis=-1, dtype=dtype)


def count(rows: UInt[Array, "*batch h"]) -> Int[Array, "*batch"]:
    """Return how many bits are ones."""
    return jnp.sum(jax.lax.population_count(rows).astype(jnp.int32), axis=-1)


def alternating(step: int, dtype: Any) -> Any:
    """Return a word of `step` ones, `step` zeros and so on, from the lowest bit."""
    length = jnp.iinfo(dtype).bits
    ones = (1 << step) - 1
    return words(sum(ones << at for at in range(0, length, 2 * step)), dtype)


class PackedGrid(eqx.Module):
    """A grid as bit planes, with its size; `width` is the padded width."""

    planes: UInt[Array, "*batch planes h"]
    size: Int[Array, "*batch two"]
    width: int = eqx.field(static=True)

    def active(self) -> UInt[Array, "*batch h"]:
        """Return the bits of the cells inside the size."""
        return active_rows(self.size, self.planes.shape[-1], self.planes.dtype)

    @compiled
    def cells(self) -> Int[Array, "*batch h w"]:
        """Return the colors, -1 outside the size."""
        return unpack_grid(self.planes, self.active(), self.width)

    @compiled
    def mask(self) -> Bool[Array, "*batch h w"]:
        """Return True on the cells inside the size."""
        return unpack_rows(self.active(), self.width)


def similarity(one: PackedGrid, other: PackedGrid) -> Float[Array, "*batch"]:
    """Return the equal cells over the cells that either grid has.

    1 exactly when size and content are the same; 0 when both are empty.
    """
    # Over the union of both: over the overlap alone, a grid of the wrong size that
    # agrees there would count as solved.
    planes, wanted = one.planes, other.planes
    common = jnp.minimum(one.size, other.size)
    shared = active_rows(common, planes.shape[-1], planes.dtype)
    # Colors are equal where all four of their bits are: an XOR per plane compares a row
    # of cells at once, and no cell is unpacked.
    differs = words(0, planes.dtype)
    for plane in range(PLANES):
        differs = differs | (planes[..., plane, :] ^ wanted[..., plane, :])
    # Without the barrier a GPU gives every environment one thread, which reads all of
    # its words one by one: 87 instead of 25 microseconds for 65,536 of them.
    matches = count(jax.lax.optimization_barrier(shared & ~differs))
    # Grids are anchored at the top left, so they overlap in the smaller sides.
    union = _area(one.size) + _area(other.size) - _area(common)
    return matches.astype(jnp.float32) / jnp.maximum(union, 1).astype(jnp.float32)


def _area(size: Int[Array, "*batch two"]) -> Int[Array, "*batch"]:
    return size[..., 0] * size[..., 1]
