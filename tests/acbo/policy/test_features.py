"""Oracle: numbers by hand, np.linalg, and all graphs of a tree by enumeration."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.history import History
from acbo.policy.features import (
    CANDIDATES,
    FEATURES,
    LARGEST_EFFECT,
    SMALLEST_PROB,
    CellFeatures,
    ancestor_probs,
    policy_features,
    structural_weights,
    total_effects,
    unconfounded_probs,
)
from causal_linear import draw_history, edges, linear_scm, random_weights, spec_for

D, TARGET = 4, 2
SCM = linear_scm(edges(D, e01=1.5, e12=-1.2, e23=1.0, e03=0.5), TARGET, noise=0.3)
SETTING = spec_for(SCM)
HISTORY = draw_history(SCM, observational=40, interventional=20, capacity=64)
TRUE = np.where(np.asarray(SCM.adjacency), 0.999, 0.001).astype(np.float32)
EMPTY = History(HISTORY.values * 0, jnp.zeros_like(HISTORY.intervened), jnp.asarray(0))


@pytest.fixture(scope="module")
def seen():
    run = jax.jit(policy_features)
    return lambda *given: jax.tree.map(np.asarray, run(*given))


def test_shapes_and_what_is_passed_on(seen):
    found = seen(HISTORY, SETTING, TRUE)
    assert found.features.shape == (D, CANDIDATES, FEATURES)
    assert np.isfinite(found.features).all()
    np.testing.assert_array_equal(found.allowed, SETTING.allowed)
    np.testing.assert_array_equal(found.low, SETTING.low)
    np.testing.assert_array_equal(found.high, SETTING.high)
    # A range without width does no harm, nor does an empty history.
    pinned = eqx.tree_at(lambda s: s.high, SETTING, SETTING.low)
    for given in ((HISTORY, pinned), (EMPTY, SETTING)):
        assert np.isfinite(seen(*given, TRUE).features).all()


def test_the_first_guess_follows_the_model(seen):
    """E[Y | do] of the true model in deviations of the observational target."""
    found = seen(HISTORY, SETTING, TRUE)
    y = np.asarray(HISTORY.values)[:40, TARGET]
    weight = np.asarray(SCM.features.inner)[:, 0, :].T
    total = np.linalg.inv(np.eye(D) - weight)[:, TARGET]
    values = np.linspace(-2, 3, CANDIDATES)
    for i in (0, 1):
        expected = (total[i] * values - y.mean()) / y.std()
        assert abs(found.mean[i] - expected).max() < 0.1 * abs(expected).max()


def test_plain_columns(seen):
    features = seen(HISTORY, SETTING, TRUE).features
    share = np.linspace(0, 1, CANDIDATES)
    flat = lambda x: np.broadcast_to(x, (D, CANDIDATES))
    named = CellFeatures(*np.moveaxis(features, -1, 0))
    close = lambda name, x: np.testing.assert_allclose(
        getattr(named, name), x, atol=1e-5
    )
    close("parent_prob", flat(TRUE[:, TARGET][:, None]))
    close("place", flat(2 * share - 1))
    close("is_end", flat((share == 0) | (share == 1)))
    times = np.asarray(HISTORY.intervened).sum(axis=0)
    close("times_set", flat(np.log1p(times)[:, None]))
    close("observational_rows", np.log1p(40) - 3)
    close("interventional_rows", np.log1p(20))


def test_better_is_lower_in_both_directions(seen):
    """Looking for the highest outcome mirrors every outcome."""
    up = dataclasses.replace(SETTING, sign=jnp.asarray(-1.0))
    down, up = seen(HISTORY, SETTING, TRUE), seen(HISTORY, up, TRUE)
    np.testing.assert_allclose(up.mean, -down.mean, atol=1e-4)
    np.testing.assert_allclose(up.std, down.std, atol=1e-5)


def test_order_of_rows_and_variables_changes_nothing(seen):
    rows = np.r_[np.random.default_rng(0).permutation(60), 60:64]
    columns = np.array([3, 0, 2, 1])
    plain = seen(HISTORY, SETTING, TRUE)
    history = History(
        HISTORY.values[rows][:, columns],
        HISTORY.intervened[rows][:, columns],
        HISTORY.count,
    )
    moved = dataclasses.replace(
        SETTING,
        low=SETTING.low[columns],
        high=SETTING.high[columns],
        mask=SETTING.mask[columns],
        allowed=SETTING.allowed[columns],
        target=jnp.asarray(int(np.flatnonzero(columns == TARGET)[0])),
    )
    found = seen(history, moved, TRUE[columns][:, columns])
    np.testing.assert_allclose(found.features, plain.features[columns], atol=1e-3)
    np.testing.assert_allclose(found.mean, plain.mean[columns], atol=1e-3)


def test_padding_is_zero_and_full_rows_alone_are_read(seen):
    there = jnp.asarray([True, True, True, False])
    spec = eqx.tree_at(
        lambda s: (s.mask, s.allowed), SETTING, (there, SETTING.allowed & there)
    )
    cells = HISTORY.row_mask[:, None] & there[None]
    clear = jnp.where(cells, HISTORY.values, 0.0)
    history = History(clear, HISTORY.intervened & cells, HISTORY.count)
    plain = seen(history, spec, TRUE)
    assert not plain.features[3].any()
    for filler in (99.0, np.nan):
        values = jnp.where(cells, clear, filler)
        garbage = History(values, HISTORY.intervened | ~cells, history.count)
        found = seen(garbage, spec, TRUE)
        np.testing.assert_array_equal(found.features, plain.features)


N = 8
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


def graphs(chances):
    """The matrix of edge probabilities, and every graph with its probability."""
    probs, every = np.zeros((D, D)), []
    for edge, chance in chances.items():
        probs[edge] = chance
    for there in itertools.product([False, True], repeat=len(chances)):
        graph, weight = np.zeros((D, D)), 1.0
        for (edge, chance), present in zip(chances.items(), there, strict=True):
            graph[edge] = present
            weight *= chance if present else 1 - chance
        every.append((graph, weight))
    return single(probs), every


def paths(graph):
    return np.linalg.matrix_power(np.eye(D) + graph, D) > 0


@pytest.mark.parametrize("tree", TREES)
def test_paths_of_a_tree_by_enumeration(tree):
    probs, every = graphs(tree)
    expected = np.sum([w * paths(graph)[:, TARGET] for graph, w in every], axis=0)
    expected[TARGET] = 0
    found = REACH(probs, jnp.asarray(TARGET))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # Whatever the edges, cycles among them too, it is a probability.
    found = np.asarray(REACH(single(RANDOM.random((D, D))), jnp.asarray(TARGET)))
    assert found[TARGET] == 0
    assert ((found >= 0) & (found <= 1)).all()


def clear(graph: np.ndarray, i: int) -> bool:
    """No cause of i reaches the target past i, and the target does not reach i."""
    past = graph.copy()
    past[:, i] = 0
    open_door = paths(past)[:, TARGET] & (graph[:, i] > 0)
    return not (paths(graph)[TARGET, i] or open_door.any())


def test_what_confounds_by_enumeration():
    """0 causes 1 and the target 2, 1 causes 2, and 2 causes 3: each edge perhaps."""
    chances = {(0, 1): 0.5, (0, 2): 0.7, (1, 2): 0.4, (2, 3): 0.8}
    probs, every = graphs(chances)
    each = [[w * clear(graph, i) for i in range(D)] for graph, w in every]
    expected = np.sum(each, axis=0)
    found = np.asarray(jax.jit(unconfounded_probs)(probs, jnp.asarray(TARGET)))
    others = [0, 1, 3]
    np.testing.assert_allclose(found[others], expected[others], atol=1e-6)


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
