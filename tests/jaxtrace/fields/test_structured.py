"""Structured fields as users make them."""

import jax
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from jaxtrace.fields.structured import (
    GridMeta,
    StructuredGridSampler,
    StructuredSampler,
    create_structured_field_from_arrays,
    create_structured_field_from_vtk_data,
    create_uniform_grid,
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
    assert field.bounds_handling == outside
    steady = StructuredGridSampler(STEADY[..., :2], X, Y, Z, outside)
    assert steady.velocity_data.shape == (4, 5, 3, 3)
    assert np.array_equal(steady.velocity_data[..., :2], STEADY[..., :2].astype("f4"))
    assert np.all(np.asarray(steady.velocity_data)[..., 2] == 0)


def test_the_grid_describes_itself():
    field = StructuredGridSampler(STEADY, X, Y, Z)
    assert field.grid_meta == GridMeta(
        (0.0, -1.0, 0.0), (2 / 3, 0.5, 2.0), (4, 5, 3), ((0, -1, 0), (2, 1, 4))
    )
    assert (field.Nx, field.Ny, field.Nz) == (4, 5, 3)
    assert (field.dx, field.dy, field.dz) == field.grid_meta.spacing
    assert (field.x_min, field.y_min, field.z_min) == (0, -1, 0)
    assert (field.x_max, field.y_max, field.z_max) == (2, 1, 4)
    same = StructuredGridSampler(STEADY, X, Y, Z, grid_meta=field.grid_meta)
    assert same.grid_meta == field.grid_meta
    with pytest.raises(ValueError, match="grid_meta of"):
        StructuredGridSampler(STEADY[:3], X[:3], Y, Z, grid_meta=field.grid_meta)


@pytest.mark.parametrize("times", [None, TIMES])
def test_one_layer_needs_no_third_axis(times):
    full = STEADY if times is None else MOVING
    layer = full[..., 0, :2]
    flat = create_structured_field_from_arrays(layer, X, Y, times=times)
    thick = create_structured_field_from_arrays(layer[..., None, :], X, Y, times=times)
    low = [0.3, 0.2]
    assert np.array_equal(flat.sample(low), thick.sample([[0.3, 0.2, 77.0]]))
    assert flat.Nz == 1
    assert flat.dz == 1.0


@pytest.mark.parametrize("moving", [False, True])
def test_vtk_rows_run_along_x_first(moving):
    data = MOVING if moving else STEADY
    rows = data.swapaxes(-4, -2).reshape(*data.shape[:-4], -1, 3)
    stored = {
        "dimensions": (4, 5, 3),
        "origin": (1.0, 2.0, 3.0),
        "spacing": (0.5, 0.25, 2.0),
        "U": rows,
    }
    options = {"times": TIMES} if moving else {}
    field = create_structured_field_from_vtk_data(stored | options, "U")
    assert np.array_equal(field.velocity_data, data.astype(np.float32))
    assert field.grid_meta.spacing == (0.5, 0.25, 2.0)
    shaped = create_structured_field_from_vtk_data(stored | options | {"U": data}, "U")
    assert np.array_equal(shaped.velocity_data, field.velocity_data)


def test_vtk_data_must_be_whole():
    stored = {"dimensions": (4, 5, 3), "origin": (0, 0, 0), "spacing": (1, 1, 1)}
    with pytest.raises(ValueError, match="no 'velocity', only dimensions"):
        create_structured_field_from_vtk_data(stored)
    with pytest.raises(ValueError, match="59 velocities do not fit"):
        create_structured_field_from_vtk_data(stored | {"velocity": np.zeros((59, 3))})


def test_a_function_is_sampled_on_a_uniform_grid():
    field = create_uniform_grid(
        ((0, 1), (0, 2), (5, 5)), (5, 9, 1), lambda x, y, z: (x + y, 2.0, z)
    )
    assert field.grid_meta.shape == (5, 9, 1)
    assert np.allclose(field.sample([[0.3, 0.9, 5.0]]), [[1.2, 2, 5]], atol=1e-6)
    cube = create_uniform_grid([(0, 1)] * 3, 4, lambda x, y, z: (z, z, z))
    assert cube.grid_meta.shape == (4, 4, 4)
    with pytest.raises(ValueError, match="give \\(\\(x0, x1\\)"):
        create_uniform_grid(((0, 1), (0, 1)), 4, lambda x, y, z: (x, y, z))


def test_other_names_mean_the_same():
    assert StructuredSampler is StructuredGridSampler


@pytest.mark.parametrize(
    ("rule", "expected"), [("zero", 0.0), ("nan", np.nan), ("clamp", 1.0)]
)
def test_beyond_the_grid_the_bounds_are_handled(rule, expected):
    ones = np.ones((4, 5, 3, 3))
    field = StructuredGridSampler(ones, X, Y, Z, bounds_handling=rule)
    found = field.sample([[-5.0, 0, 0]])
    assert np.array_equal(found, np.full((1, 3), expected), True)
    assert field.contains([[-5.0, 0, 0], [0.0, 0, 0]]).tolist() == [False, True]
