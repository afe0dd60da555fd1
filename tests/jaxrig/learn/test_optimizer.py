"""Oracle: Adam's first step, and the definitions summed naively in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jaxrig.learn.optimizer import (
    advantages,
    descend,
    improve,
    make_optimizer,
    standardize,
    start_optimizer,
)


class Model(eqx.Module):
    weight: jax.Array
    steps: jax.Array
    activation: object = jnp.tanh


MODEL = Model(jnp.asarray([3.0, -4.0], jnp.float32), jnp.asarray(7, jnp.int32))
OPTIMIZER = make_optimizer(0.1, max_grad_norm=1.0)
improved = eqx.filter_jit(improve)
standardized = jax.jit(standardize, static_argnames=("axis", "scale"))


def loss(model):
    return (model.weight**2).sum(), "extra"


def test_first_step_norm_and_what_is_left_alone():
    memory = start_optimizer(OPTIMIZER, MODEL)
    after, _, extras, norm = improved(OPTIMIZER, loss, MODEL, memory)
    np.testing.assert_allclose(after.weight, [2.9, -3.9], rtol=1e-5)
    np.testing.assert_allclose(norm, 10.0, rtol=1e-6)  # before clipping: |(6, -8)|
    assert extras == "extra"
    assert int(after.steps) == 7
    assert after.activation is jnp.tanh


def test_descending_over_batches_equals_one_improvement_after_another():
    memory = start_optimizer(OPTIMIZER, MODEL)
    of_batch = lambda model, shift: (((model.weight - shift) ** 2).sum(), shift)
    shifts = np.asarray([0, 1, 2], np.float32)
    found, _, extras, norms = eqx.filter_jit(descend)(
        OPTIMIZER, of_batch, MODEL, memory, shifts, 3
    )
    step = eqx.filter_jit(
        lambda model, memory, shift: improve(
            OPTIMIZER, lambda m: of_batch(m, shift), model, memory
        )
    )
    expected, loop_norms = MODEL, []
    for shift in shifts:
        expected, memory, _, norm = step(expected, memory, shift)
        loop_norms.append(norm)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-6)
    np.testing.assert_allclose(norms, loop_norms, rtol=1e-6)
    np.testing.assert_array_equal(extras, shifts)
    assert found.activation is jnp.tanh


def test_coarse_parameters_are_refused():
    model = Model(jnp.ones(2, jnp.bfloat16), MODEL.steps)
    with pytest.raises(ValueError, match=r"policy\.weight is bfloat16.*float32"):
        start_optimizer(OPTIMIZER, model)


@given(arrays(np.float32, (3, 5), elements=st.floats(-100, 100, width=32)))
def test_standardized_values_equal_the_definition_in_float64(values):
    exact = values.astype(np.float64)
    for axis in (None, -1):
        spread = exact.std(axis=axis, keepdims=True)
        if (spread > 1e-2).all():
            centered = exact - exact.mean(axis=axis, keepdims=True)
            found = standardized(values, axis=axis)
            np.testing.assert_allclose(found, centered / spread, atol=2e-3)
            unscaled = standardized(values, axis=axis, scale=False)
            np.testing.assert_allclose(unscaled, centered, atol=1e-3)


@given(st.floats(-1e6, 1e6, width=32), st.sampled_from([2, 3, 64]))
def test_equal_values_give_exactly_zero(value, size):
    found = standardized(np.full((2, size), value, np.float32))
    np.testing.assert_array_equal(found, 0.0)


def naive_advantages(reward, value, next_value, done, discount, decay):
    """The definition: a sum over the rest of the episode, no recursion."""
    result = np.zeros_like(reward)
    steps, batch = reward.shape
    for t in range(steps):
        for b in range(batch):
            factor = 1.0
            for k in range(t, steps):
                delta = reward[k, b] + discount * next_value[k, b] - value[k, b]
                result[t, b] += factor * delta
                factor *= discount * decay
                if done[k, b]:
                    break
    return result


def test_advantages_equal_the_definition():
    estimate = jax.jit(lambda *given: advantages(*given, discount=0.9, trace_decay=0.8))
    rng = np.random.default_rng(0)
    for _ in range(20):
        reward, value, next_value = rng.normal(size=(3, 11, 4)).astype(np.float32)
        done = rng.random((11, 4)) < 0.3
        found = estimate(reward, value, next_value, done)
        expected = naive_advantages(reward, value, next_value, done, 0.9, 0.8)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
