"""Every word of the player, and a sentence for every mistake."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.cli.commands import HELP, Act, Order, parse_command
from jaxarc.ops.names import ARCLEOperationType as Op


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("fill 3 1 2", Act(Op.FILL_3, (1, 2, 1, 2))),
        ("fill 0 1 2 3 4", Act(Op.FILL_0, (1, 2, 3, 4))),
        ("FILL 9", Act(Op.FILL_9)),
        ("flood 4 5 6", Act(Op.FLOOD_FILL_4, (5, 6, 5, 6))),
        ("move up 0 0 2 2", Act(Op.MOVE_UP, (0, 0, 2, 2))),
        ("move right", Act(Op.MOVE_RIGHT)),
        ("rotate cw", Act(Op.ROTATE_C)),
        ("rotate ccw 0 0 1 1", Act(Op.ROTATE_CC, (0, 0, 1, 1))),
        ("flip h", Act(Op.FLIP_HORIZONTAL)),
        ("flip V 1 1", Act(Op.FLIP_VERTICAL, (1, 1, 1, 1))),
        ("copy 0 0 1 1", Act(Op.COPY, (0, 0, 1, 1))),
        ("cut", Act(Op.CUT)),
        ("clear 2 2", Act(Op.CLEAR, (2, 2, 2, 2))),
        ("paste 1 3", Act(Op.PASTE, (1, 3, 1, 3))),
        ("input", Act(Op.COPY_INPUT)),
        ("resize 3 4", Act(Op.RESIZE, (0, 0, 2, 3))),
        ("submit # at last", Act(Op.SUBMIT)),
        ("reset", Act(Op.RESET_CURRENT_PAIR)),
        ("next", Act(Op.SWITCH_TO_NEXT_DEMO_PAIR)),
        ("prev", Act(Op.SWITCH_TO_PREV_DEMO_PAIR)),
        ("unsolved", Act(Op.SWITCH_TO_FIRST_UNSOLVED_DEMO)),
        ("24 0 0 2 2", Act(Op.ROTATE_C, (0, 0, 2, 2))),
        ("op 34", Act(Op.SUBMIT)),
        ("save my file.json", Order("save", "my file.json")),
        ("undo", Order("undo")),
        ("?", Order("help")),
        ("q", Order("quit")),
        ("", None),
        ("  # nothing", None),
    ],
)
def test_lines_and_what_they_ask_for(line, command):
    assert parse_command(line) == command


def test_in_test_mode_pairs_are_tests():
    assert parse_command("next", True) == Act(Op.SWITCH_TO_NEXT_TEST_PAIR)
    assert parse_command("prev", True) == Act(Op.SWITCH_TO_PREV_TEST_PAIR)
    assert parse_command("unsolved", True) == Act(Op.SWITCH_TO_FIRST_UNSOLVED_TEST)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fil 3", "'fil' is no command: did you mean fill?"),
        ("xyzzy", "'xyzzy' is no command: type help"),
        ("fill", "fill needs a color from 0 to 9"),
        ("fill 10 0 0", "fill needs a color from 0 to 9"),
        ("fill 3 0", "cells are a row and a column, or two corners, not '0'"),
        ("fill 3 a b", "not 'a b'"),
        ("flood 3", "flood needs a color and one cell"),
        ("flood 3 0 0 1 1", "flood needs a color and one cell"),
        ("move", "move needs one of: up, down, left, right"),
        ("rotate left", "rotate needs one of: cw, ccw"),
        ("paste", "paste takes a row and a column"),
        ("resize 3", "resize takes a height and a width"),
        ("resize 0 3", "of at least 1"),
        ("resize 3 x", "of at least 1"),
        ("42", "operation 42 is unknown: they are 0 to 41"),
        ("²", "'²' is no command"),
        ("op", "op needs a number"),
        ("submit now", "submit takes nothing after it"),
        ("next 2", "next takes nothing after it"),
        ("undo 2", "undo takes nothing after it"),
        ("save", "save needs a file"),
    ],
)
def test_mistakes_are_explained(line, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        parse_command(line)
    assert message in str(caught.value)


@given(st.text(max_size=30))
def test_any_line_is_understood_or_explained(line):
    with contextlib.suppress(ValueError):
        command = parse_command(line)
        assert command is None or isinstance(command, Act | Order)


def test_help_names_every_word():
    words = "fill flood move rotate flip copy cut paste clear input resize submit next"
    words += " prev unsolved reset undo demos show save help quit"
    assert all(word in HELP for word in words.split())
