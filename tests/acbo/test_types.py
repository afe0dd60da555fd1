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


@pytest.mark.parametrize("bad", ["high", None, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_named(bad):
    with pytest.raises(ValueError, match="dose is"):
        types.as_float(bad, "dose")
