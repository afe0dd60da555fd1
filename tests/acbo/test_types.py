import pytest

from acbo.types import (
    CHANNELS,
    INTERVENED,
    TARGET,
    VALUE,
    as_float,
    check_direction,
    lower_is_better,
)


def test_channels_are_numbered_in_the_documented_order():
    assert tuple(range(CHANNELS)) == (VALUE, INTERVENED, TARGET)


@pytest.mark.parametrize("given", ["MINIMIZE", "minimize", "Minimize"])
def test_directions_in_any_case(given):
    assert check_direction(given) == "MINIMIZE"


@pytest.mark.parametrize(("direction", "sign"), [("MINIMIZE", 1), ("maximize", -1)])
def test_the_better_of_two_outcomes_is_lower_after_the_sign(direction, sign):
    assert lower_is_better(direction) == sign


@pytest.mark.parametrize("given", ["", "MIN", "down"])
def test_other_words_are_refused_by_name(given):
    with pytest.raises(
        ValueError, match=f"'{given.upper()}' is not known; .* There are: MINIMIZE, MAX"
    ):
        check_direction(given)


@pytest.mark.parametrize("bad", ["high", None, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_named(bad):
    with pytest.raises(ValueError, match="dose is"):
        as_float(bad, "dose")
