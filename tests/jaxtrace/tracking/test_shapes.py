import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxtrace.tracking.trajectory import as_axis_index, as_floats, as_index, as_paths


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (ml_dtypes.bfloat16, np.float32),
        (np.int16, np.float32),
        (np.int32, np.float64),
    ],
)
def test_no_digit_is_lost(given, kept):
    assert as_floats(np.ones(3, given), "values").dtype == kept


def test_device_arrays_and_lists_are_accepted():
    assert as_floats(jnp.ones(3), "values").dtype == np.float32
    assert as_floats([1.0, 2.0], "values").dtype == np.float64


@pytest.mark.parametrize("values", [["a"], [1j], [None]])
def test_other_values_are_refused(values):
    with pytest.raises(ValueError, match="real numbers"):
        as_floats(values, "positions")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((3,), (1, 1, 3)),
        ((2,), (1, 1, 3)),
        ((5, 2), (5, 1, 3)),
        ((5, 3), (5, 1, 3)),
        ((5, 4, 2), (5, 4, 3)),
        ((5, 4, 3), (5, 4, 3)),
        ((0, 4, 3), (0, 4, 3)),
        ((5, 0, 2), (5, 0, 3)),
    ],
)
def test_points_become_frames_particles_and_three(given, kept):
    values = np.arange(np.prod(given), dtype=float).reshape(given)
    points = as_paths(values, "positions")
    assert points.shape == kept
    flat = values.reshape(-1, given[-1])
    np.testing.assert_array_equal(points.reshape(-1, 3)[:, : given[-1]], flat)
    np.testing.assert_array_equal(points[..., given[-1] :], 0)


@pytest.mark.parametrize("shape", [(), (4,), (5, 4), (5, 4, 1), (2, 5, 4, 3)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="positions have shape"):
        as_paths(np.zeros(shape), "positions")


@pytest.mark.parametrize(("index", "found"), [(0, 0), (4, 4), (-1, 4), (-5, 0)])
def test_an_index_counts_from_either_end(index, found):
    assert as_index(index, 5, "frame") == found
    assert as_axis_index(np.int64(index), 5, "frame") == slice(found, found + 1)


@pytest.mark.parametrize("index", [5, -6])
def test_an_index_outside_is_refused(index):
    with pytest.raises(IndexError, match="outside a trajectory of 5 frames"):
        as_index(index, 5, "frame")


@pytest.mark.parametrize("index", [1.0, "a", None])
def test_an_index_is_a_whole_number(index):
    with pytest.raises(TypeError):
        as_axis_index(index, 5, "frame")
