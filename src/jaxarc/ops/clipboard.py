"""Copy, cut and paste: the corner of the content lands on the selection's corner."""

from jaxarc.ops.effect import Axis, Cells, Effect, Landing, Source
from jaxarc.ops.names import ARCLEOperationType as Op

EFFECTS = {
    Op.COPY: Effect(copies=True),
    Op.CUT: Effect(Cells.SELECTION, copies=True),
    Op.PASTE: Effect(
        landing=Landing.ARRIVED_IN_SELECTION,
        source=Source.CLIPBOARD,
        row=Axis(origin_row=1, top=-1),
        column=Axis(origin_column=1, left=-1),
    ),
}
