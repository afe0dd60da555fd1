"""Oracle: colors of the palette, read back from what a console was given."""

import io

import numpy as np
from rich.color import Color
from rich.console import Console

from jaxarc.cli.compact import CompactGrid, framed, is_distinct, legend
from jaxarc.utils.visualization.palette import cell_color

GRID = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.int32)


def console(colors):
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=colors,
        no_color=False,
        width=40,
        _environ={},
    )


def test_two_rows_share_a_line():
    lines = console("truecolor").render_lines(CompactGrid(GRID), pad=False)
    seen = [
        [(s.style.color, s.style.bgcolor) for s in line if s.style and s.text == "▀"]
        for line in lines
    ]
    shade = lambda value: Color.parse(cell_color(int(value)))
    assert seen == [
        [(shade(a), shade(b)) for a, b in zip(GRID[0], GRID[1], strict=True)],
        [(shade(a), None) for a in GRID[2]],
    ]


def test_few_colors_give_digits():
    for colors in (None, "standard"):
        target = console(colors)
        assert not is_distinct(target)
        with target.capture() as capture:
            target.print(CompactGrid(GRID))
        assert capture.get().split() == ["123", "456", "789"]


def test_a_panel_is_named_and_as_wide_as_its_cells():
    target = console(None)
    lines = target.render_lines(framed(GRID, "1", "input"), pad=False)
    text = ["".join(segment.text for segment in line) for line in lines]
    assert len(text) == 5
    assert "1" in text[0]
    assert "123" in text[1]
    assert len(text[0].strip()) == 7


def test_the_legend_has_every_color():
    spans = legend().spans
    assert [str(span.style).split("on ")[1] for span in spans] == [
        cell_color(value).lower() for value in range(10)
    ]
