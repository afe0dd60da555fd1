import itertools

import numpy as np
import pytest

from jaxtrace.files.lattice import flatten, lattice

AXES = [np.linspace(0.0, 1.0, 3), np.linspace(-1.0, 1.0, 4), np.linspace(0.0, 3e-6, 5)]


def test_rows_run_x_fastest():
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 2))
    expected = [values[x, y, z] for z in range(4) for y in range(3) for x in range(2)]
    np.testing.assert_array_equal(flatten(values), expected)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_axes_may_come_in_any_order(order, dtype):
    mesh = np.meshgrid(*[axis.astype(dtype) for axis in AXES], indexing="ij")
    values = mesh[0] + 10 * mesh[1] + 1e5 * mesh[2]
    turned = lattice([m.transpose(order) for m in mesh], values.transpose(order), "")
    assert turned.kind == "image"
    np.testing.assert_array_equal(turned.values, values)
    shape, origin, spacing = turned.arguments
    assert shape == (3, 4, 5)
    np.testing.assert_allclose(origin, [0, -1, 0])
    np.testing.assert_allclose(spacing, [0.5, 2 / 3, 0.75e-6], rtol=1e-6)


def test_the_plainest_kind_that_holds_the_grid():
    uneven = np.meshgrid(AXES[0] ** 2, AXES[1], AXES[2], indexing="ij")
    assert lattice(uneven, uneven[0], ".vtk").kind == "axes"
    bent = [uneven[0] + 0.1 * uneven[1], uneven[1], uneven[2]]
    found = lattice(bent, bent[0], "")
    assert found.kind == "curved"
    np.testing.assert_array_equal(found.arguments[1][:, 0], flatten(bent[0]))
    even = np.meshgrid(*AXES, indexing="ij")
    assert lattice(even, even[0], ".vtr").kind == "axes"
    assert lattice(even, even[0], ".vts").kind == "curved"


def test_a_grid_that_the_file_cannot_hold_is_refused():
    uneven = np.meshgrid(AXES[0] ** 2, AXES[1], AXES[2], indexing="ij")
    with pytest.raises(ValueError, match=r"use \.vtr or \.vts"):
        lattice(uneven, uneven[0], ".vti")
    with pytest.raises(ValueError, match="have the shapes"):
        lattice(uneven, uneven[0][:2], ".vti")


def test_planar_grids_and_falling_axes():
    mesh = np.meshgrid(AXES[0], [2.0], AXES[2], indexing="ij")
    found = lattice(mesh, mesh[0], "")
    assert found.kind == "image"
    assert found.arguments[0] == (3, 1, 5)
    assert found.arguments[1] == [0.0, 2.0, 0.0]
    falling = np.meshgrid(AXES[0][::-1], AXES[1], AXES[2], indexing="ij")
    assert lattice(falling, falling[0], "").kind == "axes"
