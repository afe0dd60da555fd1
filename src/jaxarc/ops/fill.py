"""Fill, flood fill and clear: one color on the selection, its component, the area."""

from jaxarc.ops.effect import Cells, Effect
from jaxarc.ops.names import COLORS
from jaxarc.ops.names import ARCLEOperationType as Op

EFFECTS = {
    **{Op.FILL_0 + color: Effect(Cells.SELECTION, color) for color in range(COLORS)},
    **{
        Op.FLOOD_FILL_0 + color: Effect(Cells.COMPONENT, color)
        for color in range(COLORS)
    },
    Op.CLEAR: Effect(Cells.AREA),
}
