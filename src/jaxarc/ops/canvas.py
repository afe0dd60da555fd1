"""What operations act on, and the one mechanism that applies them all.

An effect paints cells, moves cells by one index map, resizes or copies. The cell that
lands at `(r, c)` comes from row `row_offset ± r` and column `column_offset ± c` of its
source. Rows are gathered as whole words; a column map is a bit reversal and a shift, so
no cell is ever handled on its own.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt

from jaxarc import bits
from jaxarc.bits import Flag, Index, PackedGrid, Planes, Rows, Size
from jaxarc.ops.flood import component, spread
from jaxarc.ops.gpu_kernels import has_kernels, transpose_by_kernel
from jaxarc.ops.operations import (
    TERMS,
    ARCLEOperationType,
    Cells,
    Effect,
    Landing,
    Source,
)


class Canvas(PackedGrid):
    """A grid being edited, and what was copied from it.

    The clipboard's last plane marks the cells that hold content, so that black is
    content too; `origin` is the top left corner of that content.
    """

    clipboard: UInt[Array, "*batch layers h"]
    origin: Int[Array, "*batch two"]


def blank_canvas(grid: PackedGrid) -> Canvas:
    """Return a grid with nothing on its clipboard."""
    *batch, count, height = grid.planes.shape
    clipboard = jnp.zeros((*batch, count + 1, height), grid.planes.dtype)
    origin = jnp.zeros((*batch, 2), jnp.int32)
    return Canvas(grid.planes, grid.size, grid.width, clipboard, origin)


class Selection(eqx.Module):
    """Selected cells; the box is meaningless where none are."""

    rows: Rows
    top: Index
    left: Index
    bottom: Index
    right: Index
    count: Index

    @property
    def empty(self) -> Flag:
        """Whether no cell is selected."""
        return self.count == 0

    def box(self) -> Rows:
        """Return the bits of the smallest rectangle around the selection."""
        sides = (self.top, self.left, self.bottom, self.right)
        rows = bits.rectangle(self.rows.shape[0], *sides, self.rows.dtype)
        return jnp.where(self.empty, bits.words(0, rows.dtype), rows)


def select_rectangle(
    top: Index, left: Index, bottom: Index, right: Index, height: int, dtype: Any
) -> Selection:
    """Select a rectangle; it is empty where a side lies before its opposite."""
    rows = bits.rectangle(height, top, left, bottom, right, dtype)
    count = jnp.maximum(bottom - top + 1, 0) * jnp.maximum(right - left + 1, 0)
    return Selection(rows, top, left, bottom, right, count)


def select_rows(rows: Rows) -> Selection:
    """Select the cells whose bits are set."""
    filled = rows != 0
    height = rows.shape[0]
    columns = jax.lax.reduce(
        rows, bits.words(0, rows.dtype), jax.lax.bitwise_or, dimensions=(0,)
    )
    # x & -x is the lowest one of x, and x - 1 of that has as many ones as there are
    # zeros below it: XLA counts leading zeros, not trailing ones.
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


def or_everything(selection: Selection, canvas: PackedGrid) -> Selection:
    """Return the selection, or the whole active area where nothing is selected."""
    zero = jnp.zeros((), jnp.int32)
    height, width = canvas.size[0], canvas.size[1]
    whole = Selection(
        canvas.active(), zero, zero, height - 1, width - 1, height * width
    )
    empty = selection.empty
    return jax.tree.map(lambda a, b: jnp.where(empty, a, b), whole, selection)


def carry_columns(
    layers: UInt[Array, "layers rows"],
    offset: Index,
    reverse: Flag,
    wraps: Flag,
    width: Index,
) -> UInt[Array, "layers rows"]:
    """Return every word with its bits where they land; what has no source is zero.

    With `wraps`, a bit shifted out of the first `width` comes in at the other side;
    that is for offsets of one.
    """
    length = jnp.iinfo(layers.dtype).bits
    shift = jnp.where(reverse, length - 1 - offset, offset)
    moved = _shifted(jnp.where(reverse, bits.reverse(layers), layers), shift)
    # What leaves at one side by one comes back shifted by the width less one.
    around = _shifted(layers, jnp.where(shift > 0, 1 - width, width - 1))
    goes_round = wraps & (shift != 0)
    return moved | jnp.where(goes_round, around, bits.words(0, layers.dtype))


def _shifted(
    layers: UInt[Array, "layers rows"], by: Index
) -> UInt[Array, "layers rows"]:
    """Shift every word: bit `c` becomes what bit `c + by` was."""
    down = layers >> bits.words(jnp.maximum(by, 0), layers.dtype)
    return down << bits.words(jnp.maximum(-by, 0), layers.dtype)


def carry_rows(
    layers: UInt[Array, "layers rows"],
    offset: Index,
    reverse: Flag,
    wraps: Flag,
    size: Index,
    height: int,
) -> UInt[Array, "layers h"]:
    """Return every row where it lands, in `height` rows; with `wraps` modulo `size`."""
    rows = layers.shape[-1]
    row = jnp.arange(height, dtype=jnp.int32)
    index = offset + jnp.where(reverse, -row, row)
    around = jnp.where(index < 0, size - 1, jnp.where(index >= size, 0, index))
    index = jnp.where(wraps, around, index)
    inside = (index >= 0) & (index < rows)

    def take_each(layers: Array, index: Array) -> Array:
        everywhere = jnp.broadcast_to(index[None], (layers.shape[0], height))
        return jnp.take_along_axis(layers, everywhere, axis=-1, mode="clip")

    # A gather of whole rows is fast on a CPU; an accelerator would not fuse it, as it
    # does the same gather with an index for every word.
    take_rows = lambda layers, index: jnp.take(layers, index, axis=-1, mode="clip")
    found = jax.lax.platform_dependent(layers, index, cpu=take_rows, default=take_each)
    return jnp.where(inside[None], found, bits.words(0, layers.dtype))


class EffectRow(eqx.Module):
    """One row of the table of effects, traced; in the order of `Effect.numbers`."""

    paint: Index
    color: Index
    landing: Index
    source: Index
    row_reverse: Flag
    column_reverse: Flag
    wraps: Flag
    copies: Flag
    resizes: Flag
    restores: Flag
    terms: Int[Array, "two terms"]


# One row more than there are operations: -1, the operation that does nothing.
_TABLE = np.array(
    [op.effect.numbers() for op in ARCLEOperationType] + [Effect().numbers()], np.int32
)


def look_up(operation: Index) -> EffectRow:
    """Return the effect of an operation on the canvas."""
    return _as_row(jnp.asarray(_TABLE)[operation % len(_TABLE)])


def effect_row(effect: Effect) -> EffectRow:
    """Return one effect as arrays, to apply it without an entry in the table."""
    return _as_row(jnp.asarray(effect.numbers(), jnp.int32))


def _as_row(row: Int[Array, " numbers"]) -> EffectRow:
    kinds, flags, terms = row[:4], row[4:10] == 1, row[10:]
    return EffectRow(*kinds, *flags, terms=terms.reshape(2, len(TERMS)))


def apply_operation(
    operation: Index,
    canvas: Canvas,
    selection: Selection,
    raw: Selection,
    given: PackedGrid,
) -> Canvas:
    """Return the canvas after an operation; Submit, control and -1 change nothing."""
    return apply_effect(look_up(operation), canvas, selection, raw, given)


def apply_effect(
    effect: EffectRow,
    canvas: Canvas,
    selection: Selection,
    raw: Selection,
    given: PackedGrid,
) -> Canvas:
    """Return the canvas after an effect.

    `selection` lies in the active area, `raw` may go beyond it (Resize grows), `given`
    is the input of the current pair (Copy Input).
    """
    # Paint, then carry: Move first blackens the cells it leaves, and what lands on them
    # is written over that.
    active = canvas.active()
    area = or_everything(selection, canvas)
    painted = _painted(effect, canvas, selection, area)
    color = bits.constant(effect.color, painted)
    planes = bits.write(canvas.planes, painted, color)
    landed, cells = _carried(effect, canvas, selection, area)
    planes = bits.write(planes, cells & active, landed)
    # Resize takes the far corner as it was given, which may lie beyond the old size.
    corner = jnp.stack([raw.bottom + 1, raw.right + 1])
    size = jnp.where(effect.resizes & ~raw.empty, corner, canvas.size)
    size = jnp.where(effect.restores, given.size, size)
    planes = jnp.where(effect.restores, given.planes, planes)
    kept = bits.active_rows(size, planes.shape[-1], planes.dtype)
    copied = _copied(effect, canvas, selection)
    return Canvas(planes & kept[None], size, canvas.width, *copied)


def _painted(
    effect: EffectRow, canvas: Canvas, selection: Selection, area: Selection
) -> Rows:
    """Return the cells that take the effect's color."""
    # Of one selected cell the box is the cell itself.
    floods = (effect.paint == Cells.COMPONENT) & (selection.count == 1)
    place = selection.top, selection.left
    rows = component(canvas, *place, floods)
    rows = jnp.where(effect.paint == Cells.SELECTION, selection.rows, rows)
    return jnp.where(effect.paint == Cells.AREA, area.rows, rows)


def _carried(
    effect: EffectRow, canvas: Canvas, selection: Selection, area: Selection
) -> tuple[Planes, Rows]:
    """Return what lands where: moved colors, and the cells they are written on."""
    height, size = canvas.planes.shape[-1], canvas.size
    sides = [area.top, area.left, area.bottom, area.right]
    origin = [canvas.origin[0], canvas.origin[1]]
    terms = jnp.stack([*sides, *origin, jnp.ones_like(area.top)])
    # All index maps are affine, so one weighted sum serves every operation; a switch
    # under vmap would compute all 42 of them.
    offsets = jnp.sum(effect.terms * terms[None], axis=-1)
    wraps = effect.wraps
    layers = carry_columns(
        _layers(effect, canvas, area), offsets[1], effect.column_reverse, wraps, size[1]
    )
    landed = carry_rows(layers, offsets[0], effect.row_reverse, wraps, size[0], height)
    arrived = landed[bits.PLANES]
    square = area.bottom - area.top == area.right - area.left
    turns = (effect.landing == Landing.BOX) | (
        (effect.landing == Landing.SQUARE_BOX) & square
    )
    cells = jnp.where(turns, area.box(), bits.words(0, arrived.dtype))
    cells = jnp.where(effect.landing == Landing.ARRIVED, arrived, cells)
    pasted = arrived & selection.rows
    cells = jnp.where(effect.landing == Landing.ARRIVED_IN_SELECTION, pasted, cells)
    return landed[: bits.PLANES], cells


def _layers(
    effect: EffectRow, canvas: Canvas, area: Selection
) -> UInt[Array, "layers rows"]:
    """Return what is carried: four planes of color and the cells that travel.

    A transposed grid has a row for every column, so there may be more rows than before.
    """
    planes = canvas.planes
    colored = planes[0] | planes[1] | planes[2] | planes[3]
    beyond = max(canvas.width - planes.shape[-1], 0)
    padded = lambda layers: jnp.pad(layers, ((0, 0), (0, beyond)))
    turns = effect.source == Source.TRANSPOSED
    turned = _transposed(padded(planes), turns)
    colors = jnp.where(turns, turned, padded(planes))
    layers = jnp.concatenate([colors, padded((area.rows & colored)[None])])
    copied = padded(canvas.clipboard)
    return jnp.where(effect.source == Source.CLIPBOARD, copied, layers)


@jax.custom_batching.custom_vmap
def _transposed(planes: Planes, wanted: Flag) -> Planes:
    """Turn rows into columns where that is wanted; elsewhere anything may come."""
    return bits.transpose(planes)


@_transposed.def_vmap
def _transposed_rule(
    axis_size: int, in_batched: Sequence[bool], *args: Array
) -> tuple[Array, bool]:
    """Turn on NVIDIA devices only the few grids that an operation turns."""
    grids = spread(axis_size, in_batched, args)
    turn_all = lambda planes, wanted: bits.transpose(planes)
    if not has_kernels():
        return turn_all(*grids), True
    turned = jax.lax.platform_dependent(
        *grids, cuda=transpose_by_kernel, default=turn_all
    )
    return turned, True


def _copied(
    effect: EffectRow, canvas: Canvas, selection: Selection
) -> tuple[UInt[Array, "layers h"], Size]:
    """Return the clipboard after the effect, and the corner of its content."""
    takes = effect.copies & ~selection.empty
    rows = selection.rows[None]
    # The marks are planes of ones: a GPU runs one masked pass several times as fast as
    # a concatenation.
    ones = bits.words(int(jnp.iinfo(rows.dtype).max), rows.dtype)
    content = jnp.pad(canvas.planes, ((0, 1), (0, 0)), constant_values=ones) & rows
    corner = jnp.stack([selection.top, selection.left])
    return (
        jnp.where(takes, content, canvas.clipboard),
        jnp.where(takes, corner, canvas.origin),
    )
