"""Similarity equals counting cells: matches over the union of both grids."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arc_reference as reference
from jaxarc import bits
from jaxarc.bits import similarity


def packed(grid):
    size = np.asarray(reference.size_of(grid), np.int32)
    return bits.pack_grid(grid), size


compared = jax.jit(similarity)


def alike(one, other):
    return compared(*packed(one), *packed(other))


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 17), (30, 30)])
def test_it_equals_counting(shape):
    rng = np.random.default_rng(shape[1])
    both = [
        (reference.random_grid(rng, shape, 3), reference.random_grid(rng, shape, 3))
        for _ in range(100)
    ]
    arrays = [(*packed(one), *packed(other)) for one, other in both]
    got = compared(*map(np.stack, zip(*arrays, strict=True)))
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
