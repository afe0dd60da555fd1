"""Plain data out, errors for what is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.actions import create_mask_action, create_point_action
from jaxarc.utils.visualization.serialize import (
    JAXCallbackError,
    serialize_action,
    serialize_arc_state,
    serialize_jax_array,
)


def test_arrays_become_numpy_of_the_same_type():
    found = serialize_jax_array(jnp.arange(3, dtype=jnp.int8))
    assert type(found) is np.ndarray
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, [0, 1, 2])
    key = jax.random.key(3)
    np.testing.assert_array_equal(serialize_jax_array(key), jax.random.key_data(key))


def test_states_become_arrays_and_numbers(state):
    found = serialize_arc_state(state)
    assert (found["step_count"], found["similarity_score"]) == (2, 0.25)
    assert found["episode_done"] is False
    assert type(found["working_grid"]) is np.ndarray
    np.testing.assert_array_equal(found["working_grid"], state.working_grid)
    assert set(found) == set(vars(state))


def test_actions_become_dictionaries():
    assert serialize_action(create_point_action(3, 1, 2)) == {
        "operation": 3,
        "row": 1,
        "col": 2,
    }
    found = serialize_action(create_mask_action(1, np.eye(2, dtype=bool)))
    np.testing.assert_array_equal(found["selection"], np.eye(2, dtype=bool))
    assert serialize_action({"operation": jnp.int32(5)}) == {"operation": 5}


def test_what_is_missing_is_named(state):
    del state.clipboard
    with pytest.raises(JAXCallbackError, match="has no clipboard"):
        serialize_arc_state(state)


@pytest.mark.parametrize("action", [3, "fill", create_point_action])
def test_what_is_no_action_is_refused(action):
    with pytest.raises(JAXCallbackError, match="pass a PointAction"):
        serialize_action(action)


def test_what_has_no_values_is_refused():
    with pytest.raises(JAXCallbackError, match="jax_debug_callback"):
        jax.jit(lambda x: serialize_jax_array(x).sum())(jnp.ones(2))
    with pytest.raises(JAXCallbackError, match="no array"):
        serialize_jax_array(object())
