"""Parts refuse what they cannot show and show the rest as given."""

from typing import Any, cast

import numpy as np
import pytest

from jaxrig import report

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 2"><rect/></svg>'
PNG = report.png_from_array(np.zeros((2, 3), np.uint8))
HOSTILE = "</td></table><script>alert(1)</script>\" onload='x' &amp; <b>"


def test_text_becomes_paragraphs_with_code(parse):
    root = parse(report.Text("Run `make <demo>`.\n\nThen look.").html())
    assert [node.text for node in root.all("p")] == ["Run make <demo>.", "Then look."]
    assert root.one("code").text == "make <demo>"


def test_code_keeps_its_lines_and_becomes_no_markup(parse):
    lines = f"step may be compiled once\n    {HOSTILE}\n  `x`"
    assert parse(report.Code(lines).html()).one("pre").text == lines


def test_a_heading_is_one_level_below_its_section(parse):
    assert parse(report.Heading(HOSTILE).html()).one("h3").text == HOSTILE


@pytest.mark.parametrize("part", [report.Text, report.Heading, report.Code])
@pytest.mark.parametrize("text", ["", " \n\n "])
def test_text_and_code_need_words(part, text):
    with pytest.raises(ValueError, match="text is"):
        part(text)


def test_table_cells(parse):
    table = report.Table(
        ["name", "rate", "count", "ok"],
        [
            ["a", 1234567.8, np.int32(3), True],
            ["b", np.float32(0.5), None, np.bool_(False)],
        ],
        caption="Of `step`",
    )
    root = parse(table.html())
    rows = [[cell.text for cell in row.all("td")] for row in root.all("tr")[1:]]
    assert rows == [["a", "1,234,568", "3", "yes"], ["b", "0.5", "", "no"]]
    assert root.one("caption").text == "Of step"
    assert [cell.text for cell in root.all("th")] == ["name", "rate", "count", "ok"]


def test_numbers_and_their_heads_are_right_aligned(parse):
    rows = [["a", 1.5, 2, "x"], ["b", None, "none", None]]
    root = parse(report.Table(["text", "number", "mixed", "words"], rows).html())
    numeric = [cell.text for cell in root.having("class", "number")]
    assert numeric == ["number", "1.5", "2"]
    words = report.Table(["a", "b"], [["97%", "30.5 ± 1.6"], ["-3", "3 steps"]]).html()
    assert words.count('class="number"') == 4  # both of a, its head, and one of b


@pytest.mark.parametrize(
    ("columns", "rows", "error", "message"),
    [
        ([], [], ValueError, "columns is empty"),
        (["a", "b"], [[1, 2], [3]], ValueError, r"rows\[1\] has 1 cells.*2 columns"),
        (["a"], [[[1]]], TypeError, "rows"),
    ],
)
def test_table_refusals(columns, rows, error, message):
    with pytest.raises(error, match=message):
        report.Table(columns, rows)


def test_parts_do_not_change_with_what_they_were_made_from():
    frames, row, positions = [PNG, PNG], [1], np.zeros((2, 1, 2))
    points = report.Points(positions, report.Axis("x", -1, 1), report.Axis("y", -1, 1))
    parts = report.Player(frames), report.Table(["a"], [row]), points
    before = [part.html() for part in parts]
    frames.pop()
    row[0] = 2
    positions[:] = 0.3
    assert [part.html() for part in parts] == before


def test_figure_caption_and_name(parse):
    root = parse(report.Figure(SVG, caption="A `rect` <i>", alt="box").html())
    assert root.one("figcaption").text == "A rect <i>"
    assert root.one("img").attributes["alt"] == "box"
    assert not parse(report.Figure(PNG).html()).all("figcaption")


@pytest.mark.parametrize(
    ("image", "error"),
    [
        (b"GIF89a", ValueError),
        (PNG[:-1], ValueError),
        ("<html/>", ValueError),
        (None, TypeError),
        (np.zeros((2, 2), np.uint8), TypeError),
    ],
)
def test_images_are_checked_where_they_are_given(image, error):
    with pytest.raises(error, match="image"):
        report.Figure(image)
    with pytest.raises(error, match="frames"):
        report.Player([SVG if isinstance(image, str) else PNG, image])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"frames": []}, ValueError, "frames is empty"),
        ({"frames": [PNG, SVG]}, TypeError, r"frames\[1\] is of type str"),
        ({"frames": [PNG], "captions": ["a", "b"]}, ValueError, "captions has 2"),
        ({"frames": [PNG], "frames_per_second": 0}, ValueError, "per_second is 0"),
        ({"frames": [PNG], "frames_per_second": 61.5}, ValueError, "is 61.5"),
        (
            {"frames": [PNG], "frames_per_second": float("nan")},
            ValueError,
            "per_second is nan",
        ),
    ],
)
def test_player_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        report.Player(**arguments)


def test_a_long_table_opens_on_demand(parse):
    short, long = (report.Table(["n"], [[n] for n in range(rows)]) for rows in (8, 9))
    assert not parse(short.html()).all("details")
    opened = parse(long.html()).one("details")
    assert opened.one("summary").text == "Table (9 rows)"
    assert len(opened.all("td")) == 9


def test_groups_hold_parts(parse):
    chart = report.Figure(SVG)
    beside = report.Beside(chart, report.Text("words"), chart)
    root = parse(report.Fold("More of `it`", chart, beside).html())
    assert root.one("summary").text == "More of it"
    assert len(root.all("img")) == 3
    with pytest.raises(TypeError, match=r"parts\[1\] is of type str"):
        report.Fold("More", report.Text("a"), cast("Any", "b"))


def test_a_color_bar_has_round_ticks_inside_its_ends(parse):
    bar = report.ColorBar(report.Axis("age (s)", 0.3, 2.2), ["#000000", "#ffffff"])
    root = parse(bar.html())
    ticks = {n.text: n.attributes["style"] for n in root.all("span")}
    assert set(ticks) == {"0.5", "1.0", "1.5", "2.0"}
    assert ticks["1.5"] == "left:63.16%"
    assert root.one("p").text == "age (s)"
