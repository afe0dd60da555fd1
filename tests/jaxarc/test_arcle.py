"""ARCLE, where the operations come from, agrees where its rules coincide with ours.

They differ on purpose (docs/decisions.md): ours moves around the edges where ARCLE's
object leaves the grid, pastes inside the selection only, keeps content when it resizes,
copies black cells, and does not rotate boxes that are not square.
"""

import numpy as np
import pytest

import arc_hand as hand
from jaxarc.ops.operations import ARCLEOperationType as Op

pytestmark = pytest.mark.slow  # many programs to compile

REASON = "ARCLE is not installed: pip install arcle"
color = pytest.importorskip("arcle.actions.color", reason=REASON)
critical = pytest.importorskip("arcle.actions.critical", reason=REASON)
objects = pytest.importorskip("arcle.actions.object", reason=REASON)

SIDE = 7
ARCLE = {
    **{Op.FILL_0 + c: color.gen_color(c) for c in range(10)},
    **{Op.FLOOD_FILL_0 + c: color.gen_flood_fill(c) for c in range(10)},
    Op.MOVE_UP: objects.gen_move(0),
    Op.MOVE_DOWN: objects.gen_move(1),
    Op.MOVE_RIGHT: objects.gen_move(2),
    Op.MOVE_LEFT: objects.gen_move(3),
    Op.ROTATE_CC: objects.gen_rotate(1),
    Op.ROTATE_C: objects.gen_rotate(3),
    Op.FLIP_HORIZONTAL: objects.gen_flip("H"),
    Op.FLIP_VERTICAL: objects.gen_flip("V"),
    Op.COPY_INPUT: critical.copy_from_input,
}


def arcle_state(grid, given):
    blank = lambda: np.zeros((SIDE, SIDE), np.int8)
    size = lambda: np.array([SIDE, SIDE], np.int8)
    selected = {
        "object": blank(),
        "object_sel": blank(),
        "background": blank(),
        "object_dim": np.zeros(2, np.int8),
        "object_pos": np.zeros(2, np.int8),
        "active": np.zeros(1, np.int8),
        "rotation_parity": np.zeros(1, np.int8),
    }
    return {
        "grid": grid.astype(np.int8),
        "grid_dim": size(),
        "input": given.astype(np.int8),
        "input_dim": size(),
        "selected": blank(),
        "clip": blank(),
        "clip_dim": np.zeros(2, np.int8),
        "object_states": selected,
    }


def random_box(rng, operation):
    """A rectangle that no operation takes out of the grid; square to rotate."""
    height, width = rng.integers(1, SIDE - 1, 2)
    if operation in (Op.ROTATE_C, Op.ROTATE_CC):
        width = height
    if Op.FLOOD_FILL_0 <= operation < Op.MOVE_UP:
        height = width = 1
    top, left = rng.integers(1, (SIDE - height, SIDE - width))
    cells = np.zeros((SIDE, SIDE), bool)
    cells[top : top + height, left : left + width] = True
    return cells


def picture(cells):
    return hand.picture_of(cells.astype(np.int32))


@pytest.mark.parametrize("operation", sorted(ARCLE))
def test_the_same_grid_comes_out(operation):
    rng = np.random.default_rng(operation)
    for _ in range(20):
        grid, given = rng.integers(0, rng.integers(2, 10), (2, SIDE, SIDE))
        cells = random_box(rng, operation)
        theirs = arcle_state(grid, given)
        ARCLE[operation](theirs, {"selection": cells.astype(np.int8)})
        start = hand.canvas_of(hand.picture_of(given))
        canvas = hand.canvas_of(hand.picture_of(grid))
        ours = hand.act(canvas, operation, picture(cells), start)
        assert hand.shown(ours) == hand.picture_of(theirs["grid"])


def test_what_was_copied_lands_on_as_large_a_selection():
    rng = np.random.default_rng(0)
    copy, paste = objects.gen_copy("O"), objects.gen_paste(paste_blank=True)
    for _ in range(20):
        grid = rng.integers(1, 10, (SIDE, SIDE))
        height, width = rng.integers(1, 4, 2)
        taken, onto = np.zeros((2, SIDE, SIDE), bool)
        taken[:height, :width] = True
        onto[SIDE - height :, SIDE - width :] = True
        theirs = arcle_state(grid, grid)
        copy(theirs, {"selection": taken.astype(np.int8)})
        paste(theirs, {"selection": onto.astype(np.int8)})
        copied = hand.act(
            hand.canvas_of(hand.picture_of(grid)), Op.COPY, picture(taken)
        )
        ours = hand.act(copied, Op.PASTE, picture(onto))
        assert hand.shown(ours) == hand.picture_of(theirs["grid"])
