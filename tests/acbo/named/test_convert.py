import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from acbo.interventions import set_variable
from acbo.mechanisms.features import TANH
from acbo.named.convert import from_device_scm, to_device_scm
from acbo.named.files import scm_to_document
from acbo.scm import expected_outcome
from causal_models import triangle


@pytest.mark.parametrize(
    "ranges", [{"A": (-5.0, 5.0)}, {"A": (-5.0, 5.0), "B": (0.0, 0.3)}, None]
)
def test_a_model_makes_the_round_trip(ranges):
    scm = triangle(ranges=ranges)
    back = from_device_scm(to_device_scm(scm), scm.names)
    assert scm_to_document(back) == scm_to_document(scm)
    assert back.manipulable == scm.manipulable


def test_both_forms_have_the_same_mean(key):
    scm = triangle()
    done = set_variable(jnp.asarray(0), jnp.asarray(2.0), 3)
    mean = expected_outcome(key, to_device_scm(scm), done, 2000)
    np.testing.assert_allclose(mean, 0.3 - 3 + 3.2, atol=0.1)


def test_padding_is_dropped():
    device = to_device_scm(triangle())
    device = dataclasses.replace(device, mask=jnp.asarray([False, True, True]))
    small = from_device_scm(device)
    assert small.names == ("X1", "X2")
    assert small.edges == {("X1", "X2")}
    assert small.target_name == "X2"


def test_what_has_no_arrays_is_named():
    with pytest.raises(ValueError, match="'A' is hidden"):
        to_device_scm(triangle(hidden=("A",), ranges=None))
    with pytest.raises(ValueError, match="has no target"):
        to_device_scm(triangle(target=None, ranges=None))


def test_what_is_not_linear_is_refused():
    device = to_device_scm(triangle())
    units = dataclasses.replace(device.features, activation=jnp.full((3, 1), TANH))
    with pytest.raises(ValueError, match="not linear"):
        from_device_scm(dataclasses.replace(device, features=units))
    with pytest.raises(ValueError, match="not Gaussian"):
        from_device_scm(dataclasses.replace(device, noise_kind=jnp.asarray([0, 1, 0])))
    with pytest.raises(ValueError, match="2 names for 3 variables"):
        from_device_scm(device, ("a", "b"))
