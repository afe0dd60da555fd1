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
from jaxarc.ops import gpu_kernels
from jaxarc.ops.flood import component, reachable, reachable_by_rounds


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


flooded = jax.jit(jax.vmap(reachable))


def random_batch(side, count=100):
    """Mazes, a place in each, and whether to flood from there."""
    rng = np.random.default_rng(side)
    cells = rng.random((count, side, side)) < rng.uniform(0.3, 0.9, (count, 1, 1))
    places = rng.integers(0, side, (2, count)).astype(np.int32)
    return cells, *places, rng.random(count) < 0.8


def packed(cells, *rest):
    return tuple(jnp.asarray(x) for x in (bits.pack_rows(cells), *rest))


@pytest.mark.parametrize("side", [1, 8, 13, 30, 32])
def test_snakes_and_random_mazes_equal_the_search(side):
    cells, rows, columns, wanted = random_batch(side)
    cells[0], cells[1] = snake(side), snake(side).T
    rows[:2], columns[:2], wanted[:2] = 0, 0, True
    args = packed(cells, rows, columns, wanted)
    found = bits.unpack_rows(np.asarray(flooded(*args)), side)
    np.testing.assert_array_equal(found[:2], cells[:2])  # from end to end
    for index, (row, column) in enumerate(zip(rows, columns, strict=True)):
        expected = np.zeros((side, side), bool)
        if wanted[index] and cells[index, row, column]:
            expected = searched(cells[index], row, column)
        np.testing.assert_array_equal(found[index], expected)


def test_maps_nest_and_share_what_is_not_mapped():
    args = packed(*random_batch(9, 12))
    by_rounds = jax.jit(reachable_by_rounds)
    flat = by_rounds(*args)
    nested = jax.jit(jax.vmap(jax.vmap(reachable)))(
        *(x.reshape(3, 4, *x.shape[1:]) for x in args)
    )
    np.testing.assert_array_equal(nested.reshape(12, 9), flat)
    maze, *starts = args
    shared = jax.jit(jax.vmap(reachable, in_axes=(None, 0, 0, 0)))(maze[0], *starts)
    same = jnp.broadcast_to(maze[:1], maze.shape)
    np.testing.assert_array_equal(shared, by_rounds(same, *starts))


def test_a_component_has_one_color_and_stays_in_the_active_area():
    grid = np.array([[3, 3, 0], [5, 3, 3], [3, 0, 3]], np.int32)
    planes = jnp.asarray(bits.pack_grid(grid))
    narrow = bits.PackedGrid(planes, jnp.array([3, 2], jnp.int32), 3)
    corner = jnp.int32(0)
    flood = jax.jit(lambda wanted: component(narrow, corner, corner, wanted))
    found = bits.unpack_rows(np.asarray(flood(jnp.asarray(True))), 3)
    expected = [[True, True, False], [False, True, False], [False, False, False]]
    np.testing.assert_array_equal(found, expected)
    assert not flood(jnp.asarray(False)).any()


# A block that is not full, and one grid more than fit: for each length of a word.
@pytest.mark.parametrize(
    ("side", "batch"),
    [(5, gpu_kernels.GRIDS_PER_BLOCK + 1), (9, 3), (17, 3)],
)
def test_the_kernel_equals_the_rounds(side, batch):
    args = packed(*random_batch(side, batch))
    by_kernel = functools.partial(gpu_kernels.reachable_by_kernel, interpret=True)
    found = jax.jit(by_kernel)(*args)
    assert found.dtype == args[0].dtype
    np.testing.assert_array_equal(found, jax.jit(reachable_by_rounds)(*args))


@pytest.mark.parametrize("height", [5, 17])
def test_the_kernel_turns_the_grids_that_it_is_asked_for(height):
    rng = np.random.default_rng(height)
    cells = rng.random((gpu_kernels.GRIDS_PER_BLOCK + 1, 4, height, height)) < 0.5
    wanted = rng.random(len(cells)) < 0.5
    by_kernel = functools.partial(gpu_kernels.transpose_by_kernel, interpret=True)
    turned = jax.jit(by_kernel)(*packed(cells, wanted))
    expected = bits.pack_rows(np.swapaxes(cells, -1, -2))
    np.testing.assert_array_equal(turned[wanted], expected[wanted])
