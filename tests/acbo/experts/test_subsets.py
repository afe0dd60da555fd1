import jax.numpy as jnp
import numpy as np

from acbo.experts.scores import NEVER
from acbo.experts.subsets import (
    elements_of,
    halves,
    masks_by_size,
    set_masks,
    sum_parent_sets,
    sum_subsets,
    sum_supersets,
)

D = 4
TABLE = np.random.default_rng(0).normal(0, 5, (2, 2**D))


def log_sum(logs):
    return np.logaddexp.reduce(logs, axis=-1)


def test_sums_over_subsets_and_supersets():
    below = sum_subsets(jnp.asarray(TABLE, float))
    above = sum_supersets(jnp.asarray(TABLE, float))
    masks = np.arange(2**D)
    for w in masks:
        inside, outside = TABLE[:, masks & w == masks], TABLE[:, masks & w == w]
        np.testing.assert_allclose(below[:, w], log_sum(inside), rtol=1e-4)
        np.testing.assert_allclose(above[:, w], log_sum(outside), rtol=1e-4)


def test_sums_of_parent_sets_leave_the_rest_out():
    masks = set_masks(D, 2)
    scores = np.random.default_rng(1).normal(size=masks.shape)
    scores[0, 0] = NEVER
    found = sum_parent_sets(jnp.asarray(scores, float), 2)
    for j in range(D):
        assert not (masks[j] >> j & 1).any()
        for w in range(2**D):
            inside = masks[j] & ~w == 0
            wanted = log_sum(scores[j, inside])
            np.testing.assert_allclose(found[j, w], wanted, rtol=1e-4)


def test_masks_and_their_elements():
    for size, masks in enumerate(masks_by_size(D)):
        elements = elements_of(masks, D)
        assert elements.shape == (len(masks), size)
        assert (1 << elements).sum(axis=1).tolist() == masks.tolist()
    assert sum(len(masks) for masks in masks_by_size(D)) == 2**D


def test_halves():
    numbers = jnp.arange(8.0)[None]
    without, holding = halves(numbers, 1)
    assert without.tolist() == [[0, 1, 4, 5]]
    assert holding.tolist() == [[2, 3, 6, 7]]
