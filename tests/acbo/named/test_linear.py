import jax.numpy as jnp
import numpy as np
import pytest

from acbo.interventions import no_intervention
from acbo.named.linear import is_linear, linear_form
from acbo.named.mechanisms import create_linear_mechanism, create_root_mechanism
from acbo.named.model import create_scm
from acbo.scm import sample_rows
from causal_models import triangle


def test_the_form_holds_the_numbers_as_written():
    form = linear_form(triangle())
    assert form.names == ("A", "B", "C")
    expected = [[0, 0.8, -1.5], [0, 0, 2.0], [0, 0, 0]]
    assert form.weight.tolist() == expected
    assert form.intercept.tolist() == [1.0, 0.0, 0.3]
    assert form.noise_scale.tolist() == [1.0, 0.5, 0.7]


def test_moments_by_hand():
    form = linear_form(triangle())
    mean, covariance = form.moments()
    np.testing.assert_allclose(mean, [1.0, 0.8, 0.3 - 1.5 + 1.6])
    np.testing.assert_allclose(covariance[0], [1.0, 0.8, 0.1], atol=1e-12)
    variance = 0.1**2 + (2 * 0.5) ** 2 + 0.7**2  # through A, through B, its own
    np.testing.assert_allclose(covariance[2, 2], variance)
    assert form.mean("C", {"B": 2.0}) == pytest.approx(0.3 - 1.5 + 4)
    assert form.mean("A", {"B": 2.0}) == pytest.approx(1.0)
    assert form.moments({"A": 0.0})[1][0].tolist() == [0.0, 0.0, 0.0]


def test_moments_agree_with_draws(key):
    rows = np.asarray(sample_rows(key, triangle(), 4000, no_intervention(3)))
    mean, covariance = linear_form(triangle()).moments()
    np.testing.assert_allclose(rows.mean(0), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.1)


def test_hidden_variables_count():
    form = linear_form(triangle(hidden=("A",), ranges=None))
    assert form.names == ("B", "C", "A")
    assert form.mean("C", {"B": 0.0}) == pytest.approx(0.3 - 1.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda values, key: jnp.exp(values["A"]),
        create_linear_mechanism(["A"], {"A": 1.0}, output_bounds=(0.0, 1.0)),
    ],
)
def test_what_is_not_linear_is_named(mechanism):
    scm = create_scm(
        ["A", "B"], [("A", "B")], {"A": create_root_mechanism(), "B": mechanism}
    )
    assert not is_linear(scm)
    with pytest.raises(ValueError, match="'B' is not linear"):
        linear_form(scm)
