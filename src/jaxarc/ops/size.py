"""Resize and Copy Input: the operations that change the active area."""

from jaxarc.ops.effect import Effect
from jaxarc.ops.names import ARCLEOperationType as Op

EFFECTS = {
    Op.RESIZE: Effect(resizes=True),
    Op.COPY_INPUT: Effect(restores=True),
}
