import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.evaluation.calibration import (
    fit_set_temperature,
    fit_temperature,
    reliability,
)


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


@pytest.mark.parametrize("true", [0.4, 1.0, 2.5])
def test_temperature_is_recovered(true):
    random = np.random.default_rng(1)
    honest = random.normal(size=4000).astype(np.float32) * 2
    labels = jnp.asarray(random.uniform(size=4000) < 1 / (1 + np.exp(-honest)))
    fit = jax.jit(fit_temperature)
    found = fit(jnp.asarray(honest * true), labels, jnp.ones(4000, bool))
    assert float(found) == pytest.approx(true, rel=0.1)


def test_separable_labels_give_the_bound():
    logits = jnp.array([3.0, -3.0, 0.0])
    found = fit_temperature(
        logits, jnp.array([True, False, True]), jnp.array([True, True, False])
    )
    assert float(found) == pytest.approx(0.01, rel=1e-3)


def test_set_temperature_has_the_least_loss_of_all_tried():
    random = np.random.default_rng(2)
    logits = random.normal(size=(60, 4)).astype(np.float32) * 3
    logits[:, 3] = -np.inf
    truth = (logits + random.gumbel(size=(60, 4)) * 2).argmax(1)

    def loss(temperature):
        scaled = logits / temperature
        top = scaled.max(1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(1))
        return (total - scaled[np.arange(60), truth]).sum()

    found = float(fit_set_temperature(jnp.asarray(logits), jnp.asarray(truth)))
    assert all(loss(found) <= loss(found * f) for f in (0.9, 0.99, 1.01, 1.1))
