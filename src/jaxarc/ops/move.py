"""Move: the area shifts by one, around the edges of the active area.

The cells it leaves turn black first; black cells do not travel, so what lies where they
would land stays.
"""

from jaxarc.ops.effect import Axis, Cells, Effect, Landing
from jaxarc.ops.names import ARCLEOperationType as Op


def _shift(row: int = 0, column: int = 0) -> Effect:
    """Cells that come from so many rows below and columns to the right."""
    return Effect(
        paint=Cells.AREA,
        landing=Landing.ARRIVED,
        row=Axis(constant=row),
        column=Axis(constant=column),
        wraps=True,
    )


EFFECTS = {
    Op.MOVE_UP: _shift(row=1),
    Op.MOVE_DOWN: _shift(row=-1),
    Op.MOVE_LEFT: _shift(column=1),
    Op.MOVE_RIGHT: _shift(column=-1),
}
