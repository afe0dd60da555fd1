"""Rotate and flip: the content of the area's box, in place, black included.

With `T` the transposed grid, clockwise `new[r, c]` is
`T[r + left - top, top + right - c]` and anticlockwise
`T[left + bottom - r, c + top - left]`; only square boxes rotate.
"""

from jaxarc.ops.effect import Axis, Effect, Landing, Source
from jaxarc.ops.names import ARCLEOperationType as Op


def _rotation(row: Axis, column: Axis) -> Effect:
    return Effect(
        landing=Landing.SQUARE_BOX, source=Source.TRANSPOSED, row=row, column=column
    )


EFFECTS = {
    Op.ROTATE_C: _rotation(Axis(left=1, top=-1), Axis(reverse=True, top=1, right=1)),
    Op.ROTATE_CC: _rotation(Axis(reverse=True, left=1, bottom=1), Axis(top=1, left=-1)),
    Op.FLIP_HORIZONTAL: Effect(
        landing=Landing.BOX, column=Axis(reverse=True, left=1, right=1)
    ),
    Op.FLIP_VERTICAL: Effect(
        landing=Landing.BOX, row=Axis(reverse=True, top=1, bottom=1)
    ),
}
