"""Grids and tasks read back from their pictures, put together and saved."""

import sys
import types

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.draw import svg
from jaxarc.draw.cells import COLOR_SCHEMES, read_cells
from jaxarc.types import Grid
from jaxrig.report.images import parse_drawing

SMALL, LARGE = (
    svg.Drawing(10.0, 4.0, "<path/>", "s"),
    svg.Drawing(20.0, 8.0, "<rect/>", "l"),
)


def test_rows_and_columns_take_the_room_of_their_parts():
    row, column = svg.beside([SMALL, LARGE], 5.0), svg.stacked([SMALL, LARGE], 5.0)
    assert (row.width, row.height) == (35.0, 8.0)
    assert 'translate(0 2)"><path' in row.body
    assert 'translate(15 0)"><rect' in row.body
    assert (column.width, column.height) == (20.0, 17.0)
    assert 'translate(5 0)"><path' in column.body
    part = svg.padded(SMALL, 3.0)
    assert (part.width, part.height) == (16.0, 10.0)
    middle = svg.centered(SMALL, 30.0, 2.0)
    assert (middle.width, middle.height) == (30.0, 4.0)
    assert "translate(10 0)" in middle.body


def test_words_cannot_break_the_markup(read_svg):
    text = '<script>"&"currentColor</script>'
    for background in ("", "#ffffff"):
        assert read_svg(svg.words(text).as_svg(background)).texts == [text]


def test_a_saved_file_is_dark_on_white(tmp_path):
    path = svg.save_drawing(svg.words("a"), tmp_path / "new" / "a.svg")
    text = path.read_text()
    assert "currentColor" not in text
    assert 'fill="#ffffff"' in text
    assert not parse_drawing(text).themed
    themed = svg.beside([svg.words("a"), svg.arrow(90)], 2.0).as_svg()
    assert parse_drawing(themed).themed  # in a report


def test_other_formats_are_converted(tmp_path, monkeypatch):
    converter = types.ModuleType("cairosvg")
    monkeypatch.setattr(
        converter, "svg2png", lambda bytestring: b"PNG" + bytestring[:4], raising=False
    )
    monkeypatch.setitem(sys.modules, "cairosvg", converter)
    path = svg.save_drawing(SMALL, str(tmp_path / "a.PNG"))
    assert path.read_bytes() == b"PNG<svg"


def test_a_missing_converter_is_named_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ImportError, match="pip install cairosvg"):
        svg.save_drawing(SMALL, tmp_path / "a.pdf")
    with pytest.raises(ValueError, match=r"\.svg, \.png or \.pdf"):
        svg.save_drawing(SMALL, tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


SIDE = 40.0


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (10, 2), (10, 10)])
def test_every_cell_is_where_it_belongs(shape, read_svg):
    grid = np.random.default_rng(1).integers(0, 10, shape)
    side = 400 / max(shape)
    (found,) = read_svg(svg.draw_grid(grid).as_svg()).cells(side)
    np.testing.assert_array_equal(found, grid)


def test_padding_is_left_out_and_holes_are_dotted(read_svg):
    data = jnp.array([[1, 2, 0], [3, 4, 0], [0, 0, 0]], jnp.int32)
    mask = jnp.array([[True, False, False], [True, True, False], [False] * 3])
    drawing = svg.draw_grid(Grid(data, mask), max_width=2, max_height=2, label="In")
    picture = read_svg(drawing.as_svg())
    (found,) = picture.cells(SIDE)
    np.testing.assert_array_equal(found, [[1, -1], [3, 4]])
    assert drawing.body.count("<circle") == 1
    assert picture.texts == ["In (2x2)"]


@pytest.mark.parametrize("scheme", COLOR_SCHEMES)
def test_squares_have_the_colors_of_the_scheme(scheme):
    drawing = svg.draw_grid(np.arange(10)[None], scheme=scheme)
    for value, color in enumerate(COLOR_SCHEMES[scheme][:10]):
        assert f'data-value="{value}" fill="{color}"' in drawing.body


def test_selection_is_outlined_at_its_edges_only(read_svg):
    selection = np.zeros((3, 3), bool)
    selection[:2, 1:] = True
    drawing = svg.draw_grid(
        np.zeros((3, 3), int), max_width=3, max_height=3, selection=selection
    )
    (mark,) = read_svg(drawing.as_svg()).marks("selection")
    flat, upright = mark.attrib["d"].count("h"), mark.attrib["d"].count("v")
    assert (flat, upright) == (4, 4)
    assert "M40 0h40" in mark.attrib["d"]


def test_changed_cells_are_ringed_one_by_one(read_svg):
    changed = np.eye(3, dtype=bool)
    drawing = svg.draw_grid(
        np.zeros((3, 3), int), max_width=3, max_height=3, changed=changed
    )
    (mark,) = read_svg(drawing.as_svg()).marks("changed")
    assert mark.attrib["d"].count("M") == 3
    assert "M48 48" in mark.attrib["d"]


def test_labels_are_escaped_and_sizes_optional(read_svg):
    drawing = svg.draw_grid(np.zeros((1, 1), int), label="<b>&", show_size=False)
    assert read_svg(drawing.as_svg()).texts == ["<b>&"]
    bare = svg.draw_grid(np.zeros((1, 1), int), show_size=False)
    assert read_svg(bare.as_svg()).texts == []
    drawing = svg.draw_grid(np.full((3, 3), -1), show_size=False)
    assert read_svg(drawing.as_svg()).texts == ["empty"]


def test_numbers_are_those_of_the_whole_array(read_svg):
    grid = np.full((14, 4), -1)
    grid[11:13, 1:3] = 5
    cells = read_cells(grid)
    tile = svg.grid_tile(cells, 20.0)
    drawing = svg.numbered(tile, cells, 20.0)
    picture = read_svg(drawing.as_svg())
    assert [mark.text for mark in picture.marks("number")] == ["1", "2", "11", "12"]
    assert drawing.width > tile.width
    columns = [float(mark.attrib["x"]) for mark in picture.marks("number")[:2]]
    assert columns[1] - columns[0] == 20.0


def assert_grids(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_task_shows_every_pair(task, pairs, read_svg):
    drawing = svg.draw_task(task, label="t")
    picture = read_svg(drawing.as_svg())
    expected = [grid for pair in pairs for grid in pair] + [pairs[0][0]]
    assert_grids(picture.cells(SIDE), expected)
    named = [t for t in picture.texts if t.startswith("T")]
    assert named == ["Train 1", "Train 2", "Test 1"]
    assert picture.texts.count("?") == 1
    parse_drawing(drawing.as_svg())
    fewer = read_svg(svg.draw_task(task, include_test=False).as_svg())
    assert_grids(fewer.cells(SIDE), expected[:4])
    assert "Test 1" not in fewer.texts


def test_a_task_without_pairs_is_refused(task):
    bare = type(task).from_packed(
        task.pairs, task.sizes, 0, 0, -1, task.width, task.max_train_pairs
    )
    with pytest.raises(ValueError, match="no pairs"):
        svg.draw_task(bare)
