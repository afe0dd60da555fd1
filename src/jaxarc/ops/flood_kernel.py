"""Flood fill as one kernel: a grid per thread, its rows in registers.

Going round by round would launch many kernels and ask the host after each round whether
to go on; here every grid goes its own rounds until it is done.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import triton
from jaxtyping import Array, UInt

from jaxarc import bits

GRIDS_PER_BLOCK = 128


def reachable_by_kernel(
    open_cells: UInt[Array, "batch h"],
    start: UInt[Array, "batch h"],
    interpret: bool = False,
) -> UInt[Array, "batch h"]:
    """Every open cell joined to `start`, for every row of a batch."""
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
        reached = [
            _fill_run(*row, reverse) for row in zip(passable, before, strict=True)
        ]
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


def _fill_run(passable: Array, reached: Array, reverse: Callable) -> Array:
    """Runs of open cells with a reached one, filled upwards, reversed, filled again."""
    reached = _fill_upwards(passable, reached)
    return reverse(_fill_upwards(reverse(passable), reverse(reached)))


def _fill_upwards(passable: Array, reached: Array) -> Array:
    """Adding a reached cell to its run carries to the run's upper end."""
    return (passable & ~(passable + reached)) | reached


def _reverse_in_one(words: Array) -> Array:
    """The device's own instruction: in steps, compiling would take ten times longer."""
    return triton.elementwise_inline_asm(
        "brev.b32 $0, $1;",
        args=[words],
        constraints="=r,r",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(words.shape, jnp.int32)],
    )[0]


def _reverse_in_steps(words: Array) -> Array:
    """For the interpreter, which knows no instructions."""
    unsigned = jax.lax.bitcast_convert_type(words, jnp.uint32)
    return jax.lax.bitcast_convert_type(bits.reverse(unsigned), jnp.int32)
