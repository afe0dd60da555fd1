"""The 42 operations of an agent: number, name, category and effect of each.

Numbers 0 to 34 act on the grid and come from ARCLE; 35 to 41 move between the pairs of
a task. Under `vmap` every branch of a switch would run, so an operation is data: a row
of numbers that one mechanism (`jaxarc.ops.canvas`) applies. A new operation is one
more member of `ARCLEOperationType`.
"""

import dataclasses
import enum
from dataclasses import dataclass

COLORS = 10
# The numbers an offset is made of, in the order of `Axis`.
TERMS = ("top", "left", "bottom", "right", "origin_row", "origin_column", "constant")


class Cells(enum.IntEnum):
    """Cells that take the color; the area is everything where nothing is selected."""

    NONE = 0
    SELECTION = 1
    AREA = 2
    COMPONENT = 3


class Source(enum.IntEnum):
    """Where moved cells come from."""

    GRID = 0
    TRANSPOSED = 1
    CLIPBOARD = 2


class Landing(enum.IntEnum):
    """Cells that moved ones may be written on."""

    NONE = 0
    ARRIVED = 1
    BOX = 2
    SQUARE_BOX = 3
    ARRIVED_IN_SELECTION = 4


@dataclass(frozen=True)
class Axis:
    """The source index along one axis: an offset plus or minus the index itself.

    The offset is a weighted sum of the sides of the area's box, the corner of the
    clipboard's content and a constant.
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
        """Return the weight of each term."""
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
        """Return the effect as a row of the table, in the order of `EffectRow`."""
        kinds = (self.paint, self.color, self.landing, self.source)
        flags = (self.row.reverse, self.column.reverse, self.wraps)
        acts = (self.copies, self.resizes, self.restores)
        numbers = [*kinds, *flags, *acts, *self.row.terms(), *self.column.terms()]
        return [int(number) for number in numbers]


def _fill(color: int) -> Effect:
    return Effect(Cells.SELECTION, color)


def _flood(color: int) -> Effect:
    return Effect(Cells.COMPONENT, color)


def _move(row: int = 0, column: int = 0) -> Effect:
    """Take cells from this many rows below and columns to the right, around the edges.

    The cells it leaves turn black first; black cells do not travel, so what lies where
    they would land stays.
    """
    return Effect(
        paint=Cells.AREA,
        landing=Landing.ARRIVED,
        row=Axis(constant=row),
        column=Axis(constant=column),
        wraps=True,
    )


def _rotate(row: Axis, column: Axis) -> Effect:
    """Turn the content of a square box in place, black included.

    With `T` the transposed grid, clockwise `new[r, c]` is
    `T[r + left - top, top + right - c]` and anticlockwise
    `T[left + bottom - r, c + top - left]`.
    """
    return Effect(
        landing=Landing.SQUARE_BOX, source=Source.TRANSPOSED, row=row, column=column
    )


_CLOCKWISE = _rotate(Axis(left=1, top=-1), Axis(reverse=True, top=1, right=1))
_ANTICLOCKWISE = _rotate(Axis(reverse=True, left=1, bottom=1), Axis(top=1, left=-1))
_MIRROR_COLUMNS = Axis(reverse=True, left=1, right=1)
_MIRROR_ROWS = Axis(reverse=True, top=1, bottom=1)
# The corner of the clipboard's content lands on the selection's corner.
_PASTE = Effect(
    landing=Landing.ARRIVED_IN_SELECTION,
    source=Source.CLIPBOARD,
    row=Axis(origin_row=1, top=-1),
    column=Axis(origin_column=1, left=-1),
)


class ARCLEOperationType(enum.IntEnum):
    """Every operation; the value is the number that an action carries.

    Submit and the control operations have no effect on the canvas: the episode acts on
    them.
    """

    label: str
    category: str
    effect: Effect

    def __new__(
        cls, number: int, label: str, category: str, effect: Effect | None = None
    ) -> "ARCLEOperationType":
        """Make a member that is its number and carries the rest."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.label, member.category = label, category
        member.effect = effect or Effect()
        return member

    FILL_0 = 0, "Fill 0", "fill", _fill(0)
    FILL_1 = 1, "Fill 1", "fill", _fill(1)
    FILL_2 = 2, "Fill 2", "fill", _fill(2)
    FILL_3 = 3, "Fill 3", "fill", _fill(3)
    FILL_4 = 4, "Fill 4", "fill", _fill(4)
    FILL_5 = 5, "Fill 5", "fill", _fill(5)
    FILL_6 = 6, "Fill 6", "fill", _fill(6)
    FILL_7 = 7, "Fill 7", "fill", _fill(7)
    FILL_8 = 8, "Fill 8", "fill", _fill(8)
    FILL_9 = 9, "Fill 9", "fill", _fill(9)
    FLOOD_FILL_0 = 10, "Flood Fill 0", "flood_fill", _flood(0)
    FLOOD_FILL_1 = 11, "Flood Fill 1", "flood_fill", _flood(1)
    FLOOD_FILL_2 = 12, "Flood Fill 2", "flood_fill", _flood(2)
    FLOOD_FILL_3 = 13, "Flood Fill 3", "flood_fill", _flood(3)
    FLOOD_FILL_4 = 14, "Flood Fill 4", "flood_fill", _flood(4)
    FLOOD_FILL_5 = 15, "Flood Fill 5", "flood_fill", _flood(5)
    FLOOD_FILL_6 = 16, "Flood Fill 6", "flood_fill", _flood(6)
    FLOOD_FILL_7 = 17, "Flood Fill 7", "flood_fill", _flood(7)
    FLOOD_FILL_8 = 18, "Flood Fill 8", "flood_fill", _flood(8)
    FLOOD_FILL_9 = 19, "Flood Fill 9", "flood_fill", _flood(9)
    MOVE_UP = 20, "Move Up", "movement", _move(row=1)
    MOVE_DOWN = 21, "Move Down", "movement", _move(row=-1)
    MOVE_LEFT = 22, "Move Left", "movement", _move(column=1)
    MOVE_RIGHT = 23, "Move Right", "movement", _move(column=-1)
    ROTATE_C = 24, "Rotate CW", "transformation", _CLOCKWISE
    ROTATE_CC = 25, "Rotate CCW", "transformation", _ANTICLOCKWISE
    FLIP_HORIZONTAL = (
        *(26, "Flip H", "transformation"),
        Effect(landing=Landing.BOX, column=_MIRROR_COLUMNS),
    )
    FLIP_VERTICAL = (
        *(27, "Flip V", "transformation"),
        Effect(landing=Landing.BOX, row=_MIRROR_ROWS),
    )
    COPY = 28, "Copy", "editing", Effect(copies=True)
    PASTE = 29, "Paste", "editing", _PASTE
    CUT = 30, "Cut", "editing", Effect(Cells.SELECTION, copies=True)
    CLEAR = 31, "Clear", "editing", Effect(Cells.AREA)
    COPY_INPUT = 32, "Copy Input", "special", Effect(restores=True)
    RESIZE = 33, "Resize", "special", Effect(resizes=True)
    SUBMIT = 34, "Submit", "special"
    SWITCH_TO_NEXT_DEMO_PAIR = 35, "Next Demo Pair", "control"
    SWITCH_TO_PREV_DEMO_PAIR = 36, "Prev Demo Pair", "control"
    SWITCH_TO_NEXT_TEST_PAIR = 37, "Next Test Pair", "control"
    SWITCH_TO_PREV_TEST_PAIR = 38, "Prev Test Pair", "control"
    RESET_CURRENT_PAIR = 39, "Reset Current Pair", "control"
    SWITCH_TO_FIRST_UNSOLVED_DEMO = 40, "First Unsolved Demo", "control"
    SWITCH_TO_FIRST_UNSOLVED_TEST = 41, "First Unsolved Test", "control"


NUM_OPERATIONS = len(ARCLEOperationType)
FIRST_CONTROL = ARCLEOperationType.SWITCH_TO_NEXT_DEMO_PAIR


def get_operation_name(operation: int) -> str:
    """Return the name of an operation: "Flood Fill 3", "Rotate CW".

    >>> get_operation_name(24)
    'Rotate CW'
    """
    if operation not in range(NUM_OPERATIONS):
        raise ValueError(
            f"unknown operation {operation}: operations are 0 to {NUM_OPERATIONS - 1}"
        )
    return ARCLEOperationType(operation).label


def get_operation_display_text(operation: int) -> str:
    """Return number and name together: "Op 34: Submit"."""
    return f"Op {operation}: {get_operation_name(operation)}"
