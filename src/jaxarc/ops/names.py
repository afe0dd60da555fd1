"""The 42 operations of an agent: their numbers, names and categories.

Numbers 0 to 34 act on the grid and come from ARCLE; 35 to 41 move between the pairs of
a task.
"""

import enum

COLORS = 10


class ARCLEOperationType(enum.IntEnum):
    """Every operation by name; the value is what an action carries."""

    FILL_0 = 0
    FILL_1 = 1
    FILL_2 = 2
    FILL_3 = 3
    FILL_4 = 4
    FILL_5 = 5
    FILL_6 = 6
    FILL_7 = 7
    FILL_8 = 8
    FILL_9 = 9
    FLOOD_FILL_0 = 10
    FLOOD_FILL_1 = 11
    FLOOD_FILL_2 = 12
    FLOOD_FILL_3 = 13
    FLOOD_FILL_4 = 14
    FLOOD_FILL_5 = 15
    FLOOD_FILL_6 = 16
    FLOOD_FILL_7 = 17
    FLOOD_FILL_8 = 18
    FLOOD_FILL_9 = 19
    MOVE_UP = 20
    MOVE_DOWN = 21
    MOVE_LEFT = 22
    MOVE_RIGHT = 23
    ROTATE_C = 24
    ROTATE_CC = 25
    FLIP_HORIZONTAL = 26
    FLIP_VERTICAL = 27
    COPY = 28
    PASTE = 29
    CUT = 30
    CLEAR = 31
    COPY_INPUT = 32
    RESIZE = 33
    SUBMIT = 34
    SWITCH_TO_NEXT_DEMO_PAIR = 35
    SWITCH_TO_PREV_DEMO_PAIR = 36
    SWITCH_TO_NEXT_TEST_PAIR = 37
    SWITCH_TO_PREV_TEST_PAIR = 38
    RESET_CURRENT_PAIR = 39
    SWITCH_TO_FIRST_UNSOLVED_DEMO = 40
    SWITCH_TO_FIRST_UNSOLVED_TEST = 41


NUM_OPERATIONS = len(ARCLEOperationType)
FIRST_CONTROL = ARCLEOperationType.SWITCH_TO_NEXT_DEMO_PAIR

_CATEGORIES = {
    "fill": range(0, 10),
    "flood_fill": range(10, 20),
    "movement": range(20, 24),
    "transformation": range(24, 28),
    "editing": range(28, 32),
    "special": range(32, 35),
    "control": range(35, 42),
}
_SINGLE_NAMES = (
    *("Move Up", "Move Down", "Move Left", "Move Right"),
    *("Rotate CW", "Rotate CCW", "Flip H", "Flip V"),
    *("Copy", "Paste", "Cut", "Clear"),
    *("Copy Input", "Resize", "Submit"),
    *("Next Demo Pair", "Prev Demo Pair", "Next Test Pair", "Prev Test Pair"),
    *("Reset Current Pair", "First Unsolved Demo", "First Unsolved Test"),
)
OPERATION_NAMES: dict[int, str] = dict(
    enumerate(
        [f"Fill {color}" for color in range(COLORS)]
        + [f"Flood Fill {color}" for color in range(COLORS)]
        + list(_SINGLE_NAMES)
    )
)


def is_valid_operation_id(operation: int) -> bool:
    """Whether there is an operation of this number."""
    return operation in OPERATION_NAMES


def get_operation_name(operation: int) -> str:
    """What to call an operation: "Flood Fill 3", "Rotate CW".

    >>> get_operation_name(24)
    'Rotate CW'
    """
    _check(operation)
    return OPERATION_NAMES[operation]


def get_operation_display_text(operation: int) -> str:
    """Number and name together: "Op 34: Submit"."""
    return f"Op {operation}: {get_operation_name(operation)}"


def get_operation_category(operation: int) -> str:
    """The category of an operation: fill, flood_fill, movement and so on."""
    _check(operation)
    return next(name for name, ids in _CATEGORIES.items() if operation in ids)


def get_operations_by_category() -> dict[str, list[int]]:
    """The numbers of the operations in each category."""
    return {name: list(ids) for name, ids in _CATEGORIES.items()}


def get_all_operation_ids() -> list[int]:
    """Every operation number, ascending."""
    return list(range(NUM_OPERATIONS))


def _check(operation: int) -> None:
    if not is_valid_operation_id(operation):
        raise ValueError(
            f"operation {operation} is unknown: they are 0 to {NUM_OPERATIONS - 1}"
        )
