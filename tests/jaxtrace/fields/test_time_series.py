"""The documented time series: every call, on every scheme, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.fields.time_series import TimeSeriesField
from trace_meshes import SIX, lattice, split
from trace_series import TIMES, cloud, grid_points, growing, linear, places, tetra_mesh


def series(points, connectivity=None, **options):
    return TimeSeriesField(
        growing(points), TIMES, points, connectivity=connectivity, **options
    )


CASES = {
    "uniform": lambda: series(grid_points(ratio=1.0)),
    "permuted": lambda: series(grid_points()),
    "planar": lambda: series(grid_points(shape=(5, 4, 1))),
    "mesh": lambda: series(*tetra_mesh()),
    "cloud": lambda: series(cloud()),
}


def within(field):
    x = places()
    if field.interpolation_scheme == "trilinear" and field.frozen.shape[2] == 1:
        x[:, 2] = 0.25
    return x


@pytest.mark.parametrize("name", CASES)
def test_fields_linear_in_space_and_time_are_exact(name):
    field = CASES[name]()
    x = within(field)
    for t in (0.0, 0.3, 1.7, 3.0):
        expected = (1 + t) * linear(x)
        assert np.allclose(field.sample_at_positions(x, t), expected, atol=3e-5)
    points = np.asarray(field.positions, np.float64)
    assert np.allclose(field.sample_at_time(1.7), 2.7 * linear(points), atol=3e-5)
    assert np.allclose(field.data, growing(points), atol=3e-5)
    for t in (0.0, 0.5, 1.1, 3.0):
        assert np.allclose(field.get_time_derivative(t), linear(points), atol=1e-4)
    assert np.all(np.asarray(field.get_time_derivative(7.0)) == 0)


def test_random_slices_are_interpolated_as_scipy_does():
    axes = [np.array([0, 0.2, 1.0]), np.linspace(0, 1, 4), np.array([0.0, 3, 4, 9])]
    values = np.random.default_rng(0).standard_normal((4, 3, 4, 4, 3))
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    order = np.random.default_rng(1).permutation(len(points))
    data = values.reshape(4, -1, 3)[:, order]
    x = np.random.default_rng(2).uniform(0, [1, 1, 9], (50, 3))
    oracle = RegularGridInterpolator((TIMES, *axes), values)
    with jax.enable_x64(True):
        field = TimeSeriesField(data, TIMES, points[order])
        for t in (0.1, 2.9):
            at = np.concatenate([np.full((50, 1), t), x], 1)
            assert np.allclose(field(x, t), oracle(at), atol=1e-12)


def test_a_cubic_record_is_smooth():
    points = grid_points()
    data = np.stack([np.sin(t) * linear(points) for t in TIMES])
    with jax.enable_x64(True):
        field = TimeSeriesField(data, TIMES, points, "cubic")
        h, t = 1e-5, 0.5
        before = (field.sample_at_time(t) - field.sample_at_time(t - h)) / h
        after = (field.sample_at_time(t + h) - field.sample_at_time(t)) / h
        slope = field.get_time_derivative(t)
    assert np.allclose(before, after, atol=1e-4)
    assert np.allclose(slope, after, atol=1e-4)


def test_facts_about_the_record():
    field = CASES["permuted"]()
    assert (field.T, field.N) == (4, 60)
    assert (field.t_min, field.t_max) == field.get_time_bounds() == (0.0, 3.0)
    low, high = field.get_spatial_bounds()
    assert np.allclose(low, 0)
    assert np.allclose(high, [2, 1, 0.5])
    assert field._source_info == {}


def test_one_slice_is_steady_and_still_has_its_instant():
    points = grid_points()
    field = TimeSeriesField(growing(points)[:1], [2.0], points)
    assert field.get_time_bounds() == (2.0, 2.0)
    assert np.allclose(field(places(), 99.0), linear(places()), atol=1e-5)
    assert np.all(np.asarray(field.get_time_derivative(2.0)) == 0)


@pytest.mark.parametrize("name", ["permuted", "mesh", "cloud"])
def test_a_periodic_field_wraps_around_without_a_copy(name):
    field = CASES[name]()
    x = within(field)
    wrapped = field.create_time_periodic_field(n_periods=3)
    assert wrapped._field.values is field._field.values
    assert wrapped.get_time_bounds() == (0.0, 9.0)
    assert type(wrapped) is type(field)
    for t in (0.4, 3.4, 6.4, 9.4):
        found = wrapped.sample_at_positions(x, t)
        assert np.allclose(found, 1.4 * linear(x), atol=5e-5)
    assert field.get_time_bounds() == (0.0, 3.0)
    assert wrapped._source_info == {
        "periodic_field": True,
        "original_period": 3.0,
        "n_periods": 3,
        "time_slice": None,
        "transition_smoothing": 0.0,
        "total_duration": 9.0,
    }


def test_part_of_a_record_repeats_from_time_zero():
    field = CASES["permuted"]()
    part = field.create_time_periodic_field(time_slice=(0.5, 2.9), target_duration=4.5)
    assert part.times.tolist() == [0.0, 1.5]
    assert part.get_time_bounds() == (0.0, 4.5)
    assert part._source_info["n_periods"] == 3
    x = within(field)
    found = part.sample_at_positions(x, 3.0 + 0.6)
    assert np.allclose(found, (1 + 0.5 + 0.6) * linear(x), atol=5e-5)


def test_smoothing_makes_the_seam_continuous():
    points = grid_points()
    times = np.linspace(0, 1, 11)
    field = TimeSeriesField(growing(points, times), times, points)
    smooth = field.create_time_periodic_field(2, transition_smoothing=0.4)
    data = growing(points, times)
    for i in range(4):
        expected = i / 4 * data[i] + (1 - i / 4) * data[10 - i]
        assert np.allclose(smooth.data[i], expected, atol=1e-4)
    assert np.allclose(smooth.data[4:], data[4:], atol=1e-4)
    before, after = (smooth.sample_at_time(1 + e) for e in (-1e-5, 1e-5))
    assert np.allclose(before, after, atol=1e-3)
    assert np.allclose(field.data, data, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_periods": 0}, "repeat the record once or more"),
        ({"target_duration": -1.0}, "give a time above 0"),
        ({"transition_smoothing": 1.5}, "a share from 0 to 1"),
        ({"time_slice": (0.6, 1.9)}, "holds no two slices"),
        ({"time_slice": (2.0, 0.0)}, "holds no two slices"),
    ],
)
def test_periods_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        CASES["permuted"]().create_time_periodic_field(**options)


def test_where_particles_are_lost_is_known():
    field = CASES["mesh"]()
    x = np.array([[1.0, 0.5, 0.25], [9.0, 0, 0]])
    assert field.contains(x).tolist() == [True, False]


@pytest.mark.parametrize("outside", ["clamp", "periodic"])
def test_a_grid_given_by_its_axes_is_the_grid_found_among_its_nodes(outside):
    axes = np.linspace(0, 2, 5), np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.5])
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    found = TimeSeriesField(growing(points), TIMES, points, outside=outside)
    given = TimeSeriesField(growing(points), TIMES, TensorGrid(axes), outside=outside)
    assert given.interpolation_scheme == "trilinear"
    assert repr(given).endswith("interpolation_scheme='trilinear')")
    assert (given.T, given.N) == (found.T, found.N)
    np.testing.assert_array_equal(given.positions, found.positions)
    np.testing.assert_array_equal(given.data, found.data)
    np.testing.assert_array_equal(given(places(), 1.7), found(places(), 1.7))
    given.positions = jnp.asarray(given.positions)  # the same: nothing to do
    given.data = 2 * given.data
    np.testing.assert_array_equal(given.data, 2 * found.data)


@pytest.mark.slow  # compiles a program of its own
def test_elements_are_used_on_request_where_nodes_form_a_grid():
    points, cells = lattice((4, 4, 4), (2.0, 1.0, 0.5))
    tets = split(cells, SIX)
    data = np.random.default_rng(0).standard_normal((4, len(points), 3))
    cells = {"connectivity": tets, "spatial_interpolation": "elements"}
    field = TimeSeriesField(data, TIMES, points, **cells)
    assert field.interpolation_scheme == "tetrahedra"
    center = points[tets].mean(1)
    found = field.sample_at_positions(center, 0.0)
    assert np.allclose(found, data[0][tets].mean(1), atol=1e-5)
