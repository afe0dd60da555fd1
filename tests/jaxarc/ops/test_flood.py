"""Components equal a breadth-first search, however they wind.

The kernel, run by the interpreter, equals the rounds that every device has.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arc_reference as reference
from jaxarc import bits
from jaxarc.ops import flood


def snake(side):
    """A path through every other row, joined at alternating ends."""
    cells = np.zeros((side, side), bool)
    cells[::2] = True
    cells[1::4, -1] = True
    cells[3::4, 0] = True
    return cells


def searched(cells, row, column):
    grid = np.where(cells, 1, 0)
    return reference.flood(grid, row, column, 2) == 2


@pytest.mark.parametrize("side", [5, 16, 30, 32])
@pytest.mark.parametrize("turned", [False, True])
def test_a_snake_is_filled_from_end_to_end(side, turned):
    cells = snake(side).T if turned else snake(side)
    start = np.zeros_like(cells)
    start[0, 0] = True
    rows, begun = (jnp.asarray(bits.pack_rows(x)) for x in (cells, start))
    found = np.asarray(flood.reachable(rows, begun))
    np.testing.assert_array_equal(bits.unpack_rows(found, side), cells)


def random_batch(side, count=200):
    rng = np.random.default_rng(side)
    cells = rng.random((count, side, side)) < rng.uniform(0.3, 0.9, (count, 1, 1))
    places = rng.integers(0, side, (count, 2))
    start = np.zeros_like(cells)
    start[np.arange(count), places[:, 0], places[:, 1]] = True
    return cells, start & cells, places


@pytest.mark.parametrize("side", [1, 2, 5, 8, 13, 30, 32])
def test_random_mazes_equal_the_search(side):
    cells, start, places = random_batch(side)
    packed = [jnp.asarray(bits.pack_rows(x)) for x in (cells, start)]
    found = np.asarray(jax.jit(jax.vmap(flood.reachable))(*packed))
    found = bits.unpack_rows(found, side)
    for index, (row, column) in enumerate(places):
        expected = np.zeros((side, side), bool)
        if start[index].any():
            expected = searched(cells[index], row, column)
        np.testing.assert_array_equal(found[index], expected)


def test_maps_nest_and_share_what_is_not_mapped():
    cells, start, _ = random_batch(9, 12)
    opened, begun = (jnp.asarray(bits.pack_rows(x)) for x in (cells, start))
    flat = flood.reachable_by_rounds(opened, begun)
    nested = jax.vmap(jax.vmap(flood.reachable))(
        opened.reshape(3, 4, 9), begun.reshape(3, 4, 9)
    )
    np.testing.assert_array_equal(nested.reshape(12, 9), flat)
    shared = jax.vmap(flood.reachable, in_axes=(None, 0))(opened[0], begun & opened[:1])
    each = [flood.reachable(opened[0], b & opened[0]) for b in begun]
    np.testing.assert_array_equal(shared, jnp.stack(each))


def test_a_component_has_one_color_and_stays_in_the_active_area():
    grid = np.array([[3, 3, 0], [5, 3, 3], [3, 0, 3]], np.int32)
    planes = bits.pack_grid(jnp.asarray(grid))
    size = jnp.array([3, 2], jnp.int32)
    active = bits.active_rows(size, 3, planes.dtype)
    start = bits.pack_rows(jnp.zeros((3, 3), bool).at[0, 0].set(True))
    found = bits.unpack_rows(flood.component(planes, active, start), 3)
    expected = [[True, True, False], [False, True, False], [False, False, False]]
    np.testing.assert_array_equal(found, expected)
    assert not flood.component(planes, active, jnp.zeros_like(start)).any()


@pytest.mark.parametrize("side", [5, 13, 18])
@pytest.mark.parametrize("batch", [3, flood.GRIDS_PER_BLOCK + 1])
def test_the_kernel_equals_the_rounds(side, batch):
    rng = np.random.default_rng(side)
    cells = rng.random((batch, side, side)) < 0.6
    start = (rng.random(cells.shape) < 0.05) & cells
    opened, begun = (jnp.asarray(bits.pack_rows(x)) for x in (cells, start))
    by_kernel = functools.partial(flood.reachable_by_kernel, interpret=True)
    found = jax.jit(by_kernel)(opened, begun)
    assert found.dtype == begun.dtype
    expected = jax.jit(flood.reachable_by_rounds)(opened, begun)
    np.testing.assert_array_equal(found, expected)
