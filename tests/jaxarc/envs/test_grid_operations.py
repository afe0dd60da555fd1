"""One operation outside a step does to the grid what the step does."""

import jax
import numpy as np
import pytest

from arc_states import SIDE, point, small_config, small_state
from jaxarc.envs.functional import arc_step
from jaxarc.envs.grid_operations import execute_grid_operation


@pytest.mark.parametrize("operation", range(35))
def test_the_grid_is_that_of_a_step(operation):
    config = small_config()
    state = small_state()
    rng = np.random.default_rng(operation)
    grid = np.where(state.working_grid_mask, rng.integers(0, 10, (SIDE, SIDE)), -1)
    state = state.replace(working_grid=grid, clipboard=np.abs(grid))
    stepped = arc_step(state, point(operation, 1, 2), config)[0]
    selected = np.zeros((SIDE, SIDE), bool)
    selected[1, 2] = True
    alone = jax.jit(execute_grid_operation)(state.replace(selected=selected), operation)
    for name in ("working_grid", "clipboard", "clipboard_mask", "similarity_score"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(stepped, name))
    assert bool(alone.episode_done) == (operation == 34)
    assert int(alone.step_count) == 0
    assert int(alone.action_history_length) == 0


def test_the_similarity_stays_hidden_in_test_mode():
    state = small_state(mode=1).replace(selected=np.ones((SIDE, SIDE), bool))
    assert float(execute_grid_operation(state, 0).similarity_score) == 0.0
