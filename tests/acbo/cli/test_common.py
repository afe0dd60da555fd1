"""Ranges and tables from the command line, and what is wrong with them."""

import json

import pytest
import typer
from rich.console import Console

from acbo.cli import common


def test_ranges_and_levels_by_name():
    words = ["X=-5:5", " a b = 1e-3 : 2", "n=1:9:2", "m=5,1,2.5", "p=q=0:1"]
    ranges, levels = common.parse_ranges(words)
    assert ranges == {"X": (-5.0, 5.0), "a b": (0.001, 2.0), "p=q": (0.0, 1.0)}
    assert levels == {"n": [1, 3, 5, 7, 9], "m": [5, 1, 2.5]}
    assert common.parse_costs("X=3, a b=0.5") == {"X": 3.0, "a b": 0.5}
    given = common.ProblemOptions("Y", False, True, ["X=0:1"], "X,Z", know=[])
    assert given.arguments() == {
        **{"target": "Y", "maximize": False},
        **{"ranges": {"X": (0.0, 1.0)}, "settable": ("X", "Z")},
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["X"], "is not NAME=LOW:HIGH"),
        (["X=1"], "is not NAME=LOW:HIGH"),
        (["X=1:2:3:4"], "is not NAME=LOW:HIGH"),
        (["X=1:a"], "give numbers"),
        (["X=20:40,5"], "give numbers with decimal points"),
        (["X=0:1:0"], "step above 0"),
        (["X=0:1", "X=0,2"], "duplicate --range"),
    ],
)
def test_what_is_no_range(words, message):
    with pytest.raises(ValueError, match=message):
        common.parse_ranges(words)
    for wrong in ("3", "X=a"):
        with pytest.raises(ValueError, match="--cost"):
            common.parse_costs(wrong)


def test_wrong_input_ends_the_command():
    with pytest.raises(typer.BadParameter, match="that is wrong"), common.refusing():
        raise ValueError("that is wrong")


def test_brackets_in_names_are_no_markup():
    console = Console(record=True, width=60)
    console.print(common.make_table(("name", "value"), [("a[red]b", "[1]")], title="T"))
    text = console.export_text()
    assert "a[red]b" in text
    assert "[1]" in text


def test_json_is_whole_however_narrow_the_console():
    console = Console(record=True, width=20)
    content = {"a long name of something": [1.5, None], "[b]": "ü"}
    common.show_json(console, content)
    assert json.loads(console.export_text()) == content


def test_pictures_by_name(tmp_path):
    console = Console(record=True, width=200)
    common.write_pictures(console, tmp_path / "deep", {"a": "<svg/>"})
    assert (tmp_path / "deep" / "a.svg").read_text() == "<svg/>"
    assert "a.svg" in console.export_text()
