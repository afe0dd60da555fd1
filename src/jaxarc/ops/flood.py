"""Flood fill: the four-connected component of one cell, exactly, however it winds.

A round fills every run of a row that holds a reached cell, then carries reached cells
down and up through open cells; rounds repeat until nothing changes.
"""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt

from jaxarc import bits
from jaxarc.bits import Flag, Index, PackedGrid, Rows
from jaxarc.ops.gpu_kernels import has_kernels, reachable_by_kernel

Mazes: TypeAlias = UInt[Array, "batch h"]
Places: TypeAlias = Int[Array, " batch"]
Flags: TypeAlias = Bool[Array, " batch"]


def component(grid: PackedGrid, row: Index, column: Index, wanted: Flag) -> Rows:
    """Return the active cells joined to one active cell and of its color.

    Nothing where it is not wanted, which then costs nothing.
    """
    return reachable(alike(grid, row, column), row, column, wanted)


def alike(grid: PackedGrid, row: Index, column: Index) -> Rows:
    """Return the active cells of the color of one cell."""
    # Looked up by its place: the selected row is found by a search otherwise, which a
    # GPU does with one thread per grid.
    planes, same = grid.planes, grid.active()
    color = planes.at[:, row].get(mode="clip") >> bits.words(column, planes.dtype)
    for plane, present in zip(planes, color & bits.words(1, color.dtype), strict=True):
        same = same & jnp.where(present == 1, plane, ~plane)
    return same


@jax.custom_batching.custom_vmap
def reachable(open_cells: Rows, row: Index, column: Index, wanted: Flag) -> Rows:
    """Return every open cell joined to one by open cells that share a side."""
    one = jax.tree.map(lambda x: x[None], (open_cells, row, column, wanted))
    return reachable_in_batch(*one)[0]


@reachable.def_vmap
def _reachable_rule(
    axis_size: int, in_batched: Sequence[bool], *args: Array
) -> tuple[Array, bool]:
    """Flood a batch in one program, however many rows it has."""
    return reachable_in_batch(*spread(axis_size, in_batched, args)), True


def spread(
    axis_size: int, in_batched: Sequence[bool], args: Sequence[Array]
) -> list[Array]:
    """Return the arguments of a rule for `vmap` with the axis that some lack."""
    along = lambda x: jnp.broadcast_to(x[None], (axis_size, *x.shape))
    return [
        x if mapped else along(x) for x, mapped in zip(args, in_batched, strict=True)
    ]


def reachable_in_batch(
    open_cells: Mazes, row: Places, column: Places, wanted: Flags
) -> Mazes:
    """Return `reachable` for every row of a batch.

    On NVIDIA devices one kernel keeps each grid in registers until it is done;
    elsewhere the whole batch goes round by round.
    """
    args = open_cells, row, column, wanted
    if has_kernels():
        return jax.lax.platform_dependent(
            *args, cuda=reachable_by_kernel, default=reachable_by_rounds
        )
    return reachable_by_rounds(*args)


def reachable_by_rounds(
    open_cells: Mazes, row: Places, column: Places, wanted: Flags
) -> Mazes:
    """Go in rounds over the batch, rows before environments to fill the lanes."""
    dtype = open_cells.dtype
    place = jnp.arange(open_cells.shape[1], dtype=jnp.int32)[:, None] == row[None]
    bit = bits.words(1, dtype) << bits.words(column, dtype)
    start = jnp.where(place & wanted[None], bit[None], bits.words(0, dtype))
    start = start & open_cells.T
    passable = open_cells.T

    def round_of(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = carry
        grown = _fill_columns(passable, fill_runs(passable, reached))
        return grown, jnp.any(grown != reached)

    reached, _ = jax.lax.while_loop(
        lambda carry: carry[1], round_of, (start, jnp.any(start != 0))
    )
    return reached.T


def _fill_columns(
    passable: UInt[Array, "h batch"], reached: UInt[Array, "h batch"]
) -> UInt[Array, "h batch"]:
    """Carry reached cells down, then up, as far as open cells go."""

    def row(above: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        free, seen = here
        below = seen | (free & above)
        return below, below

    # Two sweeps reach the ends of a column at once; a step to the next row per round
    # would take as many rounds as the column is long.
    none = jnp.zeros_like(reached[0])
    _, down = jax.lax.scan(row, none, (passable, reached))
    _, both = jax.lax.scan(row, none, (passable, down), reverse=True)
    return both


def fill_runs(
    passable: UInt[Array, "*shape"], reached: UInt[Array, "*shape"]
) -> UInt[Array, "*shape"]:
    """Return every run of ones in `passable` that holds a one of `reached`, filled.

    Adding a reached cell to its run carries to the run's upper end, so the bits that
    changed are those above it; downwards the distance is doubled step by step.
    """
    # Upwards one addition carries along a run; downwards nothing does, so the distance
    # doubles, as in the Kogge-Stone fill of chess programs.
    # A second reached cell of a run survives the sum as a one, which the last union
    # covers; a carry out of the word is dropped, as the run ends there too.
    reached = (passable & ~(passable + reached)) | reached
    passage, distance = passable, 1
    while distance < jnp.iinfo(reached.dtype).bits:
        step = bits.words(distance, reached.dtype)
        reached = reached | (passage & reached >> step)
        passage = passage & passage >> step
        distance *= 2
    return reached
