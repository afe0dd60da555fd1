"""Ranges, names and tables from the command line, and what is wrong with them."""

import json

import pytest
import typer
from rich.console import Console

from acbo.cli import common
from acbo.named.tables import read_csv
from causal_tables import write_table


def read(path, target="Y", maximize=False, ranges=(), settable=""):
    table = read_csv(path, target=target)
    return common.read_experiments(table, target, maximize, list(ranges), settable)


def test_ranges_by_name():
    assert common.parse_ranges(["X=-5:5", " a b = 1e-3 : 2"]) == {
        "X": (-5.0, 5.0),
        "a b": (0.001, 2.0),
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["X"], "is not NAME=LOW:HIGH"),
        (["X=1:a"], "must be numbers"),
        (["X=5:-5"], "low end first"),
        (["X=0:inf"], "both finite"),
        (["X=0:1", "X=0:2"], "duplicate --range"),
    ],
)
def test_what_is_no_range(words, message):
    with pytest.raises(ValueError, match=message):
        common.parse_ranges(words)


def test_ranges_that_are_not_given_are_observed(tmp_path):
    given = read(write_table(tmp_path), ranges=["X=-5:5"])
    assert given.experiments.ranges["X"] == (-5.0, 5.0)
    low, high = given.experiments.ranges["Z"]
    assert (low, high) == (
        pytest.approx(float(given.experiments.values[:, 1].min())),
        pytest.approx(float(given.experiments.values[:, 1].max())),
    )
    assert given.observed == ("Z",)
    assert given.experiments.intervened.sum() == 4
    assert given.experiments.direction == "MINIMIZE"


def test_only_some_may_be_set(tmp_path):
    given = read(write_table(tmp_path), settable="Z", maximize=True)
    assert list(given.experiments.ranges) == ["Z"]
    assert given.experiments.direction == "MAXIMIZE"


WRONG = {
    "table": ({}, ["1,2,3,"], "the table has 1 row"),
    "outside": ({"ranges": ["X=-1:1"]}, None, "row 21 sets 'X' to -?2, outside"),
    "unknown range": ({"ranges": ["Q=-1:1"]}, None, "variable 'Q' is not known"),
    "unknown set name": ({"settable": "Q"}, None, "variable 'Q' is not known"),
    "target range": ({"ranges": ["Y=-1:1"]}, None, "target 'Y' cannot be set"),
    "left out": ({"ranges": ["X=-3:3"], "settable": "Z"}, None, "not in --set"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence(case, tmp_path):
    options, lines, message = WRONG[case]
    with pytest.raises(ValueError, match=message) as raised:
        read(write_table(tmp_path, lines), **options)
    assert "\n" not in str(raised.value)


def test_a_small_deviation_of_a_large_number_is_seen():
    assert common.signed(1000008.6789) == "1e+06"
    assert common.signed(1000008.6789, 0.35) == "1000008.68"
    assert common.signed(-1.5, 2.0) == "-1.5"


def test_edges_by_name():
    assert common.parse_edges(["a->b", " c d -> e "]) == [("a", "b"), ("c d", "e")]
    for wrong in ("a", "a->", "a->b->c"):
        with pytest.raises(ValueError, match="is not CAUSE->EFFECT"):
            common.parse_edges([wrong])


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
