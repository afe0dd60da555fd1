"""Maps show each value at its place in its color."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib import pyplot
from matplotlib.image import imread

from jaxtrace.density import KDEEstimator
from jaxtrace.visualization.maps import plot_density_2d, plot_field_2d, plot_slice_yz

X, Y = np.meshgrid(np.linspace(0, 2, 21), np.linspace(0, 1, 11))


@pytest.mark.slow
def test_a_density_as_its_estimator_returns_it(tmp_path):
    points = np.random.default_rng(0).normal(size=(50, 3))
    path = tmp_path / "density.png"
    grid = KDEEstimator(points, resolution=20).evaluate_2d()
    drawn = plot_density_2d(*grid, title="KDE", save_path=path)
    (mesh,) = drawn.collections
    np.testing.assert_allclose(np.ravel(mesh.get_array()), np.ravel(grid[2]))
    assert drawn.get_title() == "KDE"
    assert drawn.figure.axes[1].get_ylabel() == "density"
    assert len(np.unique(imread(path).reshape(-1, 4), axis=0)) > 50
    assert pyplot.get_fignums() == []


def test_a_field_goes_across_by_its_first_index():
    values = np.zeros((5, 3))
    values[4, 0] = 1.0
    axes = plot_field_2d(values, (np.arange(5), np.arange(3)), "xz", label="FTLE")
    (mesh,) = axes.collections
    np.testing.assert_allclose(mesh.get_array(), values.T)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "z")
    assert axes.figure.axes[1].get_ylabel() == "FTLE"


def test_values_that_are_not_finite_are_left_blank():
    values = np.ones((3, 3))
    values[1, 1] = np.nan
    (mesh,) = plot_field_2d(values, (range(3), range(3))).collections
    assert mesh.get_array().mask.sum() == 1
    assert mesh.norm.vmin < 1 < mesh.norm.vmax


def test_a_slice_cuts_the_colors_at_its_percentiles():
    density = np.arange(X.size, dtype=float).reshape(X.shape)
    axes = plot_slice_yz(X, Y, density, x0=0.7, levels=10, cutoff_max=50)
    (contours,) = axes.collections
    np.testing.assert_allclose(contours.levels, np.linspace(0, 115, 11))
    assert contours.extend == "max"
    assert (axes.get_title(), axes.get_xlabel()) == ("x = 0.7", "y")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_density_2d(X, Y, X[:3]), "one 2-D shape"),
        (lambda: plot_density_2d(X, Y, X, cutoff=(50, 50)), "cutoff"),
        (lambda: plot_density_2d(X, Y, X, levels=0), "levels"),
        (lambda: plot_density_2d(X, Y, X * np.nan), "finite"),
        (lambda: plot_density_2d(X, Y, X, plane="zz"), "plane"),
        (lambda: plot_field_2d(X, (range(3), range(3))), "this grid needs"),
        (lambda: plot_field_2d(X, (range(3),)), "two"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
