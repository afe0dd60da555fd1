import pytest

import arc_hand as hand
from jaxarc.ops.names import ARCLEOperationType as Op

GRID = "1120 1020 0022 ...."


@pytest.mark.parametrize(
    ("operation", "selection", "expected"),
    [
        (Op.FILL_0 + 5, "1100 0000 0001 0000", "5520 1020 0025 ...."),
        (Op.FILL_0, "1100 0000 0000 1111", "0020 1020 0022 ...."),
        (Op.FILL_0 + 3, "0000 0000 0000 1111", GRID),
        (Op.FLOOD_FILL_0 + 4, "1000 0000 0000 0000", "4420 4020 0022 ...."),
        (Op.FLOOD_FILL_0 + 4, "1100 0000 0000 0000", GRID),
        (Op.FLOOD_FILL_0 + 1, "1000 0000 0000 0000", GRID),
        (Op.FLOOD_FILL_0 + 9, "0000 0000 1000 0000", "1120 1920 9922 ...."),
        (Op.CLEAR, "1110 0000 0000 0000", "0000 1020 0022 ...."),
        (Op.CLEAR, "0000 0000 0000 0001", "0000 0000 0000 ...."),
    ],
)
def test_one_color_on_the_cells_meant(operation, selection, expected):
    after = hand.act(hand.canvas_of(GRID), operation, selection)
    assert hand.shown(after) == expected
