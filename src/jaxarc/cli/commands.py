"""The words of `jaxrig arc play`: from a line of text to an operation and cells."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jaxarc.ops.names import COLORS, NUM_OPERATIONS
from jaxarc.ops.names import ARCLEOperationType as Op
from jaxarc.recording import Box

HELP = """\
Cells are rows and columns from 0; two corners make a rectangle; without cells an
operation takes the whole grid. Colors are 0 to 9.

fill C [cells]             paint cells: fill 3, fill 3 0 0, fill 3 0 0 2 2
flood C R C                paint the area of one color around a cell
move up|down|left|right [cells]
rotate cw|ccw [cells]      flip h|v [cells]
copy [cells]               cut [cells]      clear [cells]
paste R C                  the upper left corner goes to this cell
input                      begin again from the input
resize HEIGHT WIDTH        change the size of the grid
submit                     hand the grid in
next  prev  unsolved       go to another pair
reset                      this pair from its start
N [cells]                  an operation by its number (or op N)
undo                       take the last step back
demos  show                look at the demonstrations, at the grid
save FILE                  write the episode for `jaxrig arc replay`
help  quit"""


@dataclass(frozen=True)
class Act:
    """A step of the episode; no box stands for the whole grid."""

    operation: int
    box: Box | None = None


@dataclass(frozen=True)
class Order:
    """Something to do that is not a step."""

    name: str
    argument: str = ""


Command: TypeAlias = Act | Order
Words: TypeAlias = Sequence[str]

ORDERS = ("undo", "demos", "show", "help", "quit")
SYNONYMS = {
    "exit": "quit",
    "q": "quit",
    "h": "help",
    "?": "help",
    "previous": "prev",
    "flood_fill": "flood",
    "floodfill": "flood",
    "u": "undo",
}
_MOVES = {"up": Op.MOVE_UP, "down": Op.MOVE_DOWN}
_MOVES |= {"left": Op.MOVE_LEFT, "right": Op.MOVE_RIGHT}
_TURNS = {"cw": Op.ROTATE_C, "ccw": Op.ROTATE_CC}
_FLIPS = {"h": Op.FLIP_HORIZONTAL, "v": Op.FLIP_VERTICAL}
_WITH_CELLS = {"copy": Op.COPY, "cut": Op.CUT, "clear": Op.CLEAR}
_ALONE = {"input": Op.COPY_INPUT, "submit": Op.SUBMIT, "reset": Op.RESET_CURRENT_PAIR}
_PAIRS = {  # for demonstrations, for tests
    "next": (Op.SWITCH_TO_NEXT_DEMO_PAIR, Op.SWITCH_TO_NEXT_TEST_PAIR),
    "prev": (Op.SWITCH_TO_PREV_DEMO_PAIR, Op.SWITCH_TO_PREV_TEST_PAIR),
    "unsolved": (Op.SWITCH_TO_FIRST_UNSOLVED_DEMO, Op.SWITCH_TO_FIRST_UNSOLVED_TEST),
}


def parse_command(line: str, testing: bool = False) -> Command | None:
    """What a line asks for; None for an empty one or a comment (`# ...`).

    ValueError with a sentence where it asks for nothing known. Pairs are tests where
    `testing`.

    >>> parse_command("fill 3 0 1")
    Act(operation=3, box=(0, 1, 0, 1))
    """
    words = line.partition("#")[0].split()
    if not words:
        return None
    name = SYNONYMS.get(words[0].lower(), words[0].lower())
    rest = words[1:]
    if name == "save":
        return _save(line, rest)
    if name in ORDERS:
        _expect(name, rest, 0)
        return Order(name)
    if name in _PAIRS:
        _expect(name, rest, 0)
        return Act(int(_PAIRS[name][testing]))
    if name.isdecimal():
        return _by_number(name, rest)
    if name not in _OPERATIONS:
        known = (*_OPERATIONS, *_PAIRS, *ORDERS, "save")
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "type help for all words"
        raise ValueError(f"{name!r} is no command: {hint}")
    return _OPERATIONS[name](name, rest)


def _save(line: str, rest: Words) -> Order:
    if not rest:
        raise ValueError("save needs a file: save episode.json")
    return Order("save", line.strip().partition(" ")[2].strip())


def _by_number(name: str, rest: Words) -> Act:
    if int(name) >= NUM_OPERATIONS:
        raise ValueError(
            f"operation {name} is unknown: they are 0 to {NUM_OPERATIONS - 1}"
        )
    return Act(int(name), _cells(name, rest))


def _op(name: str, rest: Words) -> Act:
    if not rest or not rest[0].isdecimal():
        raise ValueError("op needs a number: op 34")
    return _by_number(rest[0], rest[1:])


def _paint(first: int, only_one: bool) -> Callable[[str, Words], Act]:
    def read(name: str, rest: Words) -> Act:
        example = f"{name} 3 0 1"
        color = _whole(rest[0]) if rest else None
        if color is None or not 0 <= color < COLORS:
            raise ValueError(f"{name} needs a color from 0 to 9: {example}")
        if only_one and len(rest) != 3:
            raise ValueError(f"{name} needs a color and one cell: {example}")
        return Act(first + color, _cells(name, rest[1:]))

    return read


def _chosen(table: dict[str, Op]) -> Callable[[str, Words], Act]:
    def read(name: str, rest: Words) -> Act:
        word = rest[0].lower() if rest else ""
        if word not in table:
            raise ValueError(f"{name} needs one of: {', '.join(table)}")
        return Act(int(table[word]), _cells(name, rest[1:]))

    return read


def _with_cells(name: str, rest: Words) -> Act:
    return Act(int(_WITH_CELLS[name]), _cells(name, rest))


def _alone(name: str, rest: Words) -> Act:
    _expect(name, rest, 0)
    return Act(int(_ALONE[name]))


def _paste(name: str, rest: Words) -> Act:
    _expect(name, rest, 2, "a row and a column for the corner: paste 0 1")
    return Act(int(Op.PASTE), _cells(name, rest))


def _resize(name: str, rest: Words) -> Act:
    _expect(name, rest, 2, "a height and a width: resize 3 4")
    height, width = (_whole(word) for word in rest)
    if height is None or width is None or height < 1 or width < 1:
        raise ValueError("resize needs a height and a width of at least 1: resize 3 4")
    return Act(int(Op.RESIZE), (0, 0, height - 1, width - 1))


_OPERATIONS: dict[str, Callable[[str, Words], Act]] = {
    "fill": _paint(Op.FILL_0, False),
    "flood": _paint(Op.FLOOD_FILL_0, True),
    "move": _chosen(_MOVES),
    "rotate": _chosen(_TURNS),
    "flip": _chosen(_FLIPS),
    **dict.fromkeys(_WITH_CELLS, _with_cells),
    **dict.fromkeys(_ALONE, _alone),
    "paste": _paste,
    "resize": _resize,
    "op": _op,
}


def _cells(name: str, words: Words) -> Box | None:
    """No cells, one, or the rectangle between two."""
    numbers = [_whole(word) for word in words]
    whole = [number for number in numbers if number is not None]
    if len(whole) != len(numbers) or len(whole) not in (0, 2, 4):
        raise ValueError(
            f"{name}: cells are a row and a column, or two corners, not "
            f"{' '.join(words)!r}"
        )
    if not whole:
        return None
    row, column, last_row, last_column = whole if len(whole) == 4 else 2 * whole
    return row, column, last_row, last_column


def _whole(word: str) -> int | None:
    return int(word) if word.lstrip("-").isdecimal() and word.count("-") < 2 else None


def _expect(name: str, rest: Words, count: int, what: str = "nothing after it") -> None:
    if len(rest) != count:
        raise ValueError(f"{name} takes {what}")
