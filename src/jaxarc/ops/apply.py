"""An effect applied to a canvas: paint, carry, resize, copy."""

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt

from jaxarc import bits
from jaxarc.ops.canvas import Canvas
from jaxarc.ops.effect import Cells, Landing, LookedUp, Source
from jaxarc.ops.flood import component
from jaxarc.ops.mapping import carry_columns, carry_rows
from jaxarc.ops.selection import Selection, or_everything
from jaxarc.ops.table import look_up


def apply_operation(
    operation: Int[Array, ""],
    canvas: Canvas,
    selection: Selection,
    raw: Selection,
    given: tuple[UInt[Array, "planes h"], Int[Array, " two"]],
) -> Canvas:
    """The canvas after an operation; Submit, control and -1 change nothing.

    `selection` lies in the active area, `raw` may go beyond it (Resize grows), `given`
    is the input of the current pair (Copy Input).
    """
    effect = look_up(operation)
    active = canvas.active()
    area = or_everything(selection, canvas.size, active)
    painted = _painted(effect, canvas, selection, area, active)
    color = bits.constant(effect.color, painted)
    planes = bits.write(canvas.planes, painted, color)
    landed, cells = _carried(effect, canvas, selection, area)
    planes = bits.write(planes, cells & active, landed)
    size = _resized(effect, canvas.size, raw, given[1])
    planes = jnp.where(effect.restores, given[0], planes)
    kept = bits.active_rows(size, planes.shape[-1], planes.dtype)
    clipboard = _copied(effect, canvas, selection)
    return Canvas(planes & kept[None], size, *clipboard, canvas.width)


def _painted(
    effect: LookedUp,
    canvas: Canvas,
    selection: Selection,
    area: Selection,
    active: UInt[Array, " h"],
) -> UInt[Array, " h"]:
    """The cells that take the effect's color."""
    floods = (effect.paint == Cells.COMPONENT) & (selection.count == 1)
    nothing = bits.words(0, active.dtype)
    start = jnp.where(floods, selection.rows, nothing)
    rows = component(canvas.planes, active, start)
    rows = jnp.where(effect.paint == Cells.SELECTION, selection.rows, rows)
    return jnp.where(effect.paint == Cells.AREA, area.rows, rows)


def _carried(
    effect: LookedUp, canvas: Canvas, selection: Selection, area: Selection
) -> tuple[UInt[Array, "planes h"], UInt[Array, " h"]]:
    """What lands where: the carried colors, and the cells they are written on."""
    height, size = canvas.planes.shape[-1], canvas.size
    sides = [area.top, area.left, area.bottom, area.right]
    origin = [canvas.origin[0], canvas.origin[1]]
    terms = jnp.stack([*sides, *origin, jnp.ones_like(area.top)])
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
    effect: LookedUp, canvas: Canvas, area: Selection
) -> UInt[Array, "layers rows"]:
    """What is carried: four planes of color and the cells that travel.

    A transposed grid has a row for every column, so there may be more rows than before.
    """
    planes = canvas.planes
    colored = planes[0] | planes[1] | planes[2] | planes[3]
    beyond = max(canvas.width - planes.shape[-1], 0)
    padded = lambda layers: jnp.pad(layers, ((0, 0), (0, beyond)))
    turned = bits.transpose(padded(planes))
    colors = jnp.where(effect.source == Source.TRANSPOSED, turned, padded(planes))
    layers = jnp.concatenate([colors, padded((area.rows & colored)[None])])
    copied = padded(canvas.clipboard)
    return jnp.where(effect.source == Source.CLIPBOARD, copied, layers)


def _resized(
    effect: LookedUp,
    size: Int[Array, " two"],
    raw: Selection,
    given: Int[Array, " two"],
) -> Int[Array, " two"]:
    """The size after the effect: the raw selection's far corner, or the input's."""
    corner = jnp.stack([raw.bottom + 1, raw.right + 1])
    size = jnp.where(effect.resizes & ~raw.empty, corner, size)
    return jnp.where(effect.restores, given, size)


def _copied(
    effect: LookedUp, canvas: Canvas, selection: Selection
) -> tuple[UInt[Array, "layers h"], Int[Array, " two"]]:
    """The clipboard after the effect, and the corner of its content."""
    takes = effect.copies & ~selection.empty
    rows = selection.rows[None]
    content = jnp.concatenate([canvas.planes & rows, rows])
    corner = jnp.stack([selection.top, selection.left])
    return (
        jnp.where(takes, content, canvas.clipboard),
        jnp.where(takes, corner, canvas.origin),
    )
