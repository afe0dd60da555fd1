"""Pictures put together, shown and saved."""

import sys
import types

import pytest

from jaxarc.utils.visualization.drawing import (
    Drawing,
    arrow,
    beside,
    centered,
    padded,
    save_svg_drawing,
    stacked,
    words,
)
from jaxrig.report.vector import parse_drawing

SMALL, LARGE = Drawing(10.0, 4.0, "<path/>", "s"), Drawing(20.0, 8.0, "<rect/>", "l")


def test_rows_and_columns_take_the_room_of_their_parts():
    row, column = beside([SMALL, LARGE], 5.0), stacked([SMALL, LARGE], 5.0)
    assert (row.width, row.height) == (35.0, 8.0)
    assert 'translate(0 2)"><path' in row.body
    assert 'translate(15 0)"><rect' in row.body
    assert (column.width, column.height) == (20.0, 17.0)
    assert 'translate(5 0)"><path' in column.body


def test_room_around_a_picture():
    part = padded(SMALL, 3.0, 2.0)
    assert (part.width, part.height) == (16.0, 12.0)
    middle = centered(SMALL, 30.0, 2.0)
    assert (middle.width, middle.height) == (30.0, 4.0)
    assert "translate(10 0)" in middle.body


def test_words_cannot_break_the_markup(read_svg):
    text = '<script>"&"currentColor</script>'
    for background in ("", "#ffffff"):
        assert read_svg(words(text).as_svg(background)).texts == [text]


def test_a_drawing_may_stand_in_a_report_and_follows_its_theme():
    found = parse_drawing(beside([words("a"), arrow(90)], 2.0).as_svg())
    assert found.themed
    assert not found.isolated


def test_notebooks_get_the_same_picture_twice():
    assert SMALL._repr_svg_() == SMALL._repr_html_() == SMALL.as_svg()


def test_a_saved_file_is_dark_on_white(tmp_path):
    path = save_svg_drawing(words("a"), tmp_path / "new" / "a.svg")
    text = path.read_text()
    assert "currentColor" not in text
    assert 'fill="#ffffff"' in text
    assert not parse_drawing(text).themed


def test_other_formats_are_converted(tmp_path, monkeypatch):
    converter = types.ModuleType("cairosvg")
    monkeypatch.setattr(
        converter, "svg2png", lambda bytestring: b"PNG" + bytestring[:4], raising=False
    )
    monkeypatch.setitem(sys.modules, "cairosvg", converter)
    path = save_svg_drawing(SMALL, str(tmp_path / "a.PNG"))
    assert path.read_bytes() == b"PNG<svg"


def test_a_missing_converter_is_named_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ImportError, match="pip install cairosvg"):
        save_svg_drawing(SMALL, tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_unknown_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.svg, \.png or \.pdf"):
        save_svg_drawing(SMALL, tmp_path / "a.gif")
