"""`state.replace`: what is put in is read back, what cannot be is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc_states import SIDE, assert_same, point, small_config, small_state, small_task
from jaxarc.actions import create_bbox_action
from jaxarc.changes import REPLACEABLE, changed_parts
from jaxarc.envs.functional import arc_step, batch_reset


@given(st.integers(1, SIDE), st.integers(1, SIDE), st.integers(0, 2**31))
def test_any_grid_is_read_back(height, width, seed):
    rng = np.random.default_rng(seed)
    grid = np.full((SIDE, SIDE), -1)
    grid[:height, :width] = rng.integers(0, 10, (height, width))
    state = small_state().replace(working_grid=grid)
    np.testing.assert_array_equal(state.working_grid, grid)
    np.testing.assert_array_equal(state.working_grid_mask, grid >= 0)
    assert state.get_actual_grid_shape() == (height, width)


def test_every_attribute_is_read_back():
    state = small_state()
    rng = np.random.default_rng(0)
    cells = rng.random((SIDE, SIDE)) < 0.5
    values = {
        "working_grid": np.where(state.working_grid_mask, 3, -1),
        "working_grid_mask": np.asarray(state.working_grid_mask),
        "clipboard": np.where(cells, 7, 0),
        "clipboard_mask": cells,
        "selected": cells,
        "demo_completion_status": np.array([True, False, True, False]),
        "test_completion_status": np.array([False, True]),
        "allowed_operations_mask": np.arange(42) % 2 == 0,
        "current_example_idx": 2,
        "episode_mode": 1,
        "step_count": 5,
        "episode_done": True,
        "similarity_score": 0.25,
        "action_history": rng.random((8, 6)).astype(np.float32),
        "action_history_length": 4,
        "action_history_write_pos": 3,
        "task_data": small_task(demos=2),
    }
    assert sorted(values) == sorted(REPLACEABLE)
    changed = state.replace(**values)
    task = values.pop("task_data")
    for name, value in values.items():
        found = getattr(changed, name)
        assert found.dtype == getattr(state, name).dtype
        np.testing.assert_array_equal(found, value, err_msg=name)
    assert_same(changed.task_data, task)


def test_nothing_else_changes():
    state = arc_step(small_state(), point(3, 1, 1), small_config())[0]
    assert_same(state.replace(), state)
    assert_same(state.replace(step_count=9).replace(step_count=1), state)


def test_the_clipboard_knows_its_corner():
    """Paste lands where the selection begins, so the corner must be right."""
    state = small_state()
    clipboard = np.zeros((SIDE, SIDE), int)
    clipboard[2:4, 3:5] = [[1, 2], [3, 4]]
    state = state.replace(clipboard=clipboard)
    pasted = arc_step(state, create_bbox_action(29, 0, 0, 1, 1), small_config())[0]
    np.testing.assert_array_equal(pasted.working_grid[:2, :2], [[1, 2], [3, 4]])


def test_a_wider_mask_uncovers_black_cells():
    mask = np.ones((SIDE, SIDE), bool)
    state = small_state().replace(working_grid_mask=mask)
    np.testing.assert_array_equal(state.working_grid, np.zeros((SIDE, SIDE)))


def test_it_compiles_and_works_on_batches():
    config = small_config()
    states, _ = batch_reset(
        jax.random.split(jax.random.key(0), 3), config, small_task()
    )
    grids = jnp.where(states.working_grid_mask, 4, -1)
    replace = eqx.filter_jit(lambda s, g: s.replace(working_grid=g, step_count=2))
    changed = replace(states, grids)
    np.testing.assert_array_equal(changed.working_grid, grids)
    assert changed.step_count.tolist() == [2, 2, 2]
    other = states.replace(task_data=small_task(demos=1))
    assert other.get_available_demo_count().tolist() == [1, 1, 1]


def test_unknown_and_derived_names_are_refused():
    state = small_state()
    with pytest.raises(TypeError, match=r"no attribute 'grid'.*working_grid"):
        state.replace(grid=1)
    with pytest.raises(TypeError, match=r"target_grid cannot be replaced.*task_data"):
        state.replace(target_grid=state.target_grid)
    with pytest.raises(TypeError, match="unknown"):
        changed_parts(state, {"unknown": 1})


def test_wrong_values_are_refused():
    state = small_state()
    hole = np.asarray(state.working_grid_mask).copy()
    hole[1, 1] = False
    with pytest.raises(ValueError, match="filled rectangle"):
        state.replace(working_grid_mask=hole)
    with pytest.raises(ValueError, match="filled rectangle"):
        state.replace(working_grid=np.full((SIDE, SIDE), -1))
    with pytest.raises(ValueError, match="colors are 0 to 9"):
        state.replace(working_grid=np.full((SIDE, SIDE), 12))
    with pytest.raises(ValueError, match=r"selected has shape \(2,\)"):
        state.replace(selected=np.ones(2, bool))
    with pytest.raises(ValueError, match="same DatasetConfig"):
        state.replace(task_data=small_task(slots=(5, 2)))
