import numpy as np
import pytest

from jaxtrace.files.snapshot import (
    Cells,
    GridAxes,
    ascending,
    grid_order,
    storage_order,
)


def axes(x=(0.0, 1.0), y=(0.0, 2.0, 3.0), z=(5.0,)):
    return GridAxes(*(np.array(axis) for axis in (x, y, z)))


def triangle(x=1.0):
    points = np.array([[0.0, 0, 0], [x, 0, 0], [0, 1, 0]])
    return Cells(points, np.arange(3), np.array([0, 3]), np.array([5], np.uint8))


def test_grid_points_run_x_fastest():
    grid = axes()
    assert grid.shape == (2, 3, 1)
    assert grid.n_points == 6
    expected = [[x, y, 5.0] for y in (0.0, 2.0, 3.0) for x in (0.0, 1.0)]
    np.testing.assert_array_equal(grid.points(), expected)


def test_grid_order_of_stored_points_is_the_index_of_each_axis():
    grid = axes(x=(0.0, 1.0, 4.0), z=(1.0, 2.0, 7.0, 8.0))
    values = grid_order(grid.points(), grid.shape)
    np.testing.assert_array_equal(values[2, 1, 3], [4.0, 2.0, 8.0])
    np.testing.assert_array_equal(storage_order(values), grid.points())


def test_equal_geometry_is_recognized():
    assert triangle().same_as(triangle())
    assert not triangle().same_as(triangle(x=np.nextafter(1, 2)))
    assert axes().same_as(axes())
    assert not axes().same_as(axes(z=(6.0,)))


def test_descending_axes_are_flipped_with_their_values():
    x, y, z = np.array([3.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0])
    values = np.arange(4.0).reshape(2, 2, 1, 1)
    (fx, fy, _), flipped = ascending((x, y, z), {"a": values})
    assert fx.tolist() == [1.0, 3.0]
    assert fy.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(flipped["a"], values[::-1])


@pytest.mark.parametrize("axis", [[0.0, 0.0], [0.0, 2.0, 1.0]])
def test_an_axis_that_turns_back_is_refused(axis):
    with pytest.raises(ValueError, match="axis y must run strictly"):
        ascending((np.zeros(1), np.array(axis), np.zeros(1)), {})
