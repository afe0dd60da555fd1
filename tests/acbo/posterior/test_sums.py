from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np

from acbo.posterior import dag_sums
from acbo.posterior.scores import LOG_ZERO

D = 4


def log_sum(logs):
    return np.logaddexp.reduce(logs, axis=-1)


def test_sums_of_parent_sets_leave_the_rest_out():
    masks = dag_sums.set_masks(D, 2)
    scores = np.random.default_rng(1).normal(size=masks.shape)
    scores[0, 0] = LOG_ZERO
    sums = jax.jit(dag_sums.sum_parent_sets, static_argnums=1)
    found = np.asarray(sums(np.asarray(scores, np.float32), 2))
    for j in range(D):
        assert not (masks[j] >> j & 1).any()
        for w in range(2**D):
            inside = masks[j] & ~w == 0
            wanted = log_sum(scores[j, inside])
            np.testing.assert_allclose(found[j, w], wanted, rtol=1e-4)


SUMS = np.random.default_rng(0).normal(0, 3, (D, 2**D))


def test_sums_are_over_all_orders():
    weights, places = [], []
    for order in permutations(range(D)):
        before = {j: sum(1 << i for i in order[:k]) for k, j in enumerate(order)}
        weights.append(sum(SUMS[j, before[j]] for j in range(D)))
        places.append(before)
    shares = np.zeros_like(SUMS)
    for before, share in zip(places, np.exp(weights - log_sum(weights)), strict=True):
        for j, w in before.items():
            shares[j, w] += share
    with jax.enable_x64(True):
        found = jax.jit(dag_sums.sum_orders)(jnp.asarray(SUMS))
        assert found[0] == 0
        assert np.isclose(found[-1], log_sum(weights))
        slope = jax.jit(jax.grad(dag_sums.total_over_orders))(jnp.asarray(SUMS))
        np.testing.assert_allclose(slope, shares, atol=1e-12)


def test_every_graph_counts_once():
    """With equal scores the total is the number of graphs over the variables."""
    with jax.enable_x64(True):
        sums = jax.jit(lambda: dag_sums.sum_parent_sets(jnp.zeros((D, 8)), 3))()
        found = np.exp(np.asarray(jax.jit(dag_sums.sum_graphs)(sums)))
    wanted = [1, 1, 3, 25, 543]  # Robinson (1973)
    np.testing.assert_allclose(found, [wanted[w.bit_count()] for w in range(2**D)])
