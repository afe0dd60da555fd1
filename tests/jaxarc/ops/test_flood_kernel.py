"""The kernel, run by the interpreter, equals the rounds that every device has."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import bits
from jaxarc.ops.flood import reachable_by_rounds
from jaxarc.ops.flood_kernel import GRIDS_PER_BLOCK, reachable_by_kernel


@pytest.mark.parametrize("side", [5, 13, 18])
@pytest.mark.parametrize("batch", [3, GRIDS_PER_BLOCK + 1])
def test_the_kernel_equals_the_rounds(side, batch):
    rng = np.random.default_rng(side)
    cells = rng.random((batch, side, side)) < 0.6
    start = (rng.random(cells.shape) < 0.05) & cells
    opened, begun = (jnp.asarray(bits.pack_rows(x)) for x in (cells, start))
    by_kernel = functools.partial(reachable_by_kernel, interpret=True)
    found = jax.jit(by_kernel)(opened, begun)
    assert found.dtype == begun.dtype
    expected = jax.jit(reachable_by_rounds)(opened, begun)
    np.testing.assert_array_equal(found, expected)
