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


def test_directions_in_any_case():
    assert check_direction("Minimize") == "MINIMIZE"
    assert (lower_is_better("MINIMIZE"), lower_is_better("maximize")) == (1, -1)
    with pytest.raises(ValueError, match="'DOWN' is not known"):
        check_direction("down")


@pytest.mark.parametrize("bad", ["high", None, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_named(bad):
    with pytest.raises(ValueError, match="dose is"):
        as_float(bad, "dose")
