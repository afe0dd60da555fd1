import pytest

import arc_hand as hand
from jaxarc.ops.names import ARCLEOperationType as Op

GRID = "12.. 34.. .... ...."


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("0000 0000 0010 0000", "120. 340. 000. ...."),
        ("1000 0000 0000 0000", "1... .... .... ...."),
        ("0001 0000 0000 0000", "1200 .... .... ...."),
        ("0001 0000 1000 0000", "1200 3400 0000 ...."),
        ("0000 0000 0000 0000", GRID),
    ],
)
def test_the_far_corner_of_the_selection_becomes_the_grids(selection, expected):
    after = hand.act(hand.canvas_of(GRID), Op.RESIZE, selection)
    assert hand.shown(after) == expected


def test_what_is_cut_off_does_not_come_back():
    small = hand.act(hand.canvas_of(GRID), Op.RESIZE, "1000 0000 0000 0000")
    large = hand.act(small, Op.RESIZE, "0000 0100 0000 0000")
    assert hand.shown(large) == "10.. 00.. .... ...."


def test_copying_the_input_takes_its_size_too():
    given = hand.canvas_of("777. 888. .... ....")
    after = hand.act(hand.canvas_of(GRID), Op.COPY_INPUT, "0000 0000 0000 0000", given)
    assert hand.shown(after) == "777. 888. .... ...."
