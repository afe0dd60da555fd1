"""What a state holds and shows, alone and in a batch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import FIELDS, make_config, random_puzzle, shown
from arc_play import row as row_of
from jaxarc.actions import create_point_action
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset
from jaxarc.state import ArcEnvState, join_state, shared_tasks
from jaxarc.tasks.samples import create_mock_task, stack_task_list

SHAPE = (6, 4)
CONFIG = make_config(SHAPE, episode={"demo_selection_strategy": "sequential"})


def bytes_of(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(2)
    return [random_puzzle(rng, SHAPE).as_task() for _ in range(3)]


@pytest.fixture(scope="module")
def state(tasks):
    return arc_reset(jax.random.key(0), CONFIG, tasks[0])[0]


def test_a_fresh_state_shows_its_pair(state, tasks):
    pair = jax.jit(lambda task: task.get_train_pair(0))(tasks[0])
    np.testing.assert_array_equal(state.working_grid, pair.input_grid.data)
    np.testing.assert_array_equal(state.working_grid_mask, pair.input_grid.mask)
    np.testing.assert_array_equal(state.target_grid, pair.output_grid.data)
    np.testing.assert_array_equal(state.target_grid_mask, pair.output_grid.mask)
    assert not state.selected.any()
    assert not state.clipboard.any()
    assert not state.clipboard_mask.any()
    assert state.allowed_operations_mask.all()
    assert state.available_demo_pairs.tolist() == [True, True, True, False]
    assert state.available_test_pairs.tolist() == [True, True, True]
    assert not state.demo_completion_status.any()
    assert state.action_history.shape == (100, 6)
    assert not state.action_history.any()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("working_grid", jnp.int32),
        ("target_grid", jnp.int32),
        ("clipboard", jnp.int32),
        ("selected", bool),
        ("clipboard_mask", bool),
        ("step_count", jnp.int32),
        ("episode_done", bool),
        ("similarity_score", jnp.float32),
        ("episode_mode", jnp.int32),
        ("action_history", jnp.float32),
        ("action_history_length", jnp.int32),
        ("action_history_write_pos", jnp.int32),
        ("allowed_operations_mask", bool),
    ],
)
def test_documented_types(state, name, dtype):
    assert getattr(state, name).dtype == dtype


def test_a_test_target_is_hidden(tasks):
    state, _ = arc_reset(jax.random.key(0), CONFIG, tasks[0], episode_mode=1)
    assert (state.target_grid == -1).all()
    assert not state.target_grid_mask.any()
    assert state.similarity_score == 0.0


def test_a_single_task_can_be_replaced(state, tasks):
    changed = eqx.tree_at(lambda s: s.task_data, state, tasks[1])
    np.testing.assert_array_equal(
        changed.target_grid, tasks[1].get_train_pair(0).output_grid.data
    )
    np.testing.assert_array_equal(changed.working_grid, state.working_grid)
    assert state.task_index == state.task_data.task_index == -1


def test_rows_of_a_batch_are_states(tasks):
    stack = jax.jit(stack_task_list)(tasks)
    rows = np.array([2, 0, 1, 1])
    keys = jax.random.split(jax.random.key(1), 4)
    states, _ = batch_reset(keys, CONFIG, stack, task_indices=rows)
    together = jax.device_get(shown(states))
    for index, row in enumerate(rows):
        alone = shown(ArcEnvState(stack, row_of(states.episode, index)))
        for name in FIELDS:
            np.testing.assert_array_equal(together[name][index], alone[name])
        task = row_of(states.task_data, index)
        jax.tree.map(np.testing.assert_array_equal, task, tasks[row])


def test_a_batch_holds_its_task_once(tasks):
    sizes = set()
    for count in (1, 4, 16):
        keys = jax.random.split(jax.random.key(1), count)
        states, _ = batch_reset(keys, CONFIG, tasks[0])
        sizes.add(bytes_of(states.tasks))
        _, axis = shared_tasks(states)
        assert axis is None
        row = row_of(states, 0)
        jax.tree.map(np.testing.assert_array_equal, row.task_data, tasks[0])
    assert sizes == {bytes_of(tasks[0])}


def test_every_row_of_a_batch_knows_its_task(tasks):
    keys = jax.random.split(jax.random.key(1), 5)
    states, _ = batch_reset(keys, CONFIG, tasks[0])
    shared = states.task_data
    assert shared.num_train_pairs.tolist() == [3] * 5
    assert states.task_index.tolist() == [-1] * 5
    assert states.available_demo_pairs.shape == (5, 4)


def test_a_state_is_small_at_the_largest_size():
    task = create_mock_task()
    key = jax.random.key(0)
    lean = make_config((30, 30), history={"enabled": False})
    assert bytes_of(arc_reset(key, lean, task)[0].episode) <= 4096
    with_history = make_config((30, 30), steps=100)
    assert bytes_of(arc_reset(key, with_history, task)[0].episode) <= 6656


@pytest.mark.parametrize(
    ("form", "size"), [("point", 24_000), ("bbox", 32_000), ("mask", 3_616_000)]
)
def test_bytes_of_a_history_of_a_thousand_steps(form, size):
    config = make_config((30, 30), steps=1000, action={"selection_format": form})
    state, _ = arc_reset(jax.random.key(0), config, create_mock_task())
    assert state.action_history.nbytes == size


def test_fewer_steps_make_a_smaller_history():
    config = make_config((30, 30), steps=50)
    state, _ = arc_reset(jax.random.key(0), config, create_mock_task())
    assert state.action_history.shape == (50, 6)


def test_joining_equals_constructing(state):
    joined = join_state(state.tasks, state.episode)
    assert jax.tree.structure(joined) == jax.tree.structure(state)
    stepped, *_ = arc_step(joined, create_point_action(1, 0, 0), CONFIG)
    assert stepped.step_count == 1
