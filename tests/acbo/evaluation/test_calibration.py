import jax.numpy as jnp
import numpy as np
import pytest

from acbo.evaluation.scoring import reliability


def drawn(seed=0, count=400):
    random = np.random.default_rng(seed)
    probs = random.uniform(size=(count // 4, 4)).astype(np.float32)
    labels = random.uniform(size=probs.shape) < probs
    mask = random.uniform(size=probs.shape) < 0.8
    return probs, labels, mask


def test_curve_and_error_match_a_loop_over_bins():
    probs, labels, mask = drawn()
    found = reliability(jnp.asarray(probs), jnp.asarray(labels), jnp.asarray(mask), 5)
    error = 0.0
    for b in range(5):
        inside = mask & (np.floor(probs * 5) == b)
        assert int(found.count[b]) == inside.sum()
        assert found.confidence[b] == pytest.approx(probs[inside].mean(), rel=1e-5)
        assert found.accuracy[b] == pytest.approx(labels[inside].mean(), rel=1e-5)
        gap = abs(probs[inside].mean() - labels[inside].mean())
        error += inside.sum() / mask.sum() * gap
    assert float(found.error) == pytest.approx(error, rel=1e-4)


def test_certainty_falls_into_the_last_bin_and_empty_bins_are_zero():
    sure = reliability(jnp.ones(3), jnp.ones(3, bool), jnp.ones(3, bool))
    assert sure.count.tolist() == [0.0] * 9 + [3.0]
    assert float(sure.error) == 0.0
    assert sure.accuracy[0] == 0.0
