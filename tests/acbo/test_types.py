import pytest

from acbo import types


def test_channels_are_numbered_in_the_documented_order():
    assert tuple(range(types.CHANNELS)) == (types.VALUE, types.INTERVENED, types.TARGET)


def test_directions_in_any_case():
    assert types.check_direction("Minimize") == "MINIMIZE"
    assert (types.lower_is_better("MINIMIZE"), types.lower_is_better("maximize")) == (
        1,
        -1,
    )
    with pytest.raises(ValueError, match="'DOWN' is not known"):
        types.check_direction("down")


def test_numbers_of_any_size_show_their_deviation():
    assert types.plus_minus(60.2731, 8.859) == "60.3 ± 8.9"
    assert types.plus_minus(-2.231e-19, 1.62e-19) == "(-2.2 ± 1.6)e-19"
    assert types.plus_minus(3.0e7, 1.5e6) == "(3.00 ± 0.15)e+07"
    assert types.plus_minus(0.0, 2e-7) == "(0.0 ± 2.0)e-07"


@pytest.mark.parametrize("bad", ["high", None, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_named(bad):
    with pytest.raises(ValueError, match="dose is"):
        types.as_float(bad, "dose")
