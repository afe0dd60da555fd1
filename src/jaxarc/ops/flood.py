"""Flood fill: the four-connected component of one cell, exactly, however it winds.

A round fills every run of a row that holds a reached cell, then carries reached cells
down and up through open cells; rounds repeat until nothing changes.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, UInt

from jaxarc import bits


def component(
    planes: UInt[Array, "planes h"],
    active: UInt[Array, " h"],
    start: UInt[Array, " h"],
) -> UInt[Array, " h"]:
    """The active cells joined to the one cell of `start` and of its color.

    Nothing where `start` is empty.
    """
    return reachable(alike(planes, active, start), start)


def alike(
    planes: UInt[Array, "planes h"],
    active: UInt[Array, " h"],
    start: UInt[Array, " h"],
) -> UInt[Array, " h"]:
    """The active cells of the color of the one cell in `start`."""
    same = active
    for plane in planes:
        present = jnp.any((plane & start) != 0)
        same = same & jnp.where(present, plane, ~plane)
    return same


@jax.custom_batching.custom_vmap
def reachable(
    open_cells: UInt[Array, " h"], start: UInt[Array, " h"]
) -> UInt[Array, " h"]:
    """Every open cell joined to `start` by open cells that share a side."""
    return reachable_in_batch(open_cells[None], start[None])[0]


@reachable.def_vmap
def _reachable_rule(axis_size, in_batched, open_cells, start):
    """A mapped flood is one program over the batch, however the rows are many."""
    spread = lambda x, mapped: (
        x if mapped else jnp.broadcast_to(x[None], (axis_size, *x.shape))
    )
    grids = [spread(x, m) for x, m in zip((open_cells, start), in_batched, strict=True)]
    return reachable_in_batch(*grids), True


def reachable_in_batch(
    open_cells: UInt[Array, "batch h"], start: UInt[Array, "batch h"]
) -> UInt[Array, "batch h"]:
    """`reachable` for every row of a batch.

    On NVIDIA devices one kernel keeps each grid in registers until it is done;
    elsewhere the whole batch goes round by round.
    """
    if jax.default_backend() == "gpu":
        from jaxarc.ops.flood_kernel import reachable_by_kernel

        return jax.lax.platform_dependent(
            open_cells, start, cuda=reachable_by_kernel, default=reachable_by_rounds
        )
    return reachable_by_rounds(open_cells, start)


def reachable_by_rounds(
    open_cells: UInt[Array, "batch h"], start: UInt[Array, "batch h"]
) -> UInt[Array, "batch h"]:
    """Rounds over the whole batch, rows before environments so that lanes are full."""
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
    """Reached cells carried down, then up, as far as open cells go."""

    def row(above, here):
        free, seen = here
        below = seen | (free & above)
        return below, below

    none = jnp.zeros_like(reached[0])
    _, down = jax.lax.scan(row, none, (passable, reached))
    _, both = jax.lax.scan(row, none, (passable, down), reverse=True)
    return both


def fill_runs(
    passable: UInt[Array, "*shape"], reached: UInt[Array, "*shape"]
) -> UInt[Array, "*shape"]:
    """Every run of ones in `passable` that holds a one of `reached`, filled.

    Adding a reached cell to its run carries to the run's upper end, so the bits that
    changed are those above it; downwards the distance is doubled step by step.
    """
    reached = (passable & ~(passable + reached)) | reached
    passage, distance = passable, 1
    while distance < jnp.iinfo(reached.dtype).bits:
        step = bits.words(distance, reached.dtype)
        reached = reached | (passage & reached >> step)
        passage = passage & passage >> step
        distance *= 2
    return reached
