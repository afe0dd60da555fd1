from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.environment import Action
from acbo.evaluation import metrics
from acbo.evaluation.evaluate import (
    Protocol,
    Task,
    find_optimum,
    score_episode,
    score_parents,
)
from acbo.evaluation.metrics import expected_calibration_error, reliability
from causal_linear import draw_history, edges, linear_scm

SCM = linear_scm(edges(3, e02=2.0, e12=-1.0), 2, noise=0.1)
HISTORY = draw_history(SCM, observational=3, interventional=2, capacity=7)


class Fixed:
    """Always the same beliefs and the same two actions in turn."""

    def __init__(self, sets=None):
        self.sets = sets

    def predict(self, values, intervened, row_mask, var_mask, target):
        assert values.shape == (5, 3)
        return jnp.array([0.9, 0.3, 0.99]), self.sets

    def propose(self, key, history, spec, truth):
        first = history.count == 5
        return Action(jnp.where(first, 1, 0), jnp.where(first, 3.0, -1.5))


TASK = Task(SCM, HISTORY, jax.random.key(0))


@jax.jit
def score(sets=None):
    return score_parents(TASK, Fixed(sets), Protocol(), 5)


def test_parents_are_judged_without_the_target():
    found = score()
    single = found.single
    assert float(single["recall"]) == 0.5
    assert float(single["precision"]) == 1.0
    assert float(single["shd"]) == 1.0
    expected = -(np.log(0.9) + np.log(0.3)) / 2
    assert float(single["log_loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(found.reliability[0].sum()) == 2
    assert "set_log_loss" not in single


def test_beliefs_over_sets_are_judged_by_the_true_set():
    members = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], bool)
    right = score((np.log(np.float32([0.1, 0.2, 0.7])), members)).single
    assert float(right["exact_set"]) == 1.0
    assert float(right["set_log_loss"]) == pytest.approx(-np.log(0.7), rel=1e-5)
    never = score((np.float32([-0.7, -0.7, -np.inf]), members)).single
    assert float(never["exact_set"]) == 0.0
    assert np.isfinite(float(never["set_log_loss"]))


def test_regret_is_that_of_the_true_means():
    """do(X1 = 3) gives -3 and do(X0 = -1.5) gives -3; the ends give -4 and 6."""
    regret, total = [9.0, 9.0], [9.0, 18.0]
    protocol = Protocol(direction="MAXIMIZE", grid=3, draws=4)

    @jax.jit
    def play(task):
        best = find_optimum(task, protocol)
        return best, score_episode((task, best), Fixed(), protocol, 2)

    best, scores = play(Task(SCM, HISTORY, jax.random.key(3)))
    assert float(best) == pytest.approx(6.0, abs=1e-5)
    np.testing.assert_allclose(scores.curves["simple_regret"], regret, atol=1e-4)
    np.testing.assert_allclose(scores.curves["cumulative_regret"], total, atol=1e-4)
    assert float(scores.single["parent_rate"]) == 1.0
    assert float(scores.single["simple_regret"]) == pytest.approx(regret[-1], abs=1e-4)


def case(seed, d=6):
    """Coarse scores, so that ties are common."""
    random = np.random.default_rng(seed)
    probs = (random.integers(0, 6, d) / 5).astype(np.float32)
    return probs, random.uniform(size=d) < 0.4, random.uniform(size=d) < 0.8


CASES = [case(seed) for seed in range(40)]
STACKED = tuple(jnp.asarray(np.stack(part)) for part in zip(*CASES, strict=True))


def by_counts(score):
    """A measure by the numbers of right, of predicted and of true parents."""

    def naive(probs, parents, mask):
        called = set(np.flatnonzero(mask & (probs > 0.5)))
        true = set(np.flatnonzero(mask & parents))
        return score(len(called & true), len(called), len(true))

    return naive


def naive_auprc(probs, parents, mask):
    """Sum over thresholds, highest first, of (rise of recall) * precision."""
    probs, parents = probs[mask], parents[mask]
    if not parents.any():
        return np.nan
    area, before = 0.0, 0.0
    for threshold in sorted(set(probs.tolist()), reverse=True):
        called = probs >= threshold
        recall = (called & parents).sum() / parents.sum()
        area += (recall - before) * (called & parents).sum() / called.sum()
        before = recall
    return area


def naive_auroc(probs, parents, mask):
    """Area below the curve of true against false positives, by trapezia."""
    probs, parents = probs[mask], parents[mask]
    if not parents.any() or parents.all():
        return np.nan
    xs, ys = [0.0], [0.0]
    for threshold in sorted(set(probs.tolist()), reverse=True):
        called = probs >= threshold
        xs.append((called & ~parents).sum() / (~parents).sum())
        ys.append((called & parents).sum() / parents.sum())
    pairs = range(len(xs) - 1)
    return sum((xs[i + 1] - xs[i]) * (ys[i + 1] + ys[i]) / 2 for i in pairs)


def naive_log_loss(probs, parents, mask):
    losses = [
        -np.log(np.clip(p if t else 1 - p, 1e-7, 1))
        for p, t, m in zip(probs.astype(np.float64), parents, mask, strict=True)
        if m
    ]
    return np.mean(losses) if losses else 0.0


def naive_brier(probs, parents, mask):
    return np.mean((probs[mask] - parents[mask]) ** 2) if mask.any() else 0.0


NAIVE = {
    "f1": by_counts(lambda hits, called, true: 2 * hits / max(called + true, 1)),
    "precision": by_counts(lambda hits, called, true: hits / max(called, 1)),
    "recall": by_counts(lambda hits, called, true: hits / max(true, 1)),
    "shd": by_counts(lambda hits, called, true: called + true - 2 * hits),
    "exact_set": by_counts(lambda hits, called, true: called == true == hits),
    "auprc": naive_auprc,
    "auroc": naive_auroc,
    "log_loss": naive_log_loss,
    "brier": naive_brier,
}


@pytest.fixture(scope="module")
def scores():
    """Every measure, mapped over cases and of all cases at once, by one program."""
    every = metrics.PARENT_SCORES
    run = lambda *given: {n: (jax.vmap(f)(*given), f(*given)) for n, f in every.items()}
    return jax.device_get(jax.jit(run)(*STACKED))


@pytest.mark.parametrize("name", metrics.PARENT_SCORES)
def test_metric_matches_its_definition(name, scores):
    mapped, at_once = scores[name]
    expected = [NAIVE[name](*each) for each in CASES]
    np.testing.assert_allclose(mapped, expected, rtol=2e-3, atol=1e-5)
    np.testing.assert_array_equal(mapped, at_once)


def test_a_reversed_edge_counts_twice_and_padding_not_at_all():
    true = jnp.zeros((3, 3), bool).at[0, 1].set(True)
    turned = true.T.at[0, 2].set(True)
    mask = jnp.array([True, True, False])
    assert metrics.shd(turned, true, mask) == 2
    assert metrics.shd(turned, true, jnp.ones(3, bool)) == 3


def test_parent_selection_rate():
    parents = jnp.array([[True, False, True], [False, False, True]])
    chosen = jnp.array([[0, 1, 2, 2], [0, 1, 1, 2]])
    single = chosen[..., None] == jnp.arange(3)[None, None]
    assert metrics.parent_selection_rate(single, parents).tolist() == [0.75, 0.25]
    pairs = single | jnp.array([False, False, True])[None, None]
    found = metrics.parent_selection_rate(pairs, parents)
    np.testing.assert_allclose(found, [5 / 6, 4 / 7], rtol=1e-6)


def drawn(seed=0, count=400):
    random = np.random.default_rng(seed)
    probs = random.uniform(size=(count // 4, 4)).astype(np.float32)
    labels = random.uniform(size=probs.shape) < probs
    mask = random.uniform(size=probs.shape) < 0.8
    return probs, labels, mask


def test_curve_and_error_match_a_loop_over_bins():
    probs, labels, mask = drawn()
    both = jax.jit(
        lambda p, y, m: (
            reliability(p, y, m, 5),
            expected_calibration_error(p, y, m, 5),
        )
    )
    (count, predicted, happened), found = both(probs, labels, mask)
    error = 0.0
    for b in range(5):
        inside = mask & (np.floor(probs * 5) == b)
        assert int(count[b]) == inside.sum()
        assert predicted[b] == pytest.approx(probs[inside].sum(), rel=1e-5)
        assert int(happened[b]) == labels[inside].sum()
        gap = abs(probs[inside].mean() - labels[inside].mean())
        error += inside.sum() / mask.sum() * gap
    assert float(found) == pytest.approx(error, 1e-4)


def test_certainty_falls_into_the_last_bin():
    sure = jnp.ones(3), jnp.ones(3, bool), jnp.ones(3, bool)
    assert reliability(*sure)[0].tolist() == [0.0] * 9 + [3.0]
    assert float(expected_calibration_error(*sure)) == 0.0


def test_metrics_read_lists_and_plain_numbers_and_need_no_mask():
    given: Any = metrics  # lists are read, though the types name arrays
    probs, parents = [0.9, 0.1, 0.8], [1, 0, 0]
    assert float(given.parent_f1(probs, parents)) == pytest.approx(2 / 3)
    assert float(given.parent_f1(probs, parents, [1, 1, 0])) == 1.0
    assert float(given.auprc(probs, parents)) == 1.0
    assert float(given.auroc(probs, parents)) == 1.0
    error = given.expected_calibration_error(probs, parents)
    assert float(error) == pytest.approx((0.1 + 0.1 + 0.8) / 3)
    assert float(given.shd([[0, 1], [0, 0]], [[0, 0], [1, 0]])) == 2.0
    regret = given.simple_regret([3.0, 1.0, 2.0], 0.5)
    np.testing.assert_allclose(regret, [2.5, 0.5, 0.5])
    raised = given.simple_regret([-3.0, -1.0, -2.0], -0.5, "maximize")
    np.testing.assert_allclose(raised, [2.5, 0.5, 0.5])
    single = [f(3.0, 0.5) for f in (given.simple_regret, given.cumulative_regret)]
    assert [float(each) for each in single] == [2.5, 2.5]
    total = given.cumulative_regret([3, 1], 4.0, "MAXIMIZE")
    np.testing.assert_allclose(total, [1.0, 4.0])
