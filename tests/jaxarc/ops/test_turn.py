import pytest

import arc_hand as hand
from jaxarc.ops.names import ARCLEOperationType as Op

GRID = "123. 456. 780. ...."


@pytest.mark.parametrize(
    ("operation", "selection", "expected"),
    [
        (Op.ROTATE_C, "0000 0000 0000 0000", "741. 852. 063. ...."),
        (Op.ROTATE_CC, "0000 0000 0000 0000", "360. 258. 147. ...."),
        (Op.ROTATE_C, "0110 0110 0000 0000", "152. 463. 780. ...."),
        (Op.ROTATE_C, "0110 0000 0000 0000", GRID),
        (Op.FLIP_HORIZONTAL, "1110 0000 0000 0000", "321. 456. 780. ...."),
        (Op.FLIP_VERTICAL, "0010 0010 0010 0000", "120. 456. 783. ...."),
        # The box of two corners is the whole grid, whatever lies between them.
        (Op.FLIP_VERTICAL, "1000 0000 0010 0000", "780. 456. 123. ...."),
    ],
)
def test_the_box_turns_in_place(operation, selection, expected):
    after = hand.act(hand.canvas_of(GRID), operation, selection)
    assert hand.shown(after) == expected


def test_four_quarter_turns_are_none():
    canvas = hand.canvas_of(GRID)
    for _ in range(4):
        canvas = hand.act(canvas, Op.ROTATE_C, "0110 0110 0000 0000")
    assert hand.shown(canvas) == GRID
