"""What a state holds and shows, alone and in a batch.

`state.replace`: what is put in is read back, what cannot be is refused.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arc_play import FIELDS, make_config, random_puzzle, shown
from arc_play import row as row_of
from arc_states import SIDE, assert_same, point, small_config, small_state, small_task
from jaxarc.actions import PointAction, create_bbox_action
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.state import ArcEnvState
from jaxarc.tasks.samples import create_mock_task, stack_task_list

SHAPE = (6, 4)
SLICES = (slice(None, 2), slice(2, None))
CONFIG = make_config(SHAPE, episode={"demo_selection_strategy": "sequential"})


def bytes_of(tree):
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def planned_state(config):
    """The shapes of a state at 30x30, with nothing compiled."""
    start = lambda key: arc_reset(key, config, create_mock_task())[0]
    return jax.eval_shape(start, jax.random.key(0))


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(2)
    return [random_puzzle(rng, SHAPE).as_task() for _ in range(3)]


@pytest.fixture(scope="module")
def state(tasks):
    return arc_reset(jax.random.key(0), CONFIG, tasks[0])[0]


def test_documented_types(state):
    for dtype, names in {
        jnp.int32: "working_grid target_grid clipboard step_count episode_mode "
        "action_history_length action_history_write_pos",
        jnp.float32: "similarity_score action_history",
        bool: "selected clipboard_mask episode_done allowed_operations_mask",
    }.items():
        for name in names.split():
            assert getattr(state, name).dtype == dtype, name


def test_a_single_task_can_be_replaced(state, tasks):
    changed = eqx.tree_at(lambda s: s.task_data, state, tasks[1])
    np.testing.assert_array_equal(
        changed.target_grid, tasks[1].get_train_pair(0).output_grid.data
    )
    np.testing.assert_array_equal(changed.working_grid, state.working_grid)
    assert state.task_index == state.task_data.task_index == -1


def test_a_batch_holds_its_task_once(tasks):
    sizes = set()
    for count in (1, 4):
        keys = jax.random.split(jax.random.key(1), count)
        states, _ = batch_reset(keys, CONFIG, tasks[0])
        sizes.add(bytes_of(states.tasks))
        leaves = jax.tree.leaves(states)
        assert {leaf.shape[0] for leaf in leaves} == {count}
        assert bytes_of(states) == bytes_of(states.episode)
        row = row_of(states, 0)
        jax.tree.map(np.testing.assert_array_equal, row.task_data, tasks[0])
    assert sizes == {bytes_of(tasks[0])}


def test_a_batch_is_an_ordinary_pytree(tasks):
    """Mapped, sliced, joined, reshaped, indexed as NumPy arrays: all rows as before."""
    stack = stack_task_list(tasks)
    keys = jax.random.split(jax.random.key(2), 6)
    states, _ = batch_reset(keys, CONFIG, stack)
    actions = PointAction(*jnp.arange(18, dtype=jnp.int32).reshape(3, 6) % 4)
    after, *wanted = batch_step(states, actions, CONFIG)
    step = lambda state, action: arc_step(state, action, CONFIG)
    mapped, *found = jax.jit(jax.vmap(step))(states, actions)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    fold = partial(jax.tree.map, lambda x: x.reshape(2, 3, *x.shape[1:]))
    _, *found = batch_step(fold(states), fold(actions), CONFIG)
    jax.tree.map(np.testing.assert_array_equal, found, fold(wanted))

    @jax.jit
    def rearranged(states):
        front, back = (jax.tree.map(lambda x, s=s: x[s], states) for s in SLICES)
        joined = jax.tree.map(lambda *x: jnp.concatenate(x), front, back)
        return fold(joined)

    tall = rearranged(mapped)
    last = jax.tree.map(lambda x: x[1, 2], jax.device_get(tall))
    whole, folded, single = jax.device_get([shown(s) for s in (after, tall, last)])
    for name in FIELDS:
        rows = whole[name].reshape(2, 3, *whole[name].shape[1:])
        np.testing.assert_array_equal(folded[name], rows)
        np.testing.assert_array_equal(single[name], rows[1, 2])
    pairs = after.task_data.pairs
    np.testing.assert_array_equal(tall.task_data.pairs[1, 2], pairs[5])


def test_a_users_program_compiles_once_for_every_task(tasks):
    keys, actions = jax.random.split(jax.random.key(3), 2), jnp.arange(2)
    actions = PointAction(actions, actions, actions)
    traced = []

    @jax.jit
    def step(tasks, episode):
        traced.append(tasks)
        states = ArcEnvState.from_parts(tasks, episode)
        after, *rest = batch_step(states, actions, CONFIG)
        return after.episode, rest

    for task in tasks:
        states, _ = batch_reset(keys, CONFIG, task)
        after, *rest = batch_step(states, actions, CONFIG)
        found = step(states.tasks, states.episode)
        jax.tree.map(np.testing.assert_array_equal, found, (after.episode, rest))
    assert len(traced) == 1


def test_a_batch_of_a_traced_task_leaves_its_program(tasks):
    keys = jax.random.split(jax.random.key(2), 3)
    start = lambda keys, task: batch_reset(keys, CONFIG, task)[0]
    states, outside = jax.jit(start)(keys, tasks[0]), start(keys, tasks[0])
    assert {leaf.shape[0] for leaf in jax.tree.leaves(states)} == {3}
    assert_same(shown(states), shown(outside))


def test_a_state_is_small_at_the_largest_size():
    lean = make_config((30, 30), history={"enabled": False})
    assert bytes_of(planned_state(lean).episode) <= 4096
    with_history = make_config((30, 30), steps=100)
    assert bytes_of(planned_state(with_history).episode) <= 6656


@pytest.mark.parametrize(
    ("form", "size"), [("point", 24_000), ("bbox", 32_000), ("mask", 3_616_000)]
)
def test_bytes_of_a_history_of_a_thousand_steps(form, size):
    config = make_config((30, 30), steps=1000, action={"selection_format": form})
    assert bytes_of(planned_state(config).action_history) == size


@settings(max_examples=10)
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
    assert other.available_demo_pairs.sum(axis=1).tolist() == [1, 1, 1]


def test_unknown_and_derived_names_are_refused():
    state = small_state()
    with pytest.raises(TypeError, match=r"no attribute 'grid'.*working_grid"):
        state.replace(grid=1)
    with pytest.raises(TypeError, match=r"target_grid cannot be replaced.*task_data"):
        state.replace(target_grid=state.target_grid)
    with pytest.raises(TypeError, match="unknown"):
        state.replace(unknown=1)


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
    with pytest.raises(ValueError, match=r"clipboard holds 17 to 17.* are 0 to 9"):
        state.replace(clipboard=np.full((SIDE, SIDE), 17))
    with pytest.raises(ValueError, match=r"selected has shape \(2,\)"):
        state.replace(selected=np.ones(2, bool))
    with pytest.raises(ValueError, match="same DatasetConfig"):
        state.replace(task_data=small_task(slots=(5, 2)))


def test_grids_without_their_padding():
    state = small_state()
    assert state.get_actual_grid_shape() == (4, 5)
    np.testing.assert_array_equal(state.get_actual_working_grid(), np.zeros((4, 5)))
    target = np.zeros((4, 5))
    target[0, 0] = 1
    np.testing.assert_array_equal(state.get_actual_target_grid(), target)
    assert small_state(mode=1).get_actual_target_grid().shape == (0, 0)


@pytest.mark.parametrize("count", [3, 9])
def test_the_history_keeps_the_last_actions_in_order(count):
    config = small_config(steps=4)  # a ring of four records
    state = small_state(config=config)
    for number in range(count):
        state = arc_step(state, point(number, number % 4, 1), config)[0]
    kept = [
        {
            "selection_data": [number % 4, 1],
            "operation_id": number,
            "timestamp": number,
            "pair_index": 0,
            "valid": True,
        }
        for number in range(max(0, count - 4), count)
    ]
    plain = lambda r: r | {"selection_data": r["selection_data"].tolist()}
    assert [plain(r) for r in state.get_recent_actions()] == kept
    assert [plain(r) for r in state.get_recent_actions(2)] == kept[-2:]
    assert state.get_recent_actions(0) == []
    with pytest.raises(ValueError, match="count=-1"):
        state.get_recent_actions(-1)


def test_a_batch_has_no_one_grid_and_no_one_history():
    keys = jax.random.split(jax.random.key(0), 2)
    states, _ = batch_reset(keys, small_config(), small_task())
    for ask in (states.get_actual_grid_shape, states.get_recent_actions):
        with pytest.raises(ValueError, match="take one"):
            ask()


def test_questions_to_a_state(tasks):
    """Pairs are counted and found; -1 stands for none."""
    state = batch_reset(jax.random.split(jax.random.key(0), 2), CONFIG, tasks[0])[0]
    solved = np.zeros(state.demo_completion_status.shape, bool)
    solved[0, 0], solved[1, :3] = True, True
    state = state.replace(demo_completion_status=solved, current_example_idx=0)
    asked = {
        "is_training_mode": [True, True],
        "is_test_mode": [False, False],
        "get_available_demo_count": [3, 3],
        "get_available_test_count": [3, 3],
        "get_completed_demo_count": [1, 3],
        "get_completed_test_count": [0, 0],
        "get_first_unsolved_demo_index": [1, -1],
        "get_first_unsolved_test_index": [0, 0],
        "get_next_available_demo_index": [1, 1],
        "get_prev_available_demo_index": [2, 2],
        "get_next_available_test_index": [1, 1],
        "get_prev_available_test_index": [2, 2],
        "is_current_pair_completed": [True, True],
    }
    ask = jax.jit(lambda state: {name: getattr(state, name)() for name in asked})
    assert {n: x.tolist() for n, x in jax.device_get(ask(state)).items()} == asked
    allowed = np.broadcast_to(np.arange(42) != 3, (2, 42))
    state = state.replace(allowed_operations_mask=allowed)
    permits = jax.jit(lambda state, number: state.is_operation_allowed(number).all())
    assert [bool(permits(state, i)) for i in (2, 3, 42)] == [1, 0, 0]


def test_the_history_is_asked_and_cleared():
    state = small_state()
    for operation in (3, 4):
        state = arc_step(state, point(operation, 1, 1), small_config())[0]
    assert state.get_action_from_history(0)["operation_id"] == 3
    assert state.get_action_from_history(-1)["operation_id"] == 4
    assert len(state.get_action_history_for_pair(0)) == 2
    assert state.get_action_history_for_pair(1) == []
    with pytest.raises(IndexError):
        state.get_action_from_history(2)
    assert state.clear_action_history().get_recent_actions() == []
