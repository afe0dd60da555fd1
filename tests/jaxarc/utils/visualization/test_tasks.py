"""Pairs and tasks read back from their pictures."""

import numpy as np
import pytest

from jaxarc.utils.visualization.tasks import (
    draw_parsed_task_data_svg,
    draw_task_pair_svg,
)
from jaxrig.report.vector import parse_drawing

SIDE = 40.0  # grids this small are drawn at the largest size


def assert_grids(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_pair_shows_both_grids(task, pairs, read_svg):
    for drawing in (
        draw_task_pair_svg(task.get_train_pair(0), label="<1>"),
        draw_task_pair_svg(*pairs[0], label="<1>"),
    ):
        picture = read_svg(drawing.as_svg())
        assert_grids(picture.cells(SIDE), pairs[0])
        assert picture.texts == ["<1>", "Input (3x4)", "Output (2x2)"]


def test_masks_crop_both(read_svg):
    grid, mask = np.arange(4).reshape(2, 2), np.array([[True, False], [False, False]])
    drawing = draw_task_pair_svg(grid, grid, input_mask=mask, output_mask=mask)
    assert_grids(read_svg(drawing.as_svg()).cells(SIDE), [grid[:1, :1]] * 2)


def test_an_unknown_output_is_a_question(task, pairs, read_svg):
    for drawing in (
        draw_task_pair_svg(pairs[0][0]),
        draw_task_pair_svg(task.get_test_pair(0)),
    ):
        picture = read_svg(drawing.as_svg())
        assert picture.texts == ["Input (3x4)", "?", "Output"]
        assert_grids(picture.cells(SIDE), [pairs[0][0]])


def test_a_large_pair_keeps_to_its_room():
    grid = np.zeros((30, 30), int)
    drawing = draw_task_pair_svg(grid, grid, width=15, height=8)
    assert drawing.width <= 15 * SIDE
    assert drawing.height <= 8 * SIDE


def test_a_task_shows_every_pair(task, pairs, read_svg):
    drawing = draw_parsed_task_data_svg(task, label="t")
    picture = read_svg(drawing.as_svg())
    expected = [grid for pair in pairs for grid in pair] + [pairs[0][0]]
    assert_grids(picture.cells(SIDE), expected)
    assert [t for t in picture.texts if t.startswith("T")] == [
        "Train 1",
        "Train 2",
        "Test 1",
    ]
    assert picture.texts.count("?") == 1
    parse_drawing(drawing.as_svg())


def test_tests_can_be_left_out(task, pairs, read_svg):
    picture = read_svg(draw_parsed_task_data_svg(task, include_test=False).as_svg())
    assert len(picture.cells(SIDE)) == 4
    assert "Test 1" not in picture.texts


def test_a_task_without_pairs_is_refused(task):
    bare = type(task).from_packed(
        task.pairs, task.sizes, 0, 0, -1, task.width, task.max_train_pairs
    )
    with pytest.raises(ValueError, match="no pairs"):
        draw_parsed_task_data_svg(bare)
