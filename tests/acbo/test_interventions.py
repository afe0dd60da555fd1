import jax.numpy as jnp
import numpy as np

from acbo.interventions import (
    no_intervention,
    set_variable,
    set_variables,
    shift_variables,
)


def assert_parts(found, mask, values, shift):
    np.testing.assert_array_equal(found.mask, mask)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.shift, shift)


def test_nothing_is_changed():
    assert_parts(no_intervention(3), [False] * 3, [0] * 3, [0] * 3)


def test_one_variable_is_set():
    done = set_variable(jnp.asarray(1), jnp.asarray(-2.5), 3)
    assert_parts(done, [False, True, False], [0, -2.5, 0], [0] * 3)


def test_values_outside_the_mask_are_forgotten():
    mask = np.array([[True, False], [False, True]])
    done = set_variables(jnp.asarray(mask), jnp.asarray([[1.0, jnp.nan], [2.0, 3.0]]))
    assert_parts(done, mask, [[1, 0], [0, 3]], np.zeros((2, 2)))


def test_soft_interventions_set_nothing():
    shift = np.array([[0.5, 0.0], [0.0, -1.0]], np.float32)
    assert_parts(shift_variables(jnp.asarray(shift)), shift > 9, 0 * shift, shift)
