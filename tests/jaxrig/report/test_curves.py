"""Series are read in order, and what cannot be drawn is refused by name."""

import numpy as np
import pytest

from jaxrig.report.curves import read_curves


def test_curves_keep_order_values_and_bands():
    curves = read_curves(
        {"b": ([0, 1], [2, 3]), "a": ([5], [7])}, {"a": ([6], [8])}, False
    )
    assert [curve.name for curve in curves] == ["b", "a"]
    np.testing.assert_array_equal(curves[0].y, [2.0, 3.0])
    np.testing.assert_array_equal((curves[1].low, curves[1].high), [[6.0], [8.0]])


def test_points_with_nan_are_not_seen():
    (curve,) = read_curves({"a": ([0, np.nan, 2], [1, 2, np.nan])}, {}, False)
    np.testing.assert_array_equal(curve.seen, [True, False, False])


def test_looks_differ_for_many_curves():
    series = {str(index): ([0, 1], [0, 1]) for index in range(16)}
    curves = read_curves(series, {}, False)
    assert len({(curve.color, curve.dash) for curve in curves}) == 16


@pytest.mark.parametrize(
    ("series", "bands", "log_y", "message"),
    [
        ({}, {}, False, "series is empty"),
        ({"a": ([], [])}, {}, False, "'a' has no point"),
        ({"a": ([1, 2], [np.nan, np.nan])}, {}, False, "'a' has no point"),
        ({"a": ([1, 2], [1])}, {}, False, "'a' has 2 x, 1 y"),
        ({"a": ([[1]], [[1]])}, {}, False, r"\['a'\] x has shape \(1, 1\)"),
        ({"a": ([1], [np.inf])}, {}, False, r"\['a'\] y holds an infinite"),
        ({"a": ([1], ["b"])}, {}, False, r"\['a'\] y must be an array of numbers"),
        ({"a": ([1], [0.0])}, {}, True, "'a' reaches 0.0: log_y"),
        ({"a": ([1], [1])}, {"b": ([1], [1])}, False, r"bands names \['b'\]"),
        ({"a": ([1], [1])}, {"a": ([2], [1])}, False, "low above its high"),
        ({"a": ([1], [1])}, {"a": ([1, 2], [3, 4])}, False, "2 low and 2 high"),
    ],
)
def test_refusals(series, bands, log_y, message):
    with pytest.raises(ValueError, match=message):
        read_curves(series, bands, log_y)
