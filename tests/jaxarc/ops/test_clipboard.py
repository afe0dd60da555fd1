import arc_hand as hand
from jaxarc.ops.names import ARCLEOperationType as Op

GRID = "1020 3450 6000 ...."


def test_black_is_content_and_cells_beyond_it_stay():
    copied = hand.act(hand.canvas_of(GRID), Op.COPY, "1100 1100 0000 0000")
    assert hand.shown(copied) == GRID
    pasted = hand.act(copied, Op.PASTE, "0111 0000 0111 0111")
    assert hand.shown(pasted) == "1100 3450 6000 ...."


def test_content_lands_corner_on_corner():
    copied = hand.act(hand.canvas_of(GRID), Op.COPY, "0000 0110 0000 0000")
    pasted = hand.act(copied, Op.PASTE, "0000 0000 1110 0000")
    assert hand.shown(pasted) == "1020 3450 4500 ...."


def test_cutting_leaves_black_behind():
    cut = hand.act(hand.canvas_of(GRID), Op.CUT, "0000 1100 0000 0000")
    assert hand.shown(cut) == "1020 0050 6000 ...."
    pasted = hand.act(cut, Op.PASTE, "0000 0000 0011 0000")
    assert hand.shown(pasted) == "1020 0050 6034 ...."


def test_copying_nothing_keeps_the_clipboard():
    nothing = "0000 0000 0000 1000"
    copied = hand.act(hand.canvas_of(GRID), Op.COPY, "1000 0000 0000 0000")
    kept = hand.act(copied, Op.COPY, nothing)
    assert hand.shown(hand.act(kept, Op.PASTE, "0001 0000 0000 0000")) == (
        "1021 3450 6000 ...."
    )


def test_pasting_an_empty_clipboard_changes_nothing():
    canvas = hand.canvas_of(GRID)
    assert hand.shown(hand.act(canvas, Op.PASTE, "1111 1111 1111 0000")) == GRID
