import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.evaluation import scoring


def case(seed, d=6):
    """Coarse scores, so that ties are common."""
    random = np.random.default_rng(seed)
    probs = (random.integers(0, 6, d) / 5).astype(np.float32)
    return probs, random.uniform(size=d) < 0.4, random.uniform(size=d) < 0.8


CASES = [case(seed) for seed in range(40)]
STACKED = tuple(jnp.asarray(np.stack(part)) for part in zip(*CASES, strict=True))


def counts(probs, parents, mask):
    called = [i for i in range(len(probs)) if mask[i] and probs[i] > 0.5]
    true = [i for i in range(len(probs)) if mask[i] and parents[i]]
    return len(set(called) & set(true)), len(called), len(true)


def naive_f1(probs, parents, mask):
    hits, called, true = counts(probs, parents, mask)
    return 2 * hits / (called + true) if called + true else 0.0


def naive_precision(probs, parents, mask):
    hits, called, _ = counts(probs, parents, mask)
    return hits / called if called else 0.0


def naive_recall(probs, parents, mask):
    hits, _, true = counts(probs, parents, mask)
    return hits / true if true else 0.0


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


def naive_shd(probs, parents, mask):
    return int(((probs > 0.5) != parents)[mask].sum())


def naive_log_loss(probs, parents, mask):
    losses = [
        -np.log(np.clip(p if t else 1 - p, 1e-7, 1))
        for p, t, m in zip(probs.astype(np.float64), parents, mask, strict=True)
        if m
    ]
    return np.mean(losses) if losses else 0.0


def naive_brier(probs, parents, mask):
    return np.mean((probs[mask] - parents[mask]) ** 2) if mask.any() else 0.0


PAIRS = [
    ("parent_f1", naive_f1),
    ("precision", naive_precision),
    ("recall", naive_recall),
    ("auprc", naive_auprc),
    ("auroc", naive_auroc),
    ("parent_shd", naive_shd),
    ("log_loss", naive_log_loss),
    ("brier", naive_brier),
    ("exact_set", lambda *given: float(naive_shd(*given) == 0)),
]


@pytest.mark.parametrize(("name", "naive"), PAIRS, ids=[name for name, _ in PAIRS])
def test_metric_matches_its_definition(name, naive):
    found = jax.jit(jax.vmap(getattr(scoring, name)))(*STACKED)
    expected = [naive(*each) for each in CASES]
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)
    np.testing.assert_array_equal(found, getattr(scoring, name)(*STACKED))


def test_a_reversed_edge_counts_twice_and_padding_not_at_all():
    true = jnp.zeros((3, 3), bool).at[0, 1].set(True)
    turned = true.T.at[0, 2].set(True)
    mask = jnp.array([True, True, False])
    assert scoring.shd(turned, true, mask) == 2
    assert scoring.shd(turned, true, jnp.ones(3, bool)) == 3


@pytest.mark.parametrize(("direction", "sign"), [("MINIMIZE", 1), ("MAXIMIZE", -1)])
def test_regret_counts_from_the_best_so_far(direction, sign):
    outcomes, optimum = jnp.array([[3.0, 1.0, 2.0]]) * sign, jnp.array([0.5]) * sign
    best = scoring.best_so_far(outcomes, direction)
    assert (sign * best).tolist() == [[3.0, 1.0, 1.0]]
    regret = scoring.simple_regret(outcomes, optimum, direction)
    assert regret.tolist() == [[2.5, 0.5, 0.5]]
    total = scoring.cumulative_regret(outcomes, optimum, direction)
    assert total.tolist() == [[2.5, 3.0, 4.5]]


def test_parent_selection_rate():
    parents = jnp.array([[True, False, True], [False, False, True]])
    chosen = jnp.array([[0, 1, 2, 2], [0, 1, 1, 2]])
    single = chosen[..., None] == jnp.arange(3)[None, None]
    assert scoring.parent_selection_rate(single, parents).tolist() == [0.75, 0.25]
    pairs = single | jnp.array([False, False, True])[None, None]
    found = scoring.parent_selection_rate(pairs, parents)
    np.testing.assert_allclose(found, [5 / 6, 4 / 7], rtol=1e-6)
