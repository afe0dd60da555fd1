"""Oracle: the definitions, summed naively in NumPy."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jaxrig.learn.advantages import advantages, clipped_gain, standardize


@given(arrays(np.float32, (3, 5), elements=st.floats(-100, 100, width=32)))
def test_standardized_values_equal_the_definition_in_float64(values):
    exact = values.astype(np.float64)
    for axis in (None, -1):
        spread = exact.std(axis=axis, keepdims=True)
        if (spread > 1e-2).all():
            centered = exact - exact.mean(axis=axis, keepdims=True)
            found = standardize(jnp.asarray(values), axis=axis)
            np.testing.assert_allclose(found, centered / spread, atol=2e-3)
            unscaled = standardize(jnp.asarray(values), axis=axis, scale=False)
            np.testing.assert_allclose(unscaled, centered, atol=1e-3)


@given(st.floats(-1e6, 1e6, width=32), st.sampled_from([2, 3, 64]))
def test_equal_values_give_exactly_zero(value, size):
    found = standardize(jnp.full((2, size), value, jnp.float32))
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
    rng = np.random.default_rng(0)
    for _ in range(20):
        reward, value, next_value = rng.normal(size=(3, 11, 4)).astype(np.float32)
        done = rng.random((11, 4)) < 0.3
        found = advantages(
            jnp.asarray(reward),
            jnp.asarray(value),
            jnp.asarray(next_value),
            jnp.asarray(done),
            discount=0.9,
            trace_decay=0.8,
        )
        expected = naive_advantages(reward, value, next_value, done, 0.9, 0.8)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_gains_end_where_the_ratio_is_clipped():
    ratio = jnp.asarray([0.5, 1.0, 1.5, 0.5, 1.5])
    advantage = jnp.asarray([1.0, 1.0, 1.0, -1.0, -1.0])
    found = clipped_gain(ratio, advantage, 0.2)
    np.testing.assert_allclose(found, [0.5, 1.0, 1.2, -0.8, -1.5], rtol=1e-6)
