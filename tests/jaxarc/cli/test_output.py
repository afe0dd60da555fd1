"""Files are checked before the work; pipes get a wide console."""

import pytest
import typer

from jaxarc.cli.output import check_picture, count_steps, write_svg
from jaxarc.draw import draw_grid
from jaxrig.console import WIDE, make_console


def test_a_pipe_is_wide():
    assert make_console().width == WIDE


def test_the_name_of_a_picture_says_its_format(tmp_path):
    check_picture(None)
    check_picture(tmp_path / "a.SVG")
    with pytest.raises(typer.BadParameter, match=r"a\.txt does not end in \.svg"):
        check_picture(tmp_path / "a.txt")


def test_steps_are_counted_in_words():
    assert [count_steps(n) for n in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]


def test_a_picture_is_written_and_named(tmp_path, capsys):
    write_svg(draw_grid([[1, 2]]), tmp_path / "g.svg", make_console())
    assert (tmp_path / "g.svg").read_text().startswith("<svg")
    assert "g.svg" in capsys.readouterr().out.replace("\n", "")
