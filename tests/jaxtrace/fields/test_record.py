"""Arrays that users assign: checked, effective at once, one copy of each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.time_series import TimeSeriesField
from trace_series import TIMES, cloud, grid_points, growing, places, tetra_mesh

pytestmark = pytest.mark.slow  # compiles programs of its own


def record(points, cells=None, times=TIMES, **options):
    return TimeSeriesField(
        growing(points), times, points, connectivity=cells, **options
    )


DEVICE_NAMES = ("_data_dev", "_times_dev", "_pos_dev")
CASES = {
    "grid": lambda: record(grid_points()),
    "mesh": lambda: record(*tetra_mesh()),
    "cloud": lambda: record(cloud()),
    "nearest": lambda: record(cloud(), spatial_interpolation="nearest"),
}


@pytest.fixture(params=CASES)
def field(request):
    return CASES[request.param]()


def test_arrays_are_on_the_device(field):
    for array in (field.data, field.times, field.positions):
        assert isinstance(array, jax.Array)
        assert array.devices() == {jax.devices()[0]}
    assert field.data.shape == (field.T, field.N, 3)
    assert field.times.shape == (field.T,)
    assert field.positions.shape == (field.N, 3)


def test_the_documented_ritual_changes_nothing(field):
    before, x = field.frozen, places()
    answer = np.asarray(field.sample_at_positions(x, 1.0))
    field.data = jnp.array(field.data)
    field.positions = jnp.array(field.positions)
    field.times = jnp.array(field.times)
    field._data_dev = jax.device_put(field.data)
    field._times_dev = jax.device_put(field.times)
    field._pos_dev = jax.device_put(field.positions)
    assert np.array_equal(field.sample_at_positions(x, 1.0), answer)
    assert field.frozen.clock.times is before.clock.times


@pytest.mark.parametrize("names", [("data", "times", "positions"), DEVICE_NAMES])
def test_new_arrays_take_effect_after_sampling_too(field, names):
    x = places()
    answer = np.asarray(field.sample_at_positions(x, 1.0))
    setattr(field, names[0], 2 * field.data)
    assert np.allclose(field.sample_at_positions(x, 1.0), 2 * answer, rtol=1e-5)
    assert np.array_equal(field.data, field._data_dev)
    setattr(field, names[1], 10 * TIMES)
    assert np.allclose(field.sample_at_positions(x, 10.0), 2 * answer, atol=1e-4)
    assert np.allclose(field._times_dev, 10 * TIMES)
    setattr(field, names[2], np.asarray(field.positions) + 8.0)
    found = field.sample_at_positions(x + 8.0, 10.0)
    assert np.allclose(found, 2 * answer, atol=2e-4)
    assert field.get_spatial_bounds()[0].min() >= 7.9


def test_a_new_number_of_slices_waits_for_its_times(field):
    field.data = np.asarray(field.data)[[0, 1, 2, 3, 3]]
    assert field.T == 5
    assert field.data.shape[0] == 5
    with pytest.raises(ValueError, match=r"data of shape \(5, \d+, 3\), times of .*4,"):
        field.sample_at_positions(places(), 0.0)
    field.times = np.append(TIMES, 7.0)
    assert field.sample_at_positions(places(), 6.5).shape == (30, 3)


def test_a_new_number_of_nodes_waits_for_its_positions():
    field = record(grid_points())
    other = grid_points(shape=(3, 4, 3))
    field.positions = other
    with pytest.raises(ValueError, match=r"positions of shape \(36, 3\) do not fit"):
        _ = field.frozen
    with pytest.raises(ValueError, match="do not fit"):
        field.memory_usage_mb()
    field.data = growing(other)
    assert field.N == 36
    assert np.allclose(field.data, growing(other), atol=1e-5)


def test_a_refused_assignment_leaves_all_as_it_was(field):
    frozen, shape = field.frozen, (field.T, field.N)
    wrong = {
        "data": np.zeros((4, 9)),
        "times": TIMES[::-1],
        "positions": np.full((field.N, 3), np.nan),
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=r"give|sort|repair"):
            setattr(field, name, value)
    if field.interpolation_scheme == "delaunay":
        with pytest.raises(ValueError, match="span no area"):
            field.positions = np.linspace(0, 1, field.N)[:, None] * np.ones((1, 3))
    assert field.frozen is frozen
    assert shape == (field.T, field.N)


def test_times_keep_their_precision_through_the_ritual():
    points = grid_points()
    times = 1e9 + np.arange(4.0)
    field = record(points, times=times)
    field.times = jnp.array(field.times)
    assert np.array_equal(np.asarray(field._clock.times), times)


def test_rules_in_time_may_be_assigned():
    field = record(grid_points())
    x = places()
    field.extrapolation = "zero"
    assert np.all(np.asarray(field.sample_at_positions(x, 9.0)) == 0)
    field.interpolation = "nearest"
    at = field.sample_at_positions(x, 0.1)
    assert np.allclose(at, field.sample_at_positions(x, 0.0))
    with pytest.raises(ValueError, match="choose one of linear"):
        field.interpolation = "spline"
    assert (field.interpolation, field.extrapolation) == ("nearest", "zero")


def test_two_columns_and_whole_numbers_become_velocities():
    points = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    data = np.arange(16).reshape(2, 4, 2)
    field = TimeSeriesField(data, [0, 1], points)
    assert field.positions.shape == (4, 3)
    assert field.data.shape == (2, 4, 3)
    assert field.data.dtype == np.float32
    assert np.array_equal(field.data[..., :2], data.astype(np.float32))
    assert field.sample_at_positions([0.5, 0.5], 0.0).tolist() == [[3, 4, 0]]
    field.data = jnp.asarray(data, np.float32) + 1
    assert field.sample_at_positions([0.5, 0.5], 0.0).tolist() == [[4, 5, 0]]


def test_shapes_that_do_not_fit_are_refused_with_both_named():
    points = grid_points()
    with pytest.raises(ValueError, match=r"\(4, 60, 3\), times of shape \(3,\)"):
        TimeSeriesField(growing(points), TIMES[:3], points)
    with pytest.raises(ValueError, match=r"positions of shape \(59, 3\)"):
        TimeSeriesField(growing(points), TIMES, points[1:])


def test_memory_counts_what_is_held():
    field = record(grid_points())
    least = 4 * 60 * 3 * 4 / 2**20
    assert least < field.memory_usage_mb() < 3 * least
