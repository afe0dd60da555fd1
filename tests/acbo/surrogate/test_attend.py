"""Oracle: NumPy loops over lines, heads and places."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate.layers import attend

HEADS, SIZE = 2, 3


def naive(qkv, mask, axis):
    lines = qkv if axis == 1 else qkv.swapaxes(0, 1)
    seen = np.zeros((*lines.shape[:2], HEADS, SIZE))
    for a, line in enumerate(lines):
        query, key, value = line.reshape(-1, 3, HEADS, SIZE).swapaxes(0, 1)
        for h in range(HEADS):
            for q in range(len(line)):
                scores = key[mask, h] @ query[q, h] / np.sqrt(SIZE)
                weights = np.exp(scores - scores.max())
                seen[a, q, h] = weights / weights.sum() @ value[mask, h]
    seen = seen.reshape(*lines.shape[:2], -1)
    return seen if axis == 1 else seen.swapaxes(0, 1)


@pytest.mark.parametrize("axis", [0, 1])
def test_places_see_those_of_the_mask_along_the_axis(axis):
    random = np.random.default_rng(axis)
    qkv = random.normal(size=(4, 5, 3, HEADS * SIZE)).astype(np.float32)
    mask = random.random(qkv.shape[axis]) < 0.7
    found = jax.jit(lambda x: attend(x, jnp.asarray(mask), HEADS, axis))(qkv)
    np.testing.assert_allclose(found, naive(qkv, mask, axis), rtol=1e-4, atol=1e-5)
