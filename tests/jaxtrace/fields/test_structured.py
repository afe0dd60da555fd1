"""Structured fields as users make them."""

import jax
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from jaxtrace.fields.grid import (
    StructuredGridSampler,
)

X, Y, Z = np.array([0, 0.1, 0.5, 2.0]), np.linspace(-1, 1, 5), np.array([0.0, 3, 4])
RNG = np.random.default_rng(0)
STEADY = RNG.standard_normal((4, 5, 3, 3))
MOVING = RNG.standard_normal((6, 4, 5, 3, 3))
TIMES = np.array([0.0, 1, 2, 4, 8, 9])
PLACES = RNG.uniform([0, -1, 0], [2, 1, 4], (40, 3))


def test_a_steady_rectilinear_grid_is_sampled_as_scipy_does():
    field = StructuredGridSampler(STEADY, X, Y, Z)
    expected = RegularGridInterpolator((X, Y, Z), STEADY)(PLACES)
    assert np.allclose(field.sample(PLACES), expected, atol=1e-5)
    assert np.allclose(field(PLACES), expected, atol=1e-5)
    assert field.interpolation_scheme == "trilinear"
    assert not field.is_time_dependent
    assert field.times is None
    assert field.get_time_bounds() == (-np.inf, np.inf)


def test_a_grid_in_time_is_sampled_as_scipy_does():
    with jax.enable_x64(True):
        field = StructuredGridSampler(MOVING, X, Y, Z, times=TIMES)
        oracle = RegularGridInterpolator((TIMES, X, Y, Z), MOVING)
        for t in (0.0, 0.3, 3.5, 9.0):
            at = np.concatenate([np.full((40, 1), t), PLACES], 1)
            found = field.sample_at_positions(PLACES, t)
            assert np.allclose(found, oracle(at), atol=1e-12)
        assert np.allclose(field(PLACES, 3.5), field.sample_at_positions(PLACES, 3.5))
    assert field.get_time_bounds() == (0.0, 9.0)
    assert field.times is not None
    assert np.array_equal(field.times, TIMES)


@pytest.mark.parametrize("outside", ["clamp", "periodic"])
def test_the_velocities_come_back_as_they_were_given(outside):
    field = StructuredGridSampler(MOVING, X, Y, Z, outside, times=TIMES)
    assert np.array_equal(field.velocity_data, MOVING.astype(np.float32))
    steady = StructuredGridSampler(STEADY[..., :2], X, Y, Z, outside)
    assert steady.velocity_data.shape == (4, 5, 3, 3)
    assert np.array_equal(steady.velocity_data[..., :2], STEADY[..., :2].astype("f4"))
    assert np.all(np.asarray(steady.velocity_data)[..., 2] == 0)


@pytest.mark.parametrize(
    ("rule", "expected"), [("zero", 0.0), ("nan", np.nan), ("clamp", 1.0)]
)
def test_beyond_the_grid_the_bounds_are_handled(rule, expected):
    ones = np.ones((4, 5, 3, 3))
    field = StructuredGridSampler(ones, X, Y, Z, bounds_handling=rule)
    found = field.sample([[-5.0, 0, 0]])
    assert np.array_equal(found, np.full((1, 3), expected), True)
    assert field.contains([[-5.0, 0, 0], [0.0, 0, 0]]).tolist() == [False, True]
