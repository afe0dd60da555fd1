"""Packed rows against plain NumPy grids, on random cells of every word length.

Similarity equals counting cells: matches over the union of both grids.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arc_reference as reference
from arc_hand import packed
from jaxarc import bits
from jaxarc.bits import similarity

SHAPES = [(5, 8), (3, 9), (17, 4), (32, 32)]  # edges of words
shapes = pytest.mark.parametrize("shape", SHAPES)


def rows_and_back(cells):
    rows = bits.pack_rows(cells)
    return rows, bits.unpack_rows(rows, cells.shape[-1])


def grid_and_back(grid, active):
    return bits.unpack_grid(bits.pack_grid(grid), active, grid.shape[-1])


@jax.jit
def turned(cells):
    """Transposed and reversed, the latter with all the bits of a word."""
    rows, side = bits.pack_rows(cells), cells.shape[-1]
    length = jnp.iinfo(rows.dtype).bits
    transposed = bits.unpack_rows(bits.transpose(rows), side)
    return transposed, bits.unpack_rows(bits.reverse(rows), length)


active_rows = jax.jit(bits.active_rows, static_argnums=(1, 2))
# On NumPy as it is; on JAX compiled whole, for run eagerly every operation of every
# shape is a program of its own.
both = pytest.mark.parametrize("made", [lambda f: f, jax.jit], ids=["numpy", "jax"])


def random_cells(shape, seed=0):
    return np.random.default_rng(seed).random((20, *shape)) < 0.5


@pytest.mark.parametrize(
    ("side", "dtype"), [(8, "uint8"), (9, "uint16"), (16, "uint16"), (17, "uint32")]
)
def test_the_word_is_the_smallest_that_holds_a_side(side, dtype):
    assert bits.word_type(side, 1) == bits.word_type(1, side) == dtype


@pytest.mark.parametrize("shape", [(0, 3), (3, 33), (40, 1)])
def test_a_grid_that_no_word_holds_is_refused(shape):
    with pytest.raises(ValueError, match="cannot be packed"):
        bits.word_type(*shape)


@shapes
@both
def test_packing_is_undone_by_unpacking(shape, made):
    cells = random_cells(shape)
    rows, found = made(rows_and_back)(cells)
    assert rows.dtype == bits.word_type(*shape)
    np.testing.assert_array_equal(found, cells)


@shapes
@both
def test_a_grid_comes_back_with_its_padding(shape, made):
    rng = np.random.default_rng(1)
    grid = np.full((20, *shape), -1, np.int32)
    sizes = rng.integers(1, np.array(shape) + 1, (20, 2)).astype(np.int32)
    for index, (height, width) in enumerate(sizes):
        grid[index, :height, :width] = rng.integers(0, 10, (height, width))
    active = active_rows(jnp.asarray(sizes), shape[0], bits.word_type(*shape))
    found = made(grid_and_back)(grid, np.asarray(active))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, grid)


@shapes
def test_transpose_and_reverse_equal_numpy(shape):
    side = max(shape)
    cells = random_cells((side, side))
    transposed, reversed_cells = jax.device_get(turned(cells))
    np.testing.assert_array_equal(transposed, np.swapaxes(cells, -1, -2))
    np.testing.assert_array_equal(reversed_cells[..., -side:], cells[..., ::-1])


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.uint16, jnp.uint32])
def test_every_span_is_exact(dtype):
    length = jnp.iinfo(dtype).bits
    first, last = np.triu_indices(length)
    spans = jax.jit(bits.span, static_argnums=2)(first, last, dtype)
    expected = (1 << (last + 1).astype(np.uint64)) - (1 << first.astype(np.uint64))
    np.testing.assert_array_equal(np.asarray(spans).astype(np.uint64), expected)
    assert int(bits.below(jnp.asarray(0), dtype)) == 0


compared = jax.jit(similarity)


def alike(one, other):
    return compared(packed(one), packed(other))


@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (30, 30)])
def test_it_equals_counting(shape):
    rng = np.random.default_rng(shape[1])
    both = [
        (reference.random_grid(rng, shape, 3), reference.random_grid(rng, shape, 3))
        for _ in range(100)
    ]
    got = alike(*map(np.stack, zip(*both, strict=True)))
    assert got.dtype == jnp.float32
    wanted = [reference.similarity(one, other) for one, other in both]
    np.testing.assert_array_equal(got, wanted)


def test_one_means_same_size_and_content():
    small, large = np.full((4, 4), -1, np.int32), np.full((4, 4), -1, np.int32)
    small[:2, :2], large[:2, :3] = 7, 7
    assert alike(small, small) == 1.0
    assert alike(small, large) == alike(large, small) == np.float32(4 / 6)


def test_black_is_not_padding():
    black, nothing = np.zeros((3, 3), np.int32), np.full((3, 3), -1, np.int32)
    assert alike(black, nothing) == 0.0
    assert alike(nothing, nothing) == 0.0
