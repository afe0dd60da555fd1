"""Oracle: the table of the operations, written out where it matters, and by hand."""

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


@pytest.mark.parametrize("operation", [-1, *range(42)])
def test_every_operation_but_submit_and_control_has_an_effect(operation):
    wanted = Op(operation).effect if operation >= 0 else Effect()
    assert (wanted == Effect()) == (operation in IDLE)
    found = look_up(jnp.asarray(operation))
    names = ("paint", "color", "landing", "source", "wraps", "copies", "resizes")
    assert [int(getattr(found, n)) for n in names] == [
        getattr(wanted, n) for n in names
    ]
    assert bool(found.restores) == wanted.restores
    reverse = [bool(found.row_reverse), bool(found.column_reverse)]
    assert reverse == [wanted.row.reverse, wanted.column.reverse]
    assert found.terms.tolist() == [wanted.row.terms(), wanted.column.terms()]


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


@pytest.mark.parametrize(
    ("one", "other"), [(Op.MOVE_UP, Op.MOVE_DOWN), (Op.MOVE_LEFT, Op.MOVE_RIGHT)]
)
def test_moving_everything_there_and_back_changes_nothing(one, other):
    there = hand.act(hand.canvas_of(MOVED), one, NOTHING)
    assert hand.shown(hand.act(there, other, NOTHING)) == MOVED


def test_four_quarter_turns_are_none():
    canvas = hand.canvas_of(TURNED)
    for _ in range(4):
        canvas = hand.act(canvas, Op.ROTATE_C, "0110 0110 0000 0000")
    assert hand.shown(canvas) == TURNED


def test_what_is_cut_off_does_not_come_back():
    small = hand.act(hand.canvas_of(RESIZED), Op.RESIZE, "1000 0000 0000 0000")
    large = hand.act(small, Op.RESIZE, "0000 0100 0000 0000")
    assert hand.shown(large) == "10.. 00.. .... ...."


def test_copying_the_input_takes_its_size_too():
    given = hand.canvas_of("777. 888. .... ....")
    after = hand.act(hand.canvas_of(RESIZED), Op.COPY_INPUT, NOTHING, given)
    assert hand.shown(after) == "777. 888. .... ...."


COPIED = "1020 3450 6000 ...."


def test_black_is_content_and_cells_beyond_it_stay():
    copied = hand.act(hand.canvas_of(COPIED), Op.COPY, "1100 1100 0000 0000")
    assert hand.shown(copied) == COPIED
    pasted = hand.act(copied, Op.PASTE, "0111 0000 0111 0111")
    assert hand.shown(pasted) == "1100 3450 6000 ...."


def test_content_lands_corner_on_corner():
    copied = hand.act(hand.canvas_of(COPIED), Op.COPY, "0000 0110 0000 0000")
    pasted = hand.act(copied, Op.PASTE, "0000 0000 1110 0000")
    assert hand.shown(pasted) == "1020 3450 4500 ...."


def test_cutting_leaves_black_behind():
    cut = hand.act(hand.canvas_of(COPIED), Op.CUT, "0000 1100 0000 0000")
    assert hand.shown(cut) == "1020 0050 6000 ...."
    pasted = hand.act(cut, Op.PASTE, "0000 0000 0011 0000")
    assert hand.shown(pasted) == "1020 0050 6034 ...."


def test_copying_nothing_keeps_the_clipboard():
    nothing = "0000 0000 0000 1000"
    copied = hand.act(hand.canvas_of(COPIED), Op.COPY, "1000 0000 0000 0000")
    kept = hand.act(copied, Op.COPY, nothing)
    assert hand.shown(hand.act(kept, Op.PASTE, "0001 0000 0000 0000")) == (
        "1021 3450 6000 ...."
    )


def test_pasting_an_empty_clipboard_changes_nothing():
    canvas = hand.canvas_of(COPIED)
    assert hand.shown(hand.act(canvas, Op.PASTE, "1111 1111 1111 0000")) == COPIED
