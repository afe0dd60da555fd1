"""Oracle: np.linalg, and all graphs of a tree by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.policy.features import (
    LARGEST_EFFECT,
    SMALLEST_PROB,
    ancestor_probs,
    structural_weights,
    total_effects,
    unconfounded_probs,
)
from causal_linear import random_weights

N, D, TARGET = 8, 4, 2
RANDOM = np.random.default_rng(0)
TOTAL = jax.jit(total_effects)
REACH = jax.jit(ancestor_probs)


def single(x):
    return jnp.asarray(x, jnp.float32)


@pytest.mark.parametrize("target", [0, 2, 3])
def test_total_effects_of_acyclic_weights(target):
    order = RANDOM.permutation(D)
    weights = random_weights(target)[np.ix_(order, order)]
    expected = np.linalg.inv(np.eye(D) - weights)[:, target]
    expected[target] = 0
    found = TOTAL(single(weights), jnp.asarray(target))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_cycles_do_not_run_away():
    weights = 5.0 * (np.ones((D, D)) - np.eye(D))
    found = np.asarray(TOTAL(single(weights), jnp.asarray(TARGET)))
    np.testing.assert_array_equal(np.delete(found, TARGET), LARGEST_EFFECT)


TREES = [
    {(0, 1): 0.5, (1, 2): 0.7, (3, 1): 0.2},
    {(0, 2): 0.1, (1, 2): 0.9, (3, 0): 0.6},
]


@pytest.mark.parametrize("tree", TREES)
def test_paths_of_a_tree_by_enumeration(tree):
    probs = np.zeros((D, D))
    for edge, chance in tree.items():
        probs[edge] = chance
    expected = np.zeros(D)
    for there in itertools.product([False, True], repeat=len(tree)):
        graph, weight = np.eye(D), 1.0
        for (edge, chance), present in zip(tree.items(), there, strict=True):
            graph[edge] = present
            weight *= chance if present else 1 - chance
        reached = np.linalg.matrix_power(graph, D)[:, TARGET] > 0
        expected += weight * reached
    expected[TARGET] = 0
    found = REACH(single(probs), jnp.asarray(TARGET))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def clear(graph: np.ndarray, i: int) -> bool:
    """No cause of i reaches the target past i, and the target does not reach i."""
    whole = np.linalg.matrix_power(np.eye(D) + graph, D) > 0
    past = graph.copy()
    past[:, i] = 0
    reach = np.linalg.matrix_power(np.eye(D) + past, D)[:, TARGET] > 0
    return not (whole[TARGET, i] or (reach & (graph[:, i] > 0)).any())


def test_what_confounds_by_enumeration():
    """0 causes 1 and the target 2, 1 causes 2, and 2 causes 3: each edge perhaps."""
    chances = {(0, 1): 0.5, (0, 2): 0.7, (1, 2): 0.4, (2, 3): 0.8}
    probs, expected = np.zeros((D, D)), np.zeros(D)
    for edge, chance in chances.items():
        probs[edge] = chance
    for there in itertools.product([False, True], repeat=len(chances)):
        graph, weight = np.zeros((D, D)), 1.0
        for (edge, chance), present in zip(chances.items(), there, strict=True):
            graph[edge] = present
            weight *= chance if present else 1 - chance
        expected += weight * np.array([clear(graph, i) for i in range(D)])
    found = np.asarray(jax.jit(unconfounded_probs)(single(probs), jnp.asarray(TARGET)))
    others = [0, 1, 3]
    np.testing.assert_allclose(found[others], expected[others], atol=1e-6)


def test_reach_is_a_probability_whatever_the_edges():
    probs = RANDOM.random((D, D))
    found = np.asarray(REACH(single(probs), jnp.asarray(TARGET)))
    assert found[TARGET] == 0
    others = np.delete(found, TARGET)
    direct = np.delete(probs[:, TARGET], TARGET)
    assert ((others >= direct - 1e-6) & (others <= 1)).all()


def test_structural_weights_are_ridge_regressions():
    z = RANDOM.normal(size=(N, D))
    free = np.ones((N, D))
    free[5:, 1] = 0
    probs = np.clip(RANDOM.random((D, D)), 0, 1)
    probs[0, 3], probs[1, 3] = 0.0, 1.0
    found = jax.jit(structural_weights)(single(z), single(free), single(probs))
    for j in range(D):
        causes = [i for i in range(D) if i != j]
        rows = free[:, j] > 0
        x = np.column_stack([z[rows][:, causes], np.ones(rows.sum())])
        sure = np.clip(probs[causes, j], SMALLEST_PROB, 1 - SMALLEST_PROB)
        ridge = np.diag([*((1 - sure) / sure + 0.05), 0.05])
        expected = np.linalg.solve(x.T @ x + ridge, x.T @ z[rows, j])[:-1]
        np.testing.assert_allclose(found[causes, j], expected, rtol=2e-3, atol=2e-4)
        assert float(found[j, j]) == 0
