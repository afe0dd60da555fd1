import numpy as np
import pytest

import trace_files as files
from jaxtrace.analysis.flow_maps import ftle
from jaxtrace.config import configure, reset_config
from jaxtrace.fields.analytic import (
    ABCFlow,
    DoubleGyre,
    Rotation,
    Saddle,
    UniformFlow,
    number,
)
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.io.loader import load_optimized_dataset
from jaxtrace.tracking.boundary import absorbing_boundary_factory


@pytest.fixture
def double():
    configure(dtype="float64")
    yield
    reset_config()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("x", "y", "known"), [(0.5, 0.5, 0.2268844590), (1.2, 0.3, 0.2774016857)]
)
def test_double_gyre_to_ten_digits(x, y, known):
    found = ftle(DoubleGyre(), ([x], [y]), 0.0, 10.0, n_steps=2000)
    np.testing.assert_allclose(found, [[known]], atol=1e-10, rtol=0)


@pytest.mark.usefixtures("double")
def test_the_number_of_steps_is_found():
    axes = [0.5, 1.2], [0.3, 0.5]
    fine = ftle(DoubleGyre(), axes, 0.0, 10.0, n_steps=2000)
    np.testing.assert_allclose(ftle(DoubleGyre(), axes, 0.0, 10.0), fine, atol=1e-6)
    tight = ftle(DoubleGyre(), axes, 0.0, 10.0, tolerance=1e-9)
    np.testing.assert_allclose(tight, fine, atol=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("span", [3.0, -3.0])
def test_a_saddle_parts_at_its_rate(span):
    # The center stands still, and its neighbors part all the same.
    found = ftle(
        Saddle(rate=number(0.5)), ([-0.2, 0, 0.1], [0, 0.3]), 1.0, span, n_steps=400
    )
    np.testing.assert_allclose(found, np.full((3, 2), 0.5), atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "field", [Rotation(rate=number(2.0)), UniformFlow(u=number(3.0))]
)
def test_rigid_motion_parts_nothing(field):
    found = ftle(field, ([0.0, 1.0], [0.0]), 0.0, 5.0, n_steps=2000)
    np.testing.assert_allclose(found, np.zeros((2, 1)), atol=1e-12)


@pytest.mark.usefixtures("double")
def test_in_space_the_shape_is_that_of_the_grid():
    axes = np.linspace(0, 6, 4), np.linspace(0, 6, 3), np.linspace(0, 6, 2)
    found = ftle(ABCFlow(), axes, 0.0, 4.0, n_steps=200)
    assert found.shape == (4, 3, 2)
    one = ftle(ABCFlow(), [axis[-1:] for axis in axes], 0.0, 4.0, n_steps=200)
    np.testing.assert_allclose(found[-1, -1, -1], one[0, 0, 0], rtol=1e-12)
    assert np.all(found > 0), "volume is kept, so something is stretched"


def test_a_plane_is_told_apart_in_the_plane_only():
    shear = lambda positions, t: positions * np.array([[0.0, 0.0, 2.0]], np.float32)
    axes = [0.1, 0.2], [0.3]
    flat = ftle(shear, axes, 0.0, 1.0, n_steps=100, level=0.5)
    np.testing.assert_allclose(flat, np.zeros((2, 1)), atol=1e-6)
    deep = ftle(shear, (*axes, [0.5]), 0.0, 1.0, n_steps=100)
    np.testing.assert_allclose(deep, np.full((2, 1, 1), 2.0), rtol=1e-5)


def test_single_precision_is_close():
    axes = np.linspace(0.1, 1.9, 7), np.linspace(0.1, 0.9, 5)
    single = ftle(DoubleGyre(), axes, 0.0, 5.0, n_steps=100)
    assert single.dtype == np.float32
    configure(dtype="float64")
    try:
        exact = ftle(DoubleGyre(), axes, 0.0, 5.0, n_steps=100)
    finally:
        reset_config()
    np.testing.assert_allclose(single, exact, atol=1e-4)


@pytest.mark.slow
def test_gridded_data_come_close_to_the_formula():
    x, y, t = np.linspace(0, 2, 81), np.linspace(0, 1, 41), np.linspace(0, 5, 51)
    field = DoubleGyre()
    nodes = np.stack([a.ravel() for a in np.meshgrid(x, y, indexing="ij")], 1)
    values = [np.asarray(field.sample_at_positions(nodes, s)) for s in t]
    gridded = make_grid_field(
        np.stack(values).reshape(51, 81, 41, 1, 3), (x, y, np.zeros(1)), t
    )
    axes = np.linspace(0.11, 1.87, 9), np.linspace(0.13, 0.91, 6)
    found = ftle(gridded, axes, 0.0, 5.0, n_steps=100)
    exact = ftle(field, axes, 0.0, 5.0, n_steps=100)
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.02
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.98


@pytest.mark.slow
@pytest.mark.usefixtures("double")
def test_data_of_a_solver_as_grid_and_as_elements():
    case = files.data_folder("nek5000_eddy") / "eddy_uv.nek5000"
    axes = np.linspace(1, 5, 4), np.linspace(2, 4, 3)
    found = {}
    for scheme in ("auto", "elements"):
        field = load_optimized_dataset(
            case, dtype="float64", spatial_interpolation=scheme
        )
        assert isinstance(field, TimeSeriesField)
        found[field.interpolation_scheme] = ftle(field, axes, 0.0, 0.1, n_steps=32)
    np.testing.assert_allclose(found["trilinear"], found["quads"], atol=1e-3)
    assert np.all(found["quads"] > 0)


def test_particles_that_left_are_marked():
    leaves = absorbing_boundary_factory([[0, 0, 0], [1, 1, 1]])
    found = ftle(
        UniformFlow(), ([0.1, 0.8], [0.5]), 0.0, 0.5, n_steps=4, boundary=leaves
    )
    np.testing.assert_allclose(found, [[0.0], [np.nan]], atol=1e-6)


@pytest.mark.parametrize("grid", [([0.0, 1.0],), ([[0.0]], [0.0]), ([0.0],) * 4])
def test_a_grid_is_two_or_three_axes(grid):
    with pytest.raises(ValueError, match="give the axes"):
        ftle(Rotation(), grid, 0.0, 1.0)
