from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np

from acbo.posterior import dag_sums
from acbo.posterior.scores import LOG_ZERO
from causal_graphs import all_dags

D = 4
TABLE = np.random.default_rng(0).normal(0, 5, (2, 2**D))


def log_sum(logs):
    return np.logaddexp.reduce(logs, axis=-1)


def test_sums_over_subsets_and_supersets():
    below = dag_sums.sum_subsets(jnp.asarray(TABLE, float))
    above = dag_sums.sum_supersets(jnp.asarray(TABLE, float))
    masks = np.arange(2**D)
    for w in masks:
        inside, outside = TABLE[:, masks & w == masks], TABLE[:, masks & w == w]
        np.testing.assert_allclose(below[:, w], log_sum(inside), rtol=1e-4)
        np.testing.assert_allclose(above[:, w], log_sum(outside), rtol=1e-4)


def test_sums_of_parent_sets_leave_the_rest_out():
    masks = dag_sums.set_masks(D, 2)
    scores = np.random.default_rng(1).normal(size=masks.shape)
    scores[0, 0] = LOG_ZERO
    found = dag_sums.sum_parent_sets(jnp.asarray(scores, float), 2)
    for j in range(D):
        assert not (masks[j] >> j & 1).any()
        for w in range(2**D):
            inside = masks[j] & ~w == 0
            wanted = log_sum(scores[j, inside])
            np.testing.assert_allclose(found[j, w], wanted, rtol=1e-4)


def test_masks_and_their_elements():
    for size, masks in enumerate(dag_sums.masks_by_size(D)):
        elements = dag_sums.elements_of(masks, D)
        assert elements.shape == (len(masks), size)
        assert (1 << elements).sum(axis=1).tolist() == masks.tolist()
    assert sum(len(masks) for masks in dag_sums.masks_by_size(D)) == 2**D


def test_halves():
    numbers = jnp.arange(8.0)[None]
    without, holding = dag_sums.split_on_element(numbers, 1)
    assert without.tolist() == [[0, 1, 4, 5]]
    assert holding.tolist() == [[2, 3, 6, 7]]


SUMS = np.random.default_rng(0).normal(0, 3, (D, 2**D))


def weights_of_orders():
    """Log weight of each order, and the predecessors of each variable in it."""
    for order in permutations(range(D)):
        before = {j: sum(1 << i for i in order[:k]) for k, j in enumerate(order)}
        yield sum(SUMS[j, before[j]] for j in range(D)), before


def test_sums_are_over_all_orders():
    total = np.log(sum(np.exp(weight) for weight, _ in weights_of_orders()))
    with jax.enable_x64(True):
        sums = jnp.asarray(SUMS)
        into, out = jax.jit(
            lambda s: (dag_sums.sum_orders_into(s), dag_sums.sum_orders_out(s))
        )(sums)
        weights = jax.jit(dag_sums.predecessor_weights)(sums)
    into, out, weights = (np.asarray(x) for x in (into, out, weights))
    assert np.isclose(into[-1], total)
    assert np.isclose(out[0], total)
    assert (into[0], out[-1]) == (0, 0)
    wanted = np.zeros((D, 2**D))
    for weight, before in weights_of_orders():
        for j in range(D):
            wanted[j, before[j]] += np.exp(weight - total)
    np.testing.assert_allclose(np.exp(weights), wanted, rtol=1e-9)


def test_every_graph_counts_once():
    """With equal scores the chance of a parent set is its share of all graphs."""
    with jax.enable_x64(True):
        sums = dag_sums.sum_parent_sets(jnp.zeros((D, 8)), 3)
        weights = np.asarray(jax.jit(dag_sums.layer_weights)(sums))
        sums = np.asarray(sums)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    parents = all_dags(D)
    for j in range(D):
        for s in range(2**D):
            holding = [w for w in range(2**D) if w & s == s and not w >> j & 1]
            chance = (weights[j, holding] / np.exp(sums[j, holding])).sum()
            wanted = (parents[:, j] == s).mean()
            assert np.isclose(chance if not s >> j & 1 else 0, wanted)
