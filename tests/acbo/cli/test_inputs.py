"""Ranges, names and tables from the command line, and what is wrong with them."""

import pytest
import typer

from acbo.cli.common import parse_ranges, read_experiments, refusing, split_names
from causal_tables import chain_lines, write_table


def read(path, target="Y", maximize=False, ranges=(), settable=""):
    return read_experiments(path, target, maximize, list(ranges), settable)


def test_ranges_by_name():
    assert parse_ranges(["X=-5:5", " a b = 1e-3 : 2"]) == {
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
        (["X=0:1", "X=0:2"], "given twice"),
    ],
)
def test_what_is_no_range(words, message):
    with pytest.raises(ValueError, match=message):
        parse_ranges(words)


def test_names_between_commas():
    assert split_names(" X, Z ,") == ("X", "Z")


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


GOOD = chain_lines()
WRONG = {
    "missing column": (
        {"target": "Q"},
        None,
        "target 'Q' is not known; .* There are: X, Z, Y",
    ),
    "nan": ({}, [*GOOD, "nan,1,1,"], "row 25, column 'X' holds nan"),
    "text": ({}, [*GOOD, "1,one,1,"], "row 25, column 'Z' holds 'one'"),
    "constant": ({}, [f"1,{n},{n},Z" for n in range(5)], "column 'X' is 1 in every"),
    "one row": ({}, ["1,2,3,"], "the table has 1 row"),
    "target was set": ({}, [*GOOD, "1,1,1,Y"], "row 25: the target 'Y' is among"),
    "unknown set": ({}, [*GOOD, "1,1,1,Q"], "row 25: intervention target 'Q'"),
    "outside": ({"ranges": ["X=-1:1"]}, None, "row 21 sets 'X' to -?2, outside"),
    "unknown range": ({"ranges": ["Q=-1:1"]}, None, "variable 'Q' is not known"),
    "unknown set name": ({"settable": "Q"}, None, "variable 'Q' is not known"),
    "target range": ({"ranges": ["Y=-1:1"]}, None, "target 'Y' is never set"),
    "left out": ({"ranges": ["X=-3:3"], "settable": "Z"}, None, "--set leaves out"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence(case, tmp_path):
    options, lines, message = WRONG[case]
    with pytest.raises(ValueError, match=message) as raised:
        read(write_table(tmp_path, lines), **options)
    assert "\n" not in str(raised.value)


def test_wrong_input_ends_the_command():
    with pytest.raises(typer.BadParameter, match="that is wrong"), refusing():
        raise ValueError("that is wrong")
