"""Oracle: values inside, on the edge and outside."""

from dataclasses import dataclass
from math import inf, nan

import pytest

from jaxrig.learn.ranges import require, require_positive


@dataclass
class Config:
    size: float


@pytest.mark.parametrize("value", [1, 1.5, 2])
def test_values_within_pass(value):
    require(Config(value), 1, 2, "size")
    require_positive(Config(value), "size")


@pytest.mark.parametrize(
    ("value", "high", "message"),
    [(0, 2, r"size=0 must be in \[1, 2\]"), (0, inf, "at least 1"), (nan, 2, "nan")],
)
def test_values_outside_are_named(value, high, message):
    with pytest.raises(ValueError, match=message):
        require(Config(value), 1, high, "size")


@pytest.mark.parametrize("value", [0, -1, nan, inf])
def test_what_is_not_positive_is_named(value):
    with pytest.raises(ValueError, match="must be above 0"):
        require_positive(Config(value), "size")
