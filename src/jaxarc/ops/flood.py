"""Flood fill: the four-connected component of one cell, exactly, however it winds.

A round fills every run of a row that holds a reached cell, then carries reached cells
down and up through open cells; rounds repeat until nothing changes.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, UInt

from jaxarc import bits

GRIDS_PER_BLOCK = 128  # a grid per thread, four warps of 32


def component(
    planes: UInt[Array, "planes h"],
    active: UInt[Array, " h"],
    start: UInt[Array, " h"],
) -> UInt[Array, " h"]:
    """Return the active cells joined to the one cell of `start` and of its color.

    Nothing where `start` is empty.
    """
    return reachable(alike(planes, active, start), start)


def alike(
    planes: UInt[Array, "planes h"],
    active: UInt[Array, " h"],
    start: UInt[Array, " h"],
) -> UInt[Array, " h"]:
    """Return the active cells of the color of the one cell in `start`."""
    same = active
    for plane in planes:
        present = jnp.any((plane & start) != 0)
        same = same & jnp.where(present, plane, ~plane)
    return same


@jax.custom_batching.custom_vmap
def reachable(
    open_cells: UInt[Array, " h"], start: UInt[Array, " h"]
) -> UInt[Array, " h"]:
    """Return every open cell joined to `start` by open cells that share a side."""
    return reachable_in_batch(open_cells[None], start[None])[0]


@reachable.def_vmap
def _reachable_rule(axis_size, in_batched, open_cells, start):
    """Flood a batch in one program, however many rows it has."""
    spread = lambda x, mapped: (
        x if mapped else jnp.broadcast_to(x[None], (axis_size, *x.shape))
    )
    grids = [spread(x, m) for x, m in zip((open_cells, start), in_batched, strict=True)]
    return reachable_in_batch(*grids), True


def reachable_in_batch(
    open_cells: UInt[Array, "batch h"], start: UInt[Array, "batch h"]
) -> UInt[Array, "batch h"]:
    """Return `reachable` for every row of a batch.

    On NVIDIA devices one kernel keeps each grid in registers until it is done;
    elsewhere the whole batch goes round by round.
    """
    if jax.default_backend() == "gpu":
        return jax.lax.platform_dependent(
            open_cells, start, cuda=reachable_by_kernel, default=reachable_by_rounds
        )
    return reachable_by_rounds(open_cells, start)


def reachable_by_rounds(
    open_cells: UInt[Array, "batch h"], start: UInt[Array, "batch h"]
) -> UInt[Array, "batch h"]:
    """Go in rounds over the batch, rows before environments to fill the lanes."""
    passable = open_cells.T

    def round_of(carry):
        reached, _ = carry
        grown = _fill_columns(passable, fill_runs(passable, reached))
        return grown, jnp.any(grown != reached)

    reached, _ = jax.lax.while_loop(
        lambda carry: carry[1], round_of, (start.T, jnp.any(start != 0))
    )
    return reached.T


def _fill_columns(
    passable: UInt[Array, "h batch"], reached: UInt[Array, "h batch"]
) -> UInt[Array, "h batch"]:
    """Carry reached cells down, then up, as far as open cells go."""

    def row(above, here):
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
    reached = (passable & ~(passable + reached)) | reached
    passage, distance = passable, 1
    while distance < jnp.iinfo(reached.dtype).bits:
        step = bits.words(distance, reached.dtype)
        reached = reached | (passage & reached >> step)
        passage = passage & passage >> step
        distance *= 2
    return reached


def reachable_by_kernel(
    open_cells: UInt[Array, "batch h"],
    start: UInt[Array, "batch h"],
    interpret: bool = False,
) -> UInt[Array, "batch h"]:
    """Return every open cell joined to `start`, for every row of a batch.

    A grid per thread, its rows in registers: going round by round would launch many
    kernels and ask the host after each round whether to go on.
    """
    # Imported here: it is an experimental part of JAX, which only GPUs need.
    from jax.experimental import pallas

    batch, height = start.shape
    blocks = -(-batch // GRIDS_PER_BLOCK)
    room = ((0, blocks * GRIDS_PER_BLOCK - batch), (0, 0))
    block = pallas.BlockSpec((GRIDS_PER_BLOCK, height), lambda index: (index, 0))
    reverse = _reverse_in_steps if interpret else _reverse_in_one
    fill = pallas.pallas_call(
        functools.partial(_go_rounds, height=height, reverse=reverse),
        out_shape=jax.ShapeDtypeStruct((blocks * GRIDS_PER_BLOCK, height), start.dtype),
        grid=(blocks,),
        in_specs=[block, block],
        out_specs=block,
        interpret=interpret,
    )
    return fill(jnp.pad(open_cells, room), jnp.pad(start, room))[:batch]


def _go_rounds(
    open_ref: Any, start_ref: Any, reached_ref: Any, *, height: int, reverse: Callable
) -> None:
    rows = range(height)
    passable = [open_ref[:, row].astype(jnp.int32) for row in rows]
    start = tuple(start_ref[:, row].astype(jnp.int32) for row in rows)

    def round_of(carry):
        before, _ = carry
        reached = []
        for free, seen in zip(passable, before, strict=True):
            # Upwards by a carry; downwards the same on the reversed words.
            up = _fill_upwards(free, seen)
            reached.append(reverse(_fill_upwards(reverse(free), reverse(up))))
        for row in rows[1:]:
            reached[row] = reached[row] | (passable[row] & reached[row - 1])
        for row in reversed(rows[:-1]):
            reached[row] = reached[row] | (passable[row] & reached[row + 1])
        changes = [a ^ b for a, b in zip(before, reached, strict=True)]
        changed = functools.reduce(jnp.bitwise_or, changes) != 0
        return tuple(reached), jnp.max(changed.astype(jnp.int32))

    reached, _ = jax.lax.while_loop(
        lambda carry: carry[1] > 0, round_of, (start, jnp.int32(1))
    )
    for row in rows:
        reached_ref[:, row] = reached[row].astype(reached_ref.dtype)


def _fill_upwards(passable: Array, reached: Array) -> Array:
    """Fill to the upper end of a run: adding a reached cell carries that far."""
    return (passable & ~(passable + reached)) | reached


def _reverse_in_one(words: Array) -> Array:
    """Reverse by the device's own instruction; in steps, compiling takes 10x longer."""
    from jax.experimental.pallas import triton

    return triton.elementwise_inline_asm(
        "brev.b32 $0, $1;",
        args=[words],
        constraints="=r,r",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(words.shape, jnp.int32)],
    )[0]


def _reverse_in_steps(words: Array) -> Array:
    """Reverse for the interpreter, which knows no instructions."""
    unsigned = jax.lax.bitcast_convert_type(words, jnp.uint32)
    return jax.lax.bitcast_convert_type(bits.reverse(unsigned), jnp.int32)
