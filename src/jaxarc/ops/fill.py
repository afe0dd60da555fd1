"""Fill, flood fill and clear: one colour on the selection, its component, the area."""

from jaxarc.ops.effect import Cells, Effect
from jaxarc.ops.names import COLOURS
from jaxarc.ops.names import ARCLEOperationType as Op

EFFECTS = {
    **{
        Op.FILL_0 + colour: Effect(Cells.SELECTION, colour) for colour in range(COLOURS)
    },
    **{
        Op.FLOOD_FILL_0 + colour: Effect(Cells.COMPONENT, colour)
        for colour in range(COLOURS)
    },
    Op.CLEAR: Effect(Cells.AREA),
}
