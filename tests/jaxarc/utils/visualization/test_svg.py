"""Grids read back from their pictures."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.types import Grid
from jaxarc.utils.visualization.cells import read_cells
from jaxarc.utils.visualization.palette import COLOR_SCHEMES
from jaxarc.utils.visualization.svg import draw_grid_svg, grid_tile, numbered
from jaxrig.report.vector import parse_drawing

SIDE = 40.0


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (10, 2), (10, 10)])
def test_every_cell_is_where_it_belongs(shape, read_svg):
    grid = np.random.default_rng(1).integers(0, 10, shape)
    side = 400 / max(shape)
    (found,) = read_svg(draw_grid_svg(grid).as_svg()).cells(side)
    np.testing.assert_array_equal(found, grid)


def test_padding_is_left_out_and_holes_are_dotted(read_svg):
    data = jnp.array([[1, 2, 0], [3, 4, 0], [0, 0, 0]], jnp.int32)
    mask = jnp.array([[True, False, False], [True, True, False], [False] * 3])
    drawing = draw_grid_svg(Grid(data, mask), max_width=2, max_height=2, label="In")
    picture = read_svg(drawing.as_svg())
    (found,) = picture.cells(SIDE)
    np.testing.assert_array_equal(found, [[1, -1], [3, 4]])
    assert drawing.body.count("<circle") == 1
    assert picture.texts == ["In (2x2)"]


@pytest.mark.parametrize("scheme", COLOR_SCHEMES)
def test_squares_have_the_colors_of_the_scheme(scheme):
    drawing = draw_grid_svg(np.arange(10)[None], scheme=scheme)
    for value, color in enumerate(COLOR_SCHEMES[scheme][:10]):
        assert f'data-value="{value}" fill="{color}"' in drawing.body


def test_selection_is_outlined_at_its_edges_only(read_svg):
    selection = np.zeros((3, 3), bool)
    selection[:2, 1:] = True
    drawing = draw_grid_svg(
        np.zeros((3, 3), int), max_width=3, max_height=3, selection=selection
    )
    (mark,) = read_svg(drawing.as_svg()).marks("selection")
    flat, upright = mark.attrib["d"].count("h"), mark.attrib["d"].count("v")
    assert (flat, upright) == (4, 4)
    assert "M40 0h40" in mark.attrib["d"]


def test_changed_cells_are_ringed_one_by_one(read_svg):
    changed = np.eye(3, dtype=bool)
    drawing = draw_grid_svg(
        np.zeros((3, 3), int), max_width=3, max_height=3, changed=changed
    )
    (mark,) = read_svg(drawing.as_svg()).marks("changed")
    assert mark.attrib["d"].count("M") == 3
    assert "M48 48" in mark.attrib["d"]


def test_labels_are_escaped_and_sizes_optional(read_svg):
    drawing = draw_grid_svg(np.zeros((1, 1), int), label="<b>&", show_size=False)
    assert read_svg(drawing.as_svg()).texts == ["<b>&"]
    bare = draw_grid_svg(np.zeros((1, 1), int), show_size=False)
    assert read_svg(bare.as_svg()).texts == []


def test_padding_in_units_and_none_for_a_group():
    grid = np.zeros((1, 1), int)
    inner = draw_grid_svg(grid, max_width=1, show_size=False, as_group=True)
    outer = draw_grid_svg(
        grid, max_width=1, show_size=False, padding=1, extra_bottom_padding=2
    )
    assert inner.width == inner.height == SIDE + 4  # the border
    assert outer.width == inner.width + 2 * SIDE
    assert outer.height == inner.height + 4 * SIDE


def test_long_labels_widen_the_picture():
    narrow = draw_grid_svg(np.zeros((9, 1), int))
    wide = draw_grid_svg(np.zeros((9, 1), int), label="a label of many words")
    assert wide.width > narrow.width + 100


def test_nothing_to_draw_is_said(read_svg):
    drawing = draw_grid_svg(np.full((3, 3), -1), show_size=False)
    assert read_svg(drawing.as_svg()).texts == ["empty"]


def test_the_picture_passes_the_rules_of_reports():
    drawing = draw_grid_svg(np.arange(9).reshape(3, 3), selection=np.eye(3, dtype=bool))
    assert parse_drawing(drawing.as_svg()).size() == (drawing.width, drawing.height)


def test_numbers_are_those_of_the_whole_array(read_svg):
    grid = np.full((14, 4), -1)
    grid[11:13, 1:3] = 5
    cells = read_cells(grid)
    tile = grid_tile(cells, 20.0)
    drawing = numbered(tile, cells, 20.0)
    picture = read_svg(drawing.as_svg())
    assert [mark.text for mark in picture.marks("number")] == ["1", "2", "11", "12"]
    assert drawing.width > tile.width
    columns = [float(mark.attrib["x"]) for mark in picture.marks("number")[:2]]
    assert columns[1] - columns[0] == 20.0
