"""A step read back from its picture."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.actions import create_bbox_action, create_mask_action, create_point_action
from jaxarc.utils.visualization.steps import (
    describe_step,
    draw_rl_step_svg,
    draw_rl_step_svg_enhanced,
)
from jaxrig.report.vector import parse_drawing

BEFORE = np.array([[0, 1, -1], [2, 3, -1], [-1, -1, -1]])
AFTER = np.array([[0, 7, -1], [2, 7, -1], [-1, -1, -1]])
SELECTION = np.array([[False, True, False]] * 2 + [[False] * 3])
SIDE = 40.0


@pytest.mark.parametrize(
    "action",
    [
        create_bbox_action(7, 0, 1, 1, 1),
        create_mask_action(7, SELECTION),
        {"operation": 7, "selection": SELECTION},
    ],
    ids=["bbox", "mask", "dictionary"],
)
def test_before_and_after_with_their_marks(action, read_svg):
    drawing = draw_rl_step_svg(
        BEFORE, AFTER, action, 0.5, 0.75, 3, previous_similarity=0.25, label="<a>"
    )
    picture = read_svg(drawing.as_svg())
    before, after = picture.cells(SIDE)
    np.testing.assert_array_equal(before, BEFORE[:2, :2])
    np.testing.assert_array_equal(after, AFTER[:2, :2])
    (outline,), (rings,) = picture.marks("selection"), picture.marks("changed")
    assert outline.attrib["d"].count("v") == 4
    assert rings.attrib["d"].count("M") == 2
    assert picture.texts == [
        "<a> · Step 3 · Op 7: Fill 7",
        "Before (2x2)",
        "After (2x2)",
        "reward +0.500 · similarity 0.250 → 0.750 · 2 cells changed",
    ]
    parse_drawing(drawing.as_svg())


def test_operation_and_selection_without_an_action(read_svg):
    drawing = draw_rl_step_svg(
        BEFORE, BEFORE, operation=jnp.int32(34), selection=jnp.asarray(SELECTION)
    )
    picture = read_svg(drawing.as_svg())
    assert picture.texts[0] == "Op 34: Submit"
    assert picture.texts[-1] == "0 cells changed"
    assert picture.marks("changed") == []
    assert len(picture.marks("selection")) == 1


def test_masks_and_given_changes_count(read_svg):
    mask = np.zeros((3, 3), bool)
    mask[0, :2] = True
    drawing = draw_rl_step_svg(
        BEFORE, AFTER, before_mask=mask, after_mask=mask, changed_cells=mask
    )
    picture = read_svg(drawing.as_svg())
    assert [grid.tolist() for grid in picture.cells(SIDE)] == [[[0, 1]], [[0, 7]]]
    assert picture.texts[-1] == "2 cells changed"


def test_one_cell_is_one_cell(read_svg):
    drawing = draw_rl_step_svg(np.array([[1]]), np.array([[2]]), reward=-1)
    assert read_svg(drawing.as_svg()).texts[-1] == "reward -1.000 · 1 cell changed"


def test_both_documented_names_are_one_function():
    assert draw_rl_step_svg_enhanced is draw_rl_step_svg


def test_unknown_operations_are_refused():
    with pytest.raises(ValueError, match="99"):
        draw_rl_step_svg(BEFORE, AFTER, create_point_action(99, 0, 0))


def test_a_step_in_words():
    assert describe_step(None, 0, 0.5) == "Start, reward +0.000, similarity 0.500"
    assert describe_step(24, -1, 1).startswith("Op 24: Rotate CW, reward -1.000")


def test_what_is_shown_is_a_choice(read_svg):
    shown = {"reward": 1, "similarity": 0.5, "step_num": 2}
    bare = draw_rl_step_svg(
        BEFORE, AFTER, **shown, highlight_changes=False, show_metrics=False
    )
    picture = read_svg(bare.as_svg())
    assert picture.marks("changed") == []
    assert [text for text in picture.texts if "reward" in text] == []
    numbered = read_svg(
        draw_rl_step_svg(BEFORE, AFTER, **shown, show_coordinates=True).as_svg()
    )
    assert [mark.text for mark in numbered.marks("number")] == 2 * ["0", "1", "0", "1"]
