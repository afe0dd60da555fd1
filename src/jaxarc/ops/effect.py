"""What an operation can do, as data: a color painted, cells carried, a size changed.

Under `vmap` every branch of a switch would run, so there are none: each operation is a
row of numbers, looked up once, and one mechanism (`jaxarc.ops.apply`) serves them all.
"""

import dataclasses
import enum
from dataclasses import dataclass

import equinox as eqx
from jaxtyping import Array, Bool, Int

# The numbers an offset is made of, in the order of `Axis`.
TERMS = ("top", "left", "bottom", "right", "origin_row", "origin_column", "constant")


class Cells(enum.IntEnum):
    """Cells that take the color; the area is everything where nothing is selected."""

    NONE = 0
    SELECTION = 1
    AREA = 2
    COMPONENT = 3


class Source(enum.IntEnum):
    """Where carried cells come from."""

    GRID = 0
    TRANSPOSED = 1
    CLIPBOARD = 2


class Landing(enum.IntEnum):
    """Cells that carried ones may be written on."""

    NONE = 0
    ARRIVED = 1
    BOX = 2
    SQUARE_BOX = 3
    ARRIVED_IN_SELECTION = 4


@dataclass(frozen=True)
class Axis:
    """The source index along one axis: an offset plus or minus the index itself.

    The offset adds up the sides of the area's box, the corner of the clipboard's
    content and a constant, each as often as said.
    """

    reverse: bool = False
    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0
    origin_row: int = 0
    origin_column: int = 0
    constant: int = 0

    def terms(self) -> list[int]:
        """How often each term counts."""
        return [getattr(self, name) for name in TERMS]


@dataclass(frozen=True)
class Effect:
    """Everything an operation does to a canvas."""

    paint: Cells = Cells.NONE
    color: int = 0
    landing: Landing = Landing.NONE
    source: Source = Source.GRID
    row: Axis = dataclasses.field(default_factory=Axis)
    column: Axis = dataclasses.field(default_factory=Axis)
    wraps: bool = False
    copies: bool = False
    resizes: bool = False
    restores: bool = False

    def numbers(self) -> list[int]:
        """The effect as a row of a table, in the order `LookedUp` reads it."""
        flags = (self.row.reverse, self.column.reverse, self.wraps)
        acts = (self.copies, self.resizes, self.restores)
        kinds = (self.paint, self.color, self.landing, self.source)
        numbers = [*kinds, *flags, *acts, *self.row.terms(), *self.column.terms()]
        return [int(number) for number in numbers]


class LookedUp(eqx.Module):
    """One row of the table, traced."""

    paint: Int[Array, ""]
    color: Int[Array, ""]
    landing: Int[Array, ""]
    source: Int[Array, ""]
    row_reverse: Bool[Array, ""]
    column_reverse: Bool[Array, ""]
    wraps: Bool[Array, ""]
    copies: Bool[Array, ""]
    resizes: Bool[Array, ""]
    restores: Bool[Array, ""]
    terms: Int[Array, "two terms"]


def read_row(row: Int[Array, " numbers"]) -> LookedUp:
    """A row of the table by name."""
    return LookedUp(
        paint=row[0],
        color=row[1],
        landing=row[2],
        source=row[3],
        row_reverse=row[4] == 1,
        column_reverse=row[5] == 1,
        wraps=row[6] == 1,
        copies=row[7] == 1,
        resizes=row[8] == 1,
        restores=row[9] == 1,
        terms=row[10:].reshape(2, len(TERMS)),
    )
