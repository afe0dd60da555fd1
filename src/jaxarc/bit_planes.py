"""Grids as bits: a row of cells is one word, a color four bit planes.

Bit `c` of a word is column `c`, so a column shift is a word shift, a selection costs
one word a row, and a 30x30 grid 480 bytes. Planes are ordered from the lowest bit of
the color; cells outside a grid's size hold zeros. These functions work on NumPy and on
JAX arrays, with any number of leading axes, and do not import JAX.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Shaped, UInt

PLANES = 4
PADDING = -1
LARGEST_SIDE = 32


def word_type(height: int, width: int) -> np.dtype:
    """Return the smallest unsigned type with a bit for every row and every column."""
    side = max(height, width)
    if min(height, width) < 1 or side > LARGEST_SIDE:
        raise ValueError(
            f"a grid of {height} x {width} cells cannot be packed: both sides must be "
            f"1 to {LARGEST_SIDE} (ARC grids go up to 30 x 30)"
        )
    # A large batch is bound by memory traffic, which narrow words keep small.
    return np.dtype(np.uint8 if side <= 8 else np.uint16 if side <= 16 else np.uint32)


def pack_rows(cells: Shaped[Any, "*batch h w"]) -> UInt[Any, "*batch h"]:
    """Pack True cells as bits."""
    height, width = cells.shape[-2:]
    dtype = word_type(height, width)
    weights = (1 << np.arange(width, dtype=np.uint64)).astype(dtype)
    xp = _namespace(cells)
    weighted = xp.where(cells, along_last(weights, cells.ndim), dtype.type(0))
    return xp.sum(weighted, axis=-1, dtype=dtype)


def unpack_rows(rows: UInt[Any, "*batch h"], width: int) -> Bool[Any, "*batch h w"]:
    """Unpack bits to cells."""
    xp = _namespace(rows)
    columns = along_last(xp.arange(width, dtype=rows.dtype), rows.ndim + 1)
    return (rows[..., None] >> columns & rows.dtype.type(1)).astype(bool)


def pack_grid(grid: Int[Any, "*batch h w"]) -> UInt[Any, "*batch planes h"]:
    """Pack colors as planes; padding becomes zeros."""
    planes = [
        pack_rows((grid >= 0) & ((grid >> bit) & 1 == 1)) for bit in range(PLANES)
    ]
    xp = _namespace(grid)
    return xp.stack(planes, axis=-2)


def unpack_grid(
    planes: UInt[Any, "*batch planes h"], active: UInt[Any, "*batch h"], width: int
) -> Int[Any, "*batch h w"]:
    """Unpack planes to int32 colors, with -1 where the active bits are zero."""
    xp = _namespace(planes)
    dtype = planes.dtype.type
    columns = along_last(xp.arange(width, dtype=planes.dtype), planes.ndim)
    colors = dtype(0)
    for bit in range(PLANES):
        cell = planes[..., bit, :, None] >> columns & dtype(1)
        colors = colors | cell << dtype(bit)
    inside = active[..., None] >> columns & dtype(1)
    return xp.where(inside == 1, colors.astype(xp.int32), xp.int32(PADDING))


def along_last(values: Any, rank: int) -> Any:
    """Return a vector as the last of `rank` axes."""
    return values.reshape((1,) * (rank - 1) + values.shape)


def _namespace(array: Any) -> Any:
    """Return `numpy` or `jax.numpy`, whichever the array belongs to."""
    return np if isinstance(array, np.ndarray) else array.__array_namespace__()
