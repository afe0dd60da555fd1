"""The next experiment for a table: one object, in the user's names and units."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import acbo
from acbo.policy import suggest as engine
from acbo.posterior.inputs import Fit
from acbo.surrogate.predictor import infer_graphs
from acbo.types import in_words, signed
from causal_policies import middle_of_ranges
from causal_tables import write_table


@pytest.fixture(autouse=True)
def policy(monkeypatch):
    monkeypatch.setattr(engine, "plan", middle_of_ranges)


def test_a_suggestion_holds_everything(tmp_path):
    path = write_table(tmp_path)
    found = acbo.suggest(path, "Y", maximize=True, ranges={"x": (-5, 5)})
    assert (found.variable, found.value) == ("X", 0.0)
    assert found.settings == {"X": 0.0}
    assert found.expected == -1.5
    assert found.interval == pytest.approx((-5.42, 2.42))
    assert found.cause_probs == {"X": 0.5, "Z": 0.5}
    assert found.parent_probs["Z"] == 0.25
    assert found.worthwhile
    assert found.ranges_from_data == ("Z",)
    assert found.seen.ranges["Z"] == (
        pytest.approx(found.seen.values[:, 1].min()),
        pytest.approx(found.seen.values[:, 1].max()),
    )
    sentence = "to raise Y, set X to 0: the expected Y is \N{MINUS SIGN}1.5 ± 2.0"
    assert str(found).startswith(sentence)
    best = found.seen.values[found.seen.intervened[:, 0], 2].max()
    assert found.reasons[-1].endswith(f"gave {in_words(best)}")
    assert json.loads(json.dumps(found.to_dict()))["suggestion"] == {"X": 0.0}
    # A frame, and a mapping of columns, are the same table.
    frame = pd.read_csv(path)
    for same in (frame, frame.to_dict("list")):
        other = acbo.suggest(same, "Y", True, ranges={"X": (-5, 5)})
        assert str(other) == str(found)


def test_what_does_not_fit_is_told(tmp_path, monkeypatch):
    fits = tuple(Fit(0.5, 0.1, misfits) for misfits in ((), (), ("curves", "drift")))
    found = lambda *data, **more: replace(infer_graphs(*data, **more), fits=fits)
    monkeypatch.setattr(engine, "infer_graphs", found)
    notes = acbo.suggest(write_table(tmp_path), "Y", True).notes
    assert any("do not fit: Y (curves, drift)." in note for note in notes)


def test_levels_are_told_as_the_text_of_the_table():
    frame = {
        "catalyst": ["old", "new"] * 6,
        "run": range(3, 15),
        "y": np.arange(12.0) % 5,
        "do": ["catalyst"] * 6 + [""] * 6,
    }
    found = acbo.suggest(frame, "y", True)
    assert found.reasons[-1] == "The best experiment so far, catalyst = 'old', gave 4"
    assert any("'run' was left out" in note for note in found.notes)
    found = acbo.suggest({"trial": frame.pop("run"), **frame}, "y", True)
    assert any("'trial': it counts the rows" in note for note in found.notes)


def test_only_some_may_be_set_and_rows_outside_a_range_are_told(tmp_path):
    path = write_table(tmp_path)
    found = acbo.suggest(path, "Y", False, settable=["x"], ranges={"X": (-1, 1)})
    assert list(found.seen.ranges) == ["X"]
    # One name is a list of one.
    same = acbo.suggest(path, "Y", False, settable="x", ranges={"X": (-1, 1)})
    assert str(same) == str(found)
    assert found.seen.direction == "MINIMIZE"
    assert any("4 rows set 'X' outside" in note for note in found.notes)


def test_rows_changed_softly_tell_about_causes_only(tmp_path):
    frame = pd.read_csv(write_table(tmp_path))
    frame.loc[:4, "intervention_targets"] = "soft:Z"
    found = acbo.suggest(frame, "Y", True)
    np.testing.assert_allclose(found.seen.values, frame[["X", "Z", "Y"]][5:])
    assert any(f"5 of {len(frame)} rows changed" in note for note in found.notes)
    frame["intervention_targets"] = "soft:Z"
    with pytest.raises(ValueError, match="softly in all but 0 of the"):
        acbo.suggest(frame, "Y", True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maximize": None}, "maximize=True or False"),
        ({"maximize": "yes"}, "maximize is 'yes': give True or False"),
        ({"ranges": {"Q": (0, 1)}}, "variable 'Q' is not known"),
        ({"settable": ["Q"]}, "variable 'Q' is not known"),
        ({"ranges": {"Y": (0, 1)}}, "target 'Y' cannot be set"),
        ({"ranges": {"X": (1, 0)}}, "low end first"),
        ({"ranges": {"X": (0, np.inf)}}, "finite"),
        ({"ranges": {"X": 3}}, "give .lowest, highest."),
        ({"ignore": ["X", "Z", "intervention_targets"]}, "no variable beside"),
        ({"ranges": {"X": (0, 1)}, "settable": ["Z"]}, "not among the variables"),
        ({"know": ["a"]}, "is not CAUSE->EFFECT"),
        ({"know": ["X->"]}, "is not CAUSE->EFFECT"),
        ({"know": "X->Z, Z->X"}, "required edges form a cycle"),
        ({"forbid": [("X", "Z", "Y")]}, "is not CAUSE->EFFECT"),
        ({"levels": {"X": [1, 1]}}, "at least 2 different"),
        ({"cost": {"X": 0}}, "must be above 0"),
        ({"avoid": ["X"]}, "is not NAME>NUMBER"),
        ({"at_once": 3}, "1 or 2 variables"),
        ({"batch": 0}, "1 experiment or more"),
        ({"batch": 1.5}, "batch is 1.5"),
        ({"batch": "3"}, "batch is '3'"),
        ({"ignore": "Q"}, "ignored column 'Q' is not known"),
        ({"tiers": "X<Q"}, "'Q' is not known"),
    ],
)
def test_wrong_input_is_one_sentence(options, message, tmp_path):
    given = {"maximize": True} | options
    with pytest.raises(ValueError, match=message) as raised:
        acbo.suggest(write_table(tmp_path), "Y", **given)
    assert "\n" not in str(raised.value)


def test_a_small_deviation_of_a_large_number_is_seen():
    assert signed(1000008.6789) == "1e+06"
    assert signed(1000008.6789, 0.35) == "1000008.68"
    assert signed(-1.5, 2.0) == "-1.5"
    assert in_words(351.23, 2.0) == "351.23"
    assert in_words(351.23, 100.0) == "351"
    assert in_words(-45231.0) == "\N{MINUS SIGN}45200"
