import numpy as np
import pytest

from jaxtrace.analysis.flow_maps import log_stretch


@pytest.mark.parametrize("directions", [1, 2, 3])
def test_it_is_the_largest_singular_value(directions):
    gradient = np.random.default_rng(0).normal(size=(50, 3, directions))
    largest = np.linalg.svd(gradient, compute_uv=False)[:, 0]
    np.testing.assert_allclose(log_stretch(gradient), np.log(largest), rtol=1e-12)


@pytest.mark.parametrize("exponent", [-300, 300])
def test_squares_stay_in_range(exponent):
    gradient = np.eye(3)[None] * 10.0**exponent
    np.testing.assert_allclose(log_stretch(gradient), exponent * np.log(10))


def test_unknown_stays_unknown_and_collapse_has_no_end():
    gradient = np.stack([np.full((3, 2), np.nan), np.zeros((3, 2)), np.eye(3)[:, :2]])
    np.testing.assert_array_equal(log_stretch(gradient), [np.nan, -np.inf, 0.0])


def test_no_particles_have_no_stretch():
    assert log_stretch(np.zeros((0, 3, 2))).shape == (0,)
