import pytest

import arc_hand as hand
from jaxarc.ops.names import ARCLEOperationType as Op

GRID = "120. 034. 500. ...."
CORNER = "1000 0000 0000 0000"
NOTHING = "0000 0000 0000 0000"


@pytest.mark.parametrize(
    ("operation", "selection", "expected"),
    [
        (Op.MOVE_UP, CORNER, "020. 034. 100. ...."),
        (Op.MOVE_DOWN, CORNER, "020. 134. 500. ...."),
        (Op.MOVE_LEFT, CORNER, "021. 034. 500. ...."),
        (Op.MOVE_RIGHT, CORNER, "010. 034. 500. ...."),
        (Op.MOVE_UP, NOTHING, "034. 500. 120. ...."),
        (Op.MOVE_RIGHT, NOTHING, "012. 403. 050. ...."),
        # Black is selected with the 4, and does not overwrite what it would land on.
        (Op.MOVE_DOWN, "0010 0010 0000 0000", "120. 030. 504. ...."),
    ],
)
def test_cells_move_round_the_active_area(operation, selection, expected):
    after = hand.act(hand.canvas_of(GRID), operation, selection)
    assert hand.shown(after) == expected


@pytest.mark.parametrize(
    ("one", "other"), [(Op.MOVE_UP, Op.MOVE_DOWN), (Op.MOVE_LEFT, Op.MOVE_RIGHT)]
)
def test_moving_everything_there_and_back_changes_nothing(one, other):
    there = hand.act(hand.canvas_of(GRID), one, NOTHING)
    assert hand.shown(hand.act(there, other, NOTHING)) == GRID
