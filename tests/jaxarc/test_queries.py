"""Questions to a state, against plain counting."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc_states import SIDE, small_config, small_state, small_task
from jaxarc.envs.functional import batch_reset
from jaxarc.queries import StateQueries

DEMOS, TESTS = 3, 2


def first(flags):
    return next((i for i, flag in enumerate(flags) if flag), -1)


@eqx.filter_jit
def questioned(state, **held):
    """What a state that holds this answers, of questions that can be compiled."""
    state = state.replace(**held)
    return {
        "demos": state.get_available_demo_count(),
        "tests": state.get_available_test_count(),
        "solved_demos": state.get_completed_demo_count(),
        "solved_tests": state.get_completed_test_count(),
        "completed": state.is_current_pair_completed(),
        "training": state.is_training_mode(),
        "testing": state.is_test_mode(),
        "next_demo": state.get_next_available_demo_index(),
        "previous_demo": state.get_prev_available_demo_index(),
        "next_test": state.get_next_available_test_index(),
        "previous_test": state.get_prev_available_test_index(),
        "first_demo": state.get_first_unsolved_demo_index(),
        "first_test": state.get_first_unsolved_test_index(),
    }


@given(
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=2, max_size=2),
    st.integers(0, 1),
    st.integers(0, 1),
)
def test_counts_and_neighbors(demos, tests, mode, pair):
    state = small_state()
    assert isinstance(state, StateQueries)
    answers = questioned(
        state,
        demo_completion_status=np.array(demos),
        test_completion_status=np.array(tests),
        episode_mode=np.int32(mode),
        current_example_idx=np.int32(pair),
    )
    assert jax.device_get(answers) == {
        "demos": DEMOS,
        "tests": TESTS,
        "solved_demos": sum(demos[:DEMOS]),
        "solved_tests": sum(tests),
        "completed": (demos, tests)[mode][pair],
        "training": mode == 0,
        "testing": mode == 1,
        "next_demo": (pair + 1) % DEMOS,
        "previous_demo": (pair - 1) % DEMOS,
        "next_test": (pair + 1) % TESTS,
        "previous_test": (pair - 1) % TESTS,
        "first_demo": first([not done for done in demos[:DEMOS]]),
        "first_test": first([not done for done in tests]),
    }


def test_a_task_without_demonstrations_has_no_neighbors():
    state = small_state(mode=1, task=small_task(demos=0))
    assert int(state.get_next_available_demo_index()) == -1
    assert int(state.get_prev_available_demo_index()) == -1
    assert int(state.get_first_unsolved_demo_index()) == -1


def test_grids_without_their_padding():
    state = small_state()
    assert state.get_actual_grid_shape() == (4, 5)
    np.testing.assert_array_equal(state.get_actual_working_grid(), np.zeros((4, 5)))
    target = np.zeros((4, 5))
    target[0, 0] = 1
    np.testing.assert_array_equal(state.get_actual_target_grid(), target)
    assert small_state(mode=1).get_actual_target_grid().shape == (0, 0)


def test_allowed_operations():
    state = small_state().replace(allowed_operations_mask=np.arange(42) < 10)
    allowed = [bool(state.is_operation_allowed(i)) for i in (-1, 0, 9, 10, 41, 42)]
    assert allowed == [False, True, True, False, False, False]


def test_batches_answer_row_by_row():
    keys = jax.random.split(jax.random.key(0), 3)
    states, _ = batch_reset(keys, small_config(), small_task(), 0, np.arange(3))
    ask = eqx.filter_jit(
        lambda s: (s.get_next_available_demo_index(), s.is_current_pair_completed())
    )
    following, completed = ask(states)
    assert following.tolist() == [1, 2, 0]
    assert completed.tolist() == [False] * 3
    assert states.is_operation_allowed(3).tolist() == [True] * 3
    asked = jnp.array([3, 41, 42])
    assert states.is_operation_allowed(asked).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="take one"):
        states.get_actual_grid_shape()
    assert states.working_grid.shape == (3, SIDE, SIDE)
