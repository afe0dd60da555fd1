"""Chains over orders equal a sum over every order, and hold where networks guess."""

import itertools
import math

import numpy as np
import pytest

from acbo.posterior.order_chains import WEIGHT_VARIANCES, sample_graphs
from acbo.posterior.scores import ScorePrior


def linear_data(weights, rows, seed=0, settings=()):
    """Rows of a linear model in causal order; settings: (variable, value, rows)."""
    draw = np.random.default_rng(seed)
    blocks = [(None, 0.0, rows), *settings]
    values, flags = [], []
    for variable, value, count in blocks:
        x = draw.normal(size=(count, len(weights)))
        was_set = np.zeros_like(x, bool)
        for j in range(len(weights)):
            x[:, j] += x @ weights[:, j]
            if j == variable:
                x[:, j], was_set[:, j] = value, True
        values.append(x)
        flags.append(was_set)
    return np.concatenate(values), np.concatenate(flags)


def log_evidence(y, x, variance):
    """Evidence of a conjugate regression, by determinants."""
    prior = ScorePrior(weight_variance=variance)
    design = np.concatenate([np.ones((len(y), 1)), x], axis=1)
    before = np.diag([1 / prior.intercept_variance] + [1 / variance] * x.shape[1])
    after = before + design.T @ design
    rest = y @ y - y @ design @ np.linalg.solve(after, design.T @ y)
    shape = prior.noise_shape + len(y) / 2
    logs = np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1]
    return logs / 2 - shape * math.log(prior.noise_scale + rest / 2)


def summed_edges(values, flags):
    """P(i causes j), by a sum over every order and every set of causes."""
    d = values.shape[1]
    watched = values[~flags.any(axis=1)]
    z = (values - watched.mean(axis=0)) / watched.std(axis=0)
    score = {}
    for j in range(d):
        free = ~flags[:, j]
        for size in range(d):
            for chosen in itertools.combinations([i for i in range(d) if i != j], size):
                logs = [
                    log_evidence(z[free, j], z[free][:, list(chosen)], variance)
                    for variance in WEIGHT_VARIANCES
                ]
                score[j, chosen] = np.logaddexp.reduce(logs) - math.log(
                    math.comb(d - 1, size)
                )
    total, edges = [], []
    for order in itertools.permutations(range(d)):
        log_sum, probs = 0.0, np.zeros((d, d))
        for j in range(d):
            before = set(order[: order.index(j)])
            fits = [s for (v, s) in score if v == j and set(s) <= before]
            logs = np.array([score[j, s] for s in fits])
            log_sum += np.logaddexp.reduce(logs)
            share = np.exp(logs - np.logaddexp.reduce(logs))
            for chosen, weight in zip(fits, share, strict=True):
                probs[list(chosen), j] += weight
        total.append(log_sum)
        edges.append(probs)
    weight = np.exp(np.array(total) - np.logaddexp.reduce(total))
    return np.einsum("o,oij->ij", weight, np.array(edges))


def test_four_variables_equal_the_sum_over_all_orders():
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 3], weights[2, 3] = 0.4, 0.6, -0.3
    data = linear_data(weights, 30, settings=[(1, 2.0, 5)])
    found = sample_graphs(*data, chains=32, sweeps=220)
    np.testing.assert_allclose(found.edge_probs, summed_edges(*data), atol=0.02)
    np.testing.assert_allclose(found.graphs.mean(axis=0), found.edge_probs, atol=0.03)


@pytest.fixture(scope="module")
def fifty():
    """Fifty variables of which one causes another, and nothing else does."""
    weights = np.zeros((50, 50))
    weights[3, 7] = 1.5
    return sample_graphs(*linear_data(weights, 100, settings=[(3, 2.0, 20)]))


def test_absent_edges_of_fifty_variables_stay_unlikely(fifty):
    present = np.zeros((50, 50), bool)
    present[3, 7] = True
    assert fifty.edge_probs[3, 7] > 0.95
    assert fifty.edge_probs[~present].mean() < 0.01
    assert (fifty.edge_probs[~present] > 0.5).sum() <= 2


def test_edges_sets_and_ancestors_are_of_one_distribution(fifty):
    edges, ancestors = fifty.edge_probs, fifty.ancestor_probs
    assert (edges + edges.T <= 1 + 1e-9).all()
    assert (ancestors + ancestors.T <= 1 + 1e-6).all()
    share = fifty.graphs.mean(axis=0)
    assert (ancestors >= share - 1e-6).all()
    sets = fifty.parent_sets("X7")
    assert sum(sets.probabilities) == pytest.approx(1)
    for name, chance in sets.parent_probs().items():
        assert chance == pytest.approx(share[int(name[1:]), 7])


def test_six_causes_of_one_variable_are_all_found():
    weights = np.zeros((9, 9))
    weights[:6, 8] = [1.0, -1.2, 0.8, 1.1, -0.9, 1.0]
    found = sample_graphs(*linear_data(weights, 400, settings=[(0, 2.0, 40)]))
    assert (found.edge_probs[:6, 8] > 0.9).all()
    assert (found.edge_probs[6:8, 8] < 0.3).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shift_scale_and_order_of_columns_change_nothing(seed):
    weights = np.triu(np.random.default_rng(seed).normal(size=(6, 6)), 1)
    values, flags = linear_data(weights, 60, seed, settings=[(2, 1.0, 10)])
    plain = sample_graphs(values, flags).edge_probs
    scale = np.array([1e-3, 1, 1e4, 2, 3, 5])
    moved = sample_graphs(values * scale + 1e7 * scale, flags).edge_probs
    np.testing.assert_allclose(moved, plain, atol=1e-3)
    turned = np.random.default_rng(seed).permutation(6)
    back = sample_graphs(values[:, turned], flags[:, turned], sweeps=200).edge_probs
    np.testing.assert_allclose(back, plain[np.ix_(turned, turned)], atol=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_an_experiment_that_moves_the_target_raises_its_ancestor(seed):
    weights = np.zeros((5, 5))
    weights[0, 2], weights[2, 4] = 0.9, 0.9
    watched = linear_data(weights, 25, seed)
    more = linear_data(weights, 25, seed, settings=[(0, 4.0, 12)])
    before, after = (
        sample_graphs(*data).ancestor_probs[0, 4] for data in (watched, more)
    )
    assert after > max(before, 0.9)


def test_constraints_hold_in_every_graph():
    weights = np.zeros((5, 5))
    weights[0, 1] = 2.0
    data = linear_data(weights, 200)
    found = sample_graphs(
        *data, required=[("X3", "X2")], forbidden=[("X0", "X1")], tiers=[["X4"], ["X0"]]
    )
    assert found.graphs[:, 3, 2].all()
    assert not found.graphs[:, 0, 1].any()
    assert not found.graphs[:, 0, 4].any()
    assert found.edge_probs[1, 0] > 0.95
    with pytest.raises(ValueError, match="sweeps"):
        sample_graphs(*data, sweeps=5)
