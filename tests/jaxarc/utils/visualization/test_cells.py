"""Cropping against naive loops, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxarc.types import Grid
from jaxarc.utils.visualization.cells import detect_changed_cells, read_cells

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=5)


@given(SHAPES.flatmap(lambda s: hnp.arrays(np.int32, s, elements=st.integers(-1, 9))))
def test_the_box_holds_all_real_cells_and_no_more(grid):
    cells = read_cells(grid)
    real = [tuple(index) for index in np.argwhere(grid >= 0)]
    found = [(r + cells.top, c + cells.left) for r, c in np.argwhere(cells.active)]
    assert sorted(found) == sorted(real)
    assert [cells.values[r - cells.top, c - cells.left] for r, c in real] == [
        grid[r, c] for r, c in real
    ]
    if real:
        edges = (cells.active[side] for side in np.s_[0, -1])
        assert all(edge.any() for edge in edges)
        edges = (cells.active[:, side] for side in np.s_[0, -1])
        assert all(edge.any() for edge in edges)


def test_a_mask_decides_and_a_grid_brings_its_own():
    data = np.array([[0, 5, -1], [7, 1, -1]], np.int32)
    mask = np.array([[False, True, False], [False, True, False]])
    for cells in (
        read_cells(data, mask),
        read_cells(Grid(jnp.asarray(data), jnp.asarray(mask))),
    ):
        np.testing.assert_array_equal(cells.values, [[5], [1]])
        assert (cells.top, cells.left, cells.size) == (0, 1, "2x1")


def test_overlays_are_cut_like_the_grid():
    cells = read_cells(np.array([[-1, -1], [-1, 3]]))
    np.testing.assert_array_equal(cells.crop(np.array([[0, 0], [0, 1]])), [[True]])
    np.testing.assert_array_equal(cells.crop(np.ones((1, 1), bool)), [[False]])
    np.testing.assert_array_equal(cells.crop(None), [[False]])


def test_nothing_real_is_an_empty_box():
    assert read_cells(np.full((3, 3), -1)).size == "0x0"


@given(*[hnp.arrays(np.int32, (3, 4), elements=st.integers(-1, 9))] * 2)
def test_changes_are_cells_that_differ(before, after):
    np.testing.assert_array_equal(detect_changed_cells(before, after), before != after)


def test_changes_between_sizes_cover_both():
    found = detect_changed_cells(np.array([[1, 2]]), np.array([[1], [3]]))
    np.testing.assert_array_equal(found, [[False, True], [True, False]])


def test_leaving_the_grid_is_a_change():
    data = jnp.ones((1, 2), jnp.int32)
    before = Grid(data, jnp.array([[True, True]]))
    after = Grid(data, jnp.array([[True, False]]))
    np.testing.assert_array_equal(detect_changed_cells(before, after), [[False, True]])


def test_what_is_no_grid_is_refused():
    with pytest.raises(TypeError, match="float64"):
        read_cells(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"\(2, 2, 2\)"):
        read_cells(np.ones((2, 2, 2), int))
    with pytest.raises(ValueError, match="mask has shape"):
        read_cells(np.ones((2, 2), int), np.ones((1, 2), bool))
    with pytest.raises(TypeError, match="jax_log_grid"):
        jax.jit(lambda grid: read_cells(grid).values)(jnp.ones((2, 2), jnp.int32))
