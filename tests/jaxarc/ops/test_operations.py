"""Oracle: the table of the operations, written out where it matters, and by hand."""

import jax
import jax.numpy as jnp
import pytest

import arc_hand as hand
from jaxarc.ops.canvas import look_up
from jaxarc.ops.operations import (
    FIRST_CONTROL,
    NUM_OPERATIONS,
    Effect,
    get_operation_display_text,
    get_operation_name,
)
from jaxarc.ops.operations import ARCLEOperationType as Op

NOTHING = "0000 0000 0000 0000"
IDLE = {-1, Op.SUBMIT, *range(FIRST_CONTROL, 42)}


@pytest.mark.parametrize(
    ("operation", "name", "category"),
    [
        (0, "Fill 0", "fill"),
        (9, "Fill 9", "fill"),
        (10, "Flood Fill 0", "flood_fill"),
        (19, "Flood Fill 9", "flood_fill"),
        (20, "Move Up", "movement"),
        (23, "Move Right", "movement"),
        (24, "Rotate CW", "transformation"),
        (27, "Flip V", "transformation"),
        (28, "Copy", "editing"),
        (31, "Clear", "editing"),
        (32, "Copy Input", "special"),
        (34, "Submit", "special"),
        (35, "Next Demo Pair", "control"),
        (39, "Reset Current Pair", "control"),
        (41, "First Unsolved Test", "control"),
    ],
)
def test_names_and_categories(operation, name, category):
    assert get_operation_name(operation) == name
    assert Op(operation).category == category
    assert get_operation_display_text(operation) == f"Op {operation}: {name}"


def test_every_operation_has_its_own_number_and_name():
    assert [int(o) for o in Op] == list(range(42))
    assert len({o.label for o in Op}) == NUM_OPERATIONS == 42


@pytest.mark.parametrize("operation", [-1, 42, 1000])
def test_unknown_numbers_are_refused(operation):
    with pytest.raises(ValueError, match=f"unknown operation {operation}"):
        get_operation_name(operation)


def test_every_operation_but_submit_and_control_has_an_effect():
    numbers = range(-1, 42)
    table = jax.device_get(jax.jit(jax.vmap(look_up))(jnp.array(numbers)))
    for place, operation in enumerate(numbers):
        wanted = Op(operation).effect if operation >= 0 else Effect()
        assert (wanted == Effect()) == (operation in IDLE)
        found = {name: value[place] for name, value in vars(table).items()}
        axes = found.pop("row_reverse"), found.pop("column_reverse")
        assert axes == (wanted.row.reverse, wanted.column.reverse)
        terms = [wanted.row.terms(), wanted.column.terms()]
        assert found.pop("terms").tolist() == terms
        assert found == {name: getattr(wanted, name) for name in found}


PAINTED = "1120 1020 0022 ...."
MOVED = "120. 034. 500. ...."
TURNED = "123. 456. 780. ...."
RESIZED = "12.. 34.. .... ...."


@pytest.mark.parametrize(
    ("grid", "operation", "selection", "expected"),
    [
        (PAINTED, Op.FILL_0 + 5, "1100 0000 0001 0000", "5520 1020 0025 ...."),
        (PAINTED, Op.FILL_0, "1100 0000 0000 1111", "0020 1020 0022 ...."),
        (PAINTED, Op.FILL_0 + 3, "0000 0000 0000 1111", PAINTED),
        (PAINTED, Op.FLOOD_FILL_0 + 4, "1000 0000 0000 0000", "4420 4020 0022 ...."),
        (PAINTED, Op.FLOOD_FILL_0 + 4, "1100 0000 0000 0000", PAINTED),
        (PAINTED, Op.FLOOD_FILL_0 + 1, "1000 0000 0000 0000", PAINTED),
        (PAINTED, Op.FLOOD_FILL_0 + 9, "0000 0000 1000 0000", "1120 1920 9922 ...."),
        (PAINTED, Op.CLEAR, "1110 0000 0000 0000", "0000 1020 0022 ...."),
        (PAINTED, Op.CLEAR, "0000 0000 0000 0001", "0000 0000 0000 ...."),
        (MOVED, Op.MOVE_UP, "1000 0000 0000 0000", "020. 034. 100. ...."),
        (MOVED, Op.MOVE_DOWN, "1000 0000 0000 0000", "020. 134. 500. ...."),
        (MOVED, Op.MOVE_LEFT, "1000 0000 0000 0000", "021. 034. 500. ...."),
        (MOVED, Op.MOVE_RIGHT, "1000 0000 0000 0000", "010. 034. 500. ...."),
        (MOVED, Op.MOVE_UP, NOTHING, "034. 500. 120. ...."),
        (MOVED, Op.MOVE_RIGHT, NOTHING, "012. 403. 050. ...."),
        # Black is selected with the 4, and does not overwrite what it would land on.
        (MOVED, Op.MOVE_DOWN, "0010 0010 0000 0000", "120. 030. 504. ...."),
        (TURNED, Op.ROTATE_C, "0000 0000 0000 0000", "741. 852. 063. ...."),
        (TURNED, Op.ROTATE_CC, "0000 0000 0000 0000", "360. 258. 147. ...."),
        (TURNED, Op.ROTATE_C, "0110 0110 0000 0000", "152. 463. 780. ...."),
        (TURNED, Op.ROTATE_C, "0110 0000 0000 0000", TURNED),
        (TURNED, Op.FLIP_HORIZONTAL, "1110 0000 0000 0000", "321. 456. 780. ...."),
        (TURNED, Op.FLIP_VERTICAL, "0010 0010 0010 0000", "120. 456. 783. ...."),
        # The box of two corners is the whole grid, whatever lies between them.
        (TURNED, Op.FLIP_VERTICAL, "1000 0000 0010 0000", "780. 456. 123. ...."),
        (RESIZED, Op.RESIZE, "0000 0000 0010 0000", "120. 340. 000. ...."),
        (RESIZED, Op.RESIZE, "1000 0000 0000 0000", "1... .... .... ...."),
        (RESIZED, Op.RESIZE, "0001 0000 0000 0000", "1200 .... .... ...."),
        (RESIZED, Op.RESIZE, "0001 0000 1000 0000", "1200 3400 0000 ...."),
        (RESIZED, Op.RESIZE, "0000 0000 0000 0000", RESIZED),
    ],
)
def test_operations_by_hand(grid, operation, selection, expected):
    after = hand.act(hand.canvas_of(grid), operation, selection)
    assert hand.shown(after) == expected


COPIED = "1020 3450 6000 ...."
CORNER, MIDDLE = "1000 0000 0000 0000", "0110 0110 0000 0000"


@pytest.mark.parametrize(
    ("start", "steps", "expected"),
    [
        (MOVED, [(Op.MOVE_UP, NOTHING), (Op.MOVE_DOWN, NOTHING)], MOVED),
        (MOVED, [(Op.MOVE_LEFT, NOTHING), (Op.MOVE_RIGHT, NOTHING)], MOVED),
        (TURNED, [(Op.ROTATE_C, MIDDLE)] * 4, TURNED),
        # What is cut off does not come back.
        (
            RESIZED,
            [(Op.RESIZE, CORNER), (Op.RESIZE, "0000 0100 0000 0000")],
            "10.. 00.. .... ....",
        ),
        # Black is content, and cells beyond the content stay.
        (
            COPIED,
            [(Op.COPY, "1100 1100 0000 0000"), (Op.PASTE, "0111 0000 0111 0111")],
            "1100 3450 6000 ....",
        ),
        # Content lands corner on corner.
        (
            COPIED,
            [(Op.COPY, "0000 0110 0000 0000"), (Op.PASTE, "0000 0000 1110 0000")],
            "1020 3450 4500 ....",
        ),
        # Cutting leaves black behind.
        (
            COPIED,
            [(Op.CUT, "0000 1100 0000 0000"), (Op.PASTE, "0000 0000 0011 0000")],
            "1020 0050 6034 ....",
        ),
        # Copying nothing changes no cell and keeps the clipboard.
        (COPIED, [(Op.COPY, CORNER)], COPIED),
        (
            COPIED,
            [
                *((Op.COPY, CORNER), (Op.COPY, "0000 0000 0000 1000")),
                (Op.PASTE, "0001 0000 0000 0000"),
            ],
            "1021 3450 6000 ....",
        ),
        # An empty clipboard pastes nothing.
        (COPIED, [(Op.PASTE, "1111 1111 1111 0000")], COPIED),
    ],
)
def test_sequences_by_hand(start, steps, expected):
    canvas = hand.canvas_of(start)
    for operation, selection in steps:
        canvas = hand.act(canvas, operation, selection)
    assert hand.shown(canvas) == expected


def test_copying_the_input_takes_its_size_too():
    given = hand.canvas_of("777. 888. .... ....")
    after = hand.act(hand.canvas_of(RESIZED), Op.COPY_INPUT, NOTHING, given)
    assert hand.shown(after) == "777. 888. .... ...."
