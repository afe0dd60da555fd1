import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.boundaries.base import Open, as_boundary
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.types import ParticleStatus
from trace_boundaries import cross

POINTS = np.array([[-0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], np.float32)


def test_nothing_is_an_open_boundary():
    assert isinstance(as_boundary(None), Open)


def test_boundaries_stay_themselves():
    boundary = box_boundary([0, 1, 0, 1], "periodic")
    assert as_boundary(boundary) is boundary


def test_functions_of_jax_are_compiled():
    boundary = as_boundary(jnp.abs)
    np.testing.assert_array_equal(boundary(POINTS), np.abs(POINTS))
    found = eqx.filter_jit(lambda b, x: b(x))(boundary, POINTS)
    np.testing.assert_array_equal(found, np.abs(POINTS))


def write_into(positions):
    positions[positions < 0] = 0
    return positions


def test_functions_of_numpy_are_called_with_a_warning():
    with pytest.warns(UserWarning, match=r"write_into.*jax\.numpy"):
        boundary = as_boundary(write_into)
    expected = np.maximum(POINTS, 0)
    np.testing.assert_array_equal(boundary(POINTS), expected)
    found = eqx.filter_jit(lambda b, x: b(x))(boundary, POINTS)
    np.testing.assert_array_equal(found, expected)


def test_who_becomes_nan_is_absorbed():
    boundary = as_boundary(lambda x: jnp.where(x < 0, jnp.nan, x))
    found = cross(boundary, POINTS + 1, POINTS, end=3.0)
    np.testing.assert_array_equal(found.alive, [False, True])
    assert found.status[0] == ParticleStatus.ABSORBED
    np.testing.assert_array_equal(found.exit_time, [3, np.nan])


def test_other_things_are_refused():
    with pytest.raises(ValueError, match=r"3 is no boundary.*function"):
        as_boundary(3)
