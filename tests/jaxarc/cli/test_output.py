"""Files are checked before the work; pipes get a wide console."""

import pytest
import typer
from rich.console import Console
from rich.panel import Panel

from jaxarc.cli.output import beside, check_picture, count_steps, write_svg
from jaxarc.utils.visualization import draw_grid_svg
from jaxrig.console import WIDE, make_console


def test_a_pipe_is_wide():
    assert make_console().width == WIDE


def test_panels_are_stacked_where_there_is_no_room():
    panels = [Panel("x" * 20, expand=False), Panel("y" * 20, expand=False)]
    for width, lines in ((60, 3), (40, 6)):
        console = Console(width=width)
        shown = console.render_lines(beside(panels, console))
        assert len(shown) == lines


def test_smaller_panels_come_before_stacking():
    large, small = Panel("x" * 20, expand=False), Panel("y", expand=False)
    for width, lines in ((60, 3), (40, 3), (25, 6)):
        console = Console(width=width)
        shown = console.render_lines(beside([large, large], console, [large, small]))
        assert len(shown) == lines


def test_the_name_of_a_picture_says_its_format(tmp_path):
    check_picture(None)
    check_picture(tmp_path / "a.SVG")
    with pytest.raises(typer.BadParameter, match=r"a\.txt does not end in \.svg"):
        check_picture(tmp_path / "a.txt")


def test_steps_are_counted_in_words():
    assert [count_steps(n) for n in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]


def test_a_picture_is_written_and_named(tmp_path, capsys):
    write_svg(draw_grid_svg([[1, 2]]), tmp_path / "g.svg", make_console())
    assert (tmp_path / "g.svg").read_text().startswith("<svg")
    assert "g.svg" in capsys.readouterr().out.replace("\n", "")
