"""Known names pass unchanged; an unknown one is answered with the nearest."""

import pytest

from jaxtrace.utils.names import known_only, nearest


def test_known_names_pass():
    given = {"dt": 0.1, "integrator": "rk4"}
    assert known_only(given, ("integrator", "dt", "seed"), "option") == given


def test_an_unknown_name_hears_the_nearest():
    with pytest.raises(TypeError, match=r"no option 'integrater'; did you mean 'integ"):
        known_only({"integrater": "rk4"}, ("dt", "integrator"), "option")


def test_nothing_to_choose_from():
    assert nearest("x", ()) == "there is nothing to choose from"
