"""Kernels for NVIDIA devices: a grid per thread, its rows in registers.

XLA would launch many programs for either, or compute both for every grid although few
need it. Here a thread whose grid needs nothing reads nothing.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt

from jaxarc import bits

GRIDS_PER_BLOCK = 32  # a warp: a block waits for its slowest grid


def has_kernels() -> bool:
    """Return whether this process compiles for a GPU and its JAX loads by a mask."""
    if jax.default_backend() != "gpu":
        return False
    from jax.experimental.pallas import triton

    return hasattr(triton, "load")


def reachable_by_kernel(
    open_cells: UInt[Array, "batch h"],
    row: Int[Array, " batch"],
    column: Int[Array, " batch"],
    wanted: Bool[Array, " batch"],
    interpret: bool = False,
) -> UInt[Array, "batch h"]:
    """Return the open cells joined to one open cell, or none where none are wanted."""
    height, dtype = open_cells.shape[1], open_cells.dtype
    reverse = _reverse_in_steps if interpret else _reverse_in_one
    kernel = functools.partial(_flood, height=height, reverse=reverse)
    start = row, column, wanted.astype(jnp.int32)
    return _per_grid(kernel, (open_cells, *start), (height,), dtype, interpret)


def transpose_by_kernel(
    planes: UInt[Array, "batch planes h"],
    wanted: Bool[Array, " batch"],
    interpret: bool = False,
) -> UInt[Array, "batch planes h"]:
    """Turn rows into columns where wanted; what other grids hold is undefined."""
    count, height = planes.shape[1:]
    length = jnp.iinfo(planes.dtype).bits
    kernel = functools.partial(_turn, planes=count, height=height, length=length)
    args = planes, wanted.astype(jnp.int32)
    return _per_grid(kernel, args, (count, height), planes.dtype, interpret)


def _per_grid(
    kernel: Callable[..., None],
    args: Sequence[Array],
    shape: tuple[int, ...],
    dtype: Any,
    interpret: bool,
) -> Array:
    """Run a kernel over blocks of grids, and return the array it writes."""
    # Imported here: it is an experimental part of JAX, which only GPUs need.
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    batch = args[0].shape[0]
    blocks = -(-batch // GRIDS_PER_BLOCK)

    def block(rest: tuple[int, ...]) -> Any:
        return pallas.BlockSpec(
            (GRIDS_PER_BLOCK, *rest), lambda index: (index, *(0 for _ in rest))
        )

    room = blocks * GRIDS_PER_BLOCK - batch
    padded = [jnp.pad(x, [(0, room), *[(0, 0)] * (x.ndim - 1)]) for x in args]
    run = pallas.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((batch + room, *shape), dtype),
        grid=(blocks,),
        in_specs=[block(x.shape[1:]) for x in args],
        out_specs=block(shape),
        interpret=interpret,
        # More warps than one would all do the work of the same 32 grids.
        compiler_params=triton.CompilerParams(num_warps=1),
    )
    return run(*padded)[:batch]


def _load(ref: Any, place: tuple[Any, ...], mask: Array) -> Array:
    """Read a word of every grid in the mask, and zeros for the others."""
    from jax.experimental.pallas import triton

    zero = jnp.zeros((), ref.dtype)
    return triton.load(_at(ref, place), mask=mask, other=zero).astype(jnp.int32)


def _at(ref: Any, place: tuple[Any, ...]) -> Any:
    # The interpreter asks an index for its shape, which a plain number does not have.
    return ref.at[(slice(None), *(jnp.int32(index) for index in place))]


def _flood(
    open_ref: Any,
    row_ref: Any,
    column_ref: Any,
    wanted_ref: Any,
    reached_ref: Any,
    *,
    height: int,
    reverse: Callable[[Array], Array],
) -> None:
    rows, wanted = range(height), wanted_ref[:] != 0
    passable = [_load(open_ref, (row,), wanted) for row in rows]
    bit = jnp.int32(1) << column_ref[:]
    place = row_ref[:]
    start = tuple(jnp.where(place == row, bit & passable[row], 0) for row in rows)

    def round_of(carry: tuple[Any, Array]) -> tuple[Any, Array]:
        before, _ = carry
        reached = [
            _fill_run(*row, reverse) for row in zip(passable, before, strict=True)
        ]
        # Two sweeps over all rows, as in `flood`: unrolled, since registers have no
        # index.
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


def _fill_run(
    passable: Array, reached: Array, reverse: Callable[[Array], Array]
) -> Array:
    """Fill runs of open cells that hold a reached one: upwards, then reversed."""
    reached = _fill_upwards(passable, reached)
    return reverse(_fill_upwards(reverse(passable), reverse(reached)))


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


def _turn(
    rows_ref: Any,
    wanted_ref: Any,
    turned_ref: Any,
    *,
    planes: int,
    height: int,
    length: int,
) -> None:
    from jax.experimental.pallas import triton

    wanted = wanted_ref[:] != 0

    def turn_plane(plane: Array, _: Any) -> Any:
        rows = [_load(rows_ref, (plane, row), wanted) for row in range(height)]
        rows = _swap_blocks(rows + [jnp.zeros_like(rows[0])] * (length - height))
        for row in range(height):
            words = rows[row].astype(turned_ref.dtype)
            triton.store(_at(turned_ref, (plane, row)), words, mask=wanted)
        return _

    jax.lax.fori_loop(0, planes, turn_plane, 0)


def _swap_blocks(rows: Sequence[Array]) -> list[Array]:
    """Turn a square of bits, one word of it in each row."""
    # As in `bits.transpose`, with the rows in registers instead of an array.
    rows, step = list(rows), len(rows) // 2
    while step:
        low = bits.alternating(step, jnp.int32)
        for above in (row for row in range(len(rows)) if not row & step):
            upper, lower = rows[above], rows[above + step]
            swap = (upper >> step ^ lower) & low
            rows[above], rows[above + step] = upper ^ swap << step, lower ^ swap
        step //= 2
    return rows
