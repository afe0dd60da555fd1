"""Oracle: the reference values of the fact sheet, NumPy in float64, closed forms."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.surrogate import losses

LOGITS = jnp.asarray([1.0, 2.0, 0.5, 0.1])
PROBS = jnp.asarray([0.1, 0.6, 0.2, 0.1])
SETS = [frozenset(), frozenset("X"), frozenset("Z"), frozenset("XZ")]
EXPERT = SimpleNamespace(
    parent_set_probs={s: float(p) for s, p in zip(SETS, PROBS, strict=True)}
)


def test_reference_values():
    close = functools.partial(np.testing.assert_allclose, atol=1e-6)
    close(losses.kl_divergence_loss(LOGITS, EXPERT, SETS), 0.0553174)
    close(losses.kl_divergence_loss_jax(LOGITS, PROBS, SETS), 0.0553174)
    close(losses.kl_divergence_loss_jax(LOGITS, PROBS, SETS, 2.0), 0.1085507)
    close(losses.kl_divergence_loss(LOGITS, EXPERT, SETS, temperature=2.0), 0.1085507)
    close(losses.distribution_entropy(PROBS), 1.0889000)
    close(losses.uncertainty_weighted_loss(LOGITS, EXPERT, SETS), 0.0186191)
    close(losses.uncertainty_weighted_loss_jax(LOGITS, PROBS, SETS), 0.0186191)
    gradient = jax.grad(losses.kl_divergence_loss_jax)(LOGITS, PROBS, SETS)
    close(gradient, [0.111355, -0.025478, -0.071807, -0.014070])


@functools.partial(jax.jit, static_argnums=0)
def graded(loss, logits, probs, mask=None):
    return jax.value_and_grad(loss)(logits, probs, set_mask=mask)


@pytest.mark.parametrize("filler", [0.0, -1e9, -np.inf, 40.0])
def test_padding_changes_nothing(filler):
    logits = np.append(LOGITS, np.full(2, filler, np.float32))
    probs = np.append(PROBS, np.zeros(2, np.float32))
    mask = np.arange(6) < 4
    for loss in (losses.kl_divergence_loss_jax, losses.uncertainty_weighted_loss_jax):
        value, gradient = jax.device_get(graded(loss, logits, probs, mask))
        alone, expected = graded(loss, LOGITS, PROBS)
        np.testing.assert_allclose(value, alone, rtol=1e-6)
        np.testing.assert_allclose(gradient[:4], expected, 1e-5)
        np.testing.assert_array_equal(gradient[4:], 0.0)


def test_extreme_and_half_precision_logits():
    logits = jnp.asarray([60.0, -60.0, 0.0, 0.0])
    value, gradient = jax.value_and_grad(losses.kl_divergence_loss_jax)(logits, PROBS)
    np.testing.assert_allclose(value, 88.9111, rtol=1e-6)
    np.testing.assert_allclose(gradient, [0.9, -0.6, -0.2, -0.1], rtol=1e-6)
    found = losses.kl_divergence_loss_jax(LOGITS.astype(jnp.bfloat16), PROBS)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, 0.0553174, atol=1e-3)


def test_experts_are_aligned_and_renormalized():
    half = {frozenset("X"): 0.3, frozenset("XZ"): 0.1, frozenset("W"): 0.6}
    np.testing.assert_allclose(losses.expert_vector(half, SETS), [0, 0.75, 0, 0.25])
    with pytest.raises(ValueError, match="none of the 1 candidate sets"):
        losses.expert_vector(half, [frozenset("Q")])


def test_array_forms():
    assert losses.array_form(losses.kl_divergence_loss) is losses.kl_divergence_loss_jax
    own = lambda logits, probs, sets: jnp.zeros(())
    assert losses.array_form(own) is own
    warm = losses.array_form(
        functools.partial(losses.kl_divergence_loss, temperature=2.0)
    )
    np.testing.assert_allclose(warm(LOGITS, PROBS, SETS), 0.1085507, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.0, -1, float("nan")])
def test_a_temperature_is_above_zero(temperature):
    with pytest.raises(ValueError, match="give a number above 0"):
        losses.kl_divergence_loss(LOGITS, EXPERT, SETS, temperature)
