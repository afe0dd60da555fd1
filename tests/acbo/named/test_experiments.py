import dataclasses

import numpy as np
import pytest

from acbo.named.experiments import Experiments

ROWS = np.arange(6).reshape(2, 3)
NONE = np.zeros((2, 3), int)
RANGES = {"C": (0, 4), "A": (-1.0, 2.0)}
SEEN = Experiments(ROWS, NONE, ("A", "B", "C"), "B", RANGES, "maximize")


def test_what_is_given_is_brought_into_one_form():
    assert (SEEN.values.dtype, SEEN.intervened.dtype) == (np.float32, bool)
    assert SEEN.direction == "MAXIMIZE"


def test_bounds_by_column():
    low, high, allowed = SEEN.bounds
    np.testing.assert_array_equal(low, [-1, 0, 0])
    np.testing.assert_array_equal(high, [2, 0, 4])
    np.testing.assert_array_equal(allowed, [True, False, True])
    assert low.dtype == high.dtype == np.float32


def test_adding_a_row_leaves_the_first_as_they_were():
    more = SEEN.add({"C": 7.0, "A": 1.5, "B": -2.0}, ["A"])
    np.testing.assert_array_equal(more.values, [*ROWS, [1.5, -2.0, 7.0]])
    np.testing.assert_array_equal(more.intervened, [*NONE, [1, 0, 0]])
    assert len(SEEN.values) == 2
    assert (more.target, more.ranges, more.direction) == ("B", RANGES, "MAXIMIZE")


def test_a_row_seen_without_setting_anything():
    assert not SEEN.add({"A": 0.0, "B": 0.0, "C": 0.0}, []).intervened.any()


def test_no_rows_yet():
    empty = dataclasses.replace(SEEN, values=ROWS[:0], intervened=NONE[:0])
    assert empty.add({"A": 1.0, "B": 2.0, "C": 3.0}, ["C"]).values.shape == (1, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": ROWS[:, :2]}, r"values \(2, 2\) and intervened \(2, 3\)"),
        ({"intervened": NONE[:1]}, "one column for each of the 3 names"),
        ({"values": np.array([[1, 2, 3], [1, np.nan, 3]])}, "row 2 is not finite"),
        ({"names": ("A", "B", "B")}, "'B' is given twice"),
        ({"target": "Z"}, "target 'Z' is not one of: A, B, C"),
        ({"target": "A"}, "the target 'A' must not have a range"),
        ({"ranges": {}}, "ranges is empty: name the variables"),
        ({"ranges": {"D": (0, 1)}}, "a range is given for 'D', which is no variable"),
        ({"ranges": {"A": (1, 0)}}, "range of 'A': 1 to 0 is no range"),
        ({"ranges": {"A": (0, np.inf)}}, "range of 'A': 0 to inf is no range"),
        ({"direction": "up"}, "direction='up' is not one of"),
    ],
)
def test_bad_experiments_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SEEN, **change)


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="no value for: B, C"):
        SEEN.add({"A": 1.0}, [])
    with pytest.raises(ValueError, match="set, but no variable: Z"):
        SEEN.add({"A": 1.0, "B": 1.0, "C": 1.0}, ["A", "Z"])
    with pytest.raises(ValueError, match="row 3 is not finite"):
        SEEN.add({"A": 1.0, "B": np.inf, "C": 1.0}, ["A"])
