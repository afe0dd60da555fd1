"""Reset and step, alone and in batches: what they accept, compile and give back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from omegaconf import OmegaConf

from arc_play import assert_equal, make_config, random_move, random_puzzle, row, stack
from jaxarc.actions import (
    MaskAction,
    PointAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)
from jaxarc.envs import Environment, functional
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.episode import Augmentation
from jaxarc.tasks.samples import create_mock_task, stack_task_list
from jaxrig.checks import CheckError, error_mode

SHAPE = (5, 7)
CONFIG = make_config(SHAPE, episode={"allow_test_switching": True})
KEY = jax.random.key(0)
BATCH = 6
INFO = {
    "success": bool,
    "similarity": jnp.float32,
    "step_count": jnp.int32,
    "similarity_improvement": jnp.float32,
    "is_control_operation": bool,
    "operation_type": jnp.int32,
    "episode_mode": jnp.int32,
    "current_pair_index": jnp.int32,
    "available_demo_pairs": jnp.int32,
    "available_test_pairs": jnp.int32,
    "action_history_length": jnp.int32,
}
WRONG = create_point_action(3, 9, 0)
FILL = create_point_action(3, 1, 2)


@pytest.fixture(scope="module")
def tasks():
    rng = np.random.default_rng(11)
    return [random_puzzle(rng, SHAPE, d, t).as_task() for d, t in ((3, 2), (1, 3))]


@pytest.fixture(scope="module")
def state(tasks):
    return arc_reset(KEY, CONFIG, tasks[0], initial_pair_idx=0)[0]


@pytest.fixture(scope="module")
def states(tasks):
    keys = jax.random.split(KEY, BATCH)
    return batch_reset(keys, CONFIG, tasks[0])[0]


def traces() -> dict[str, int]:
    """How often each compiled function was traced."""
    names = ("_start", "_step_one", "_step_many")
    return {name: getattr(functional, name).direct._cache_size() for name in names}


def more_traces(before: dict[str, int]) -> list[int]:
    return [count - before[name] for name, count in traces().items()]


def random_actions(rng, kind, count=BATCH):
    return stack([random_move(rng, SHAPE, kind).action() for _ in range(count)])


@pytest.mark.parametrize("kind", ["point", "mask"])
def test_a_row_of_a_batch_is_stepped_as_if_alone(kind, tasks):
    rng = np.random.default_rng(len(kind))
    buffer = stack_task_list(tasks)
    keys = jax.random.split(KEY, BATCH)
    starts = ((tasks[0], 0), (buffer, 1)) if kind == "point" else ((buffer, 0),)
    for given, mode in starts:
        states, _ = batch_reset(keys, CONFIG, given, mode)
        for _ in range(3):
            actions = random_actions(rng, kind)
            after = batch_step(states, actions, CONFIG)
            for index in range(BATCH):
                alone = arc_step(row(states, index), row(actions, index), CONFIG)
                assert_equal(row(after, index), alone)
            states = after[0]
        assert states.step_count.tolist() == [3] * BATCH


def test_a_row_of_a_batch_is_reset_as_if_alone(tasks):
    keys = jax.random.split(KEY, BATCH)
    for given in (tasks[0], stack_task_list(tasks)):
        together = batch_reset(keys, CONFIG, given)
        for index in range(BATCH):
            assert_equal(row(together, index), arc_reset(keys[index], CONFIG, given))


def test_states_that_each_brought_their_task(tasks, states):
    keys = jax.random.split(KEY, BATCH)
    made = jax.jit(jax.vmap(lambda key: arc_reset(key, CONFIG, tasks[0])[0]))(keys)
    actions = random_actions(np.random.default_rng(0), "point")
    wanted = batch_step(states, actions, CONFIG)
    ours = batch_step(made, actions, CONFIG)
    mapped = jax.jit(jax.vmap(lambda s, a: arc_step(s, a, CONFIG)))(made, actions)
    for got in (ours, mapped):
        assert_equal(got[0].episode, wanted[0].episode)
        assert_equal(got[1:], wanted[1:])


def test_shapes_and_types_of_the_results(state, states):
    after, observation, reward, done, info = arc_step(state, FILL, CONFIG)
    assert (observation.shape, observation.dtype) == (SHAPE, jnp.int32)
    np.testing.assert_array_equal(observation, after.working_grid)
    assert (reward.shape, reward.dtype) == ((), jnp.float32)
    assert (done.shape, done.dtype) == ((), bool)
    assert {name: value.dtype for name, value in info.items()} == INFO
    actions = stack([FILL] * BATCH)
    _, observation, reward, done, info = batch_step(states, actions, CONFIG)
    assert observation.shape == (BATCH, *SHAPE)
    assert (reward.shape, done.shape) == ((BATCH,), (BATCH,))
    assert all(value.shape == (BATCH,) for value in info.values())


def test_other_tasks_and_numbers_trace_nothing(tasks, states):
    mask = np.zeros(SHAPE, bool)
    actions = stack([FILL] * BATCH)

    def play(task, pair, operation, seed):
        state, _ = arc_reset(jax.random.key(seed), CONFIG, task, 0, pair)
        corners = (operation, 0, 0, 1, operation)
        for action in (
            create_point_action(operation, 1, 1),
            create_bbox_action(*corners),
            create_mask_action(operation, mask),
        ):
            state, *_ = arc_step(state, action, CONFIG)
        keys = jax.random.split(jax.random.key(seed), BATCH)
        batch_step(batch_reset(keys, CONFIG, task)[0], actions, CONFIG)

    play(tasks[0], 0, 0, 0)
    before = traces()
    for operation in range(3):
        play(tasks[1], 0, operation, operation)
    assert more_traces(before) == [0, 0, 0]


def test_a_compiled_function_around_a_step_compiles_once(tasks):
    traced = []

    @eqx.filter_jit
    def step(state, action, config):
        traced.append(action)
        return arc_step(state, action, config)

    for task in tasks:
        state, _ = arc_reset(KEY, CONFIG, task, initial_pair_idx=0)
        for operation in range(3):
            action = create_point_action(operation, 0, 0)
            ours = step(state, action, CONFIG)
            assert_equal(ours, arc_step(state, action, CONFIG))
            state = ours[0]
    assert len(traced) == 1


def test_steps_inside_a_scan(state):
    rng = np.random.default_rng(3)
    actions = random_actions(rng, "bbox", 8)

    @jax.jit
    def run(state, actions):
        def one(state, action):
            state, *rest = arc_step(state, action, CONFIG)
            return state, tuple(rest)

        return jax.lax.scan(one, state, actions)

    last, told = run(state, actions)
    for index in range(8):
        state, *rest = arc_step(state, row(actions, index), CONFIG)
        assert_equal(row(told, index), tuple(rest))
    assert_equal(last, state)


def test_a_step_holds_no_callback(state, states):
    step = jax.make_jaxpr(functional._step, static_argnums=3)
    for one, action in ((state, FILL), (states, stack([FILL] * BATCH))):
        for checked in (False, True):
            rules = (CONFIG, checked, True)
            program = str(step(one.tasks, one.episode, action, rules))
            assert ("callback" in program) == checked


def test_an_action_out_of_range_raises(state):
    with pytest.raises(CheckError, match=r"action\.row is 9: it must be 0 to 4"):
        arc_step(state, WRONG, CONFIG)
    assert issubclass(CheckError, RuntimeError)


def test_rows_out_of_range_are_named(states):
    actions = stack([FILL, WRONG, FILL, WRONG, FILL, FILL])
    with pytest.raises(RuntimeError, match=r"row is 9, 9 in rows 1, 3: it must be 0"):
        batch_step(states, actions, CONFIG)


# What an error in a callback becomes under plain jax.jit is up to JAX.
@pytest.mark.parametrize(
    ("compiled", "error"),
    [(eqx.filter_jit, RuntimeError), (jax.jit, (RuntimeError, ValueError))],
)
def test_an_action_out_of_range_raises_in_a_users_program(state, compiled, error):
    step = compiled(lambda state, action: arc_step(state, action, CONFIG))
    assert not step(state, FILL)[3]
    with pytest.raises(error, match="an action is out of range"):
        jax.block_until_ready(step(state, WRONG))


def test_in_nan_mode_the_rewards_of_wrong_rows_tell(states):
    actions = stack([FILL, WRONG, FILL, FILL, FILL, FILL])
    with error_mode("nan"):
        rewards = batch_step(states, actions, CONFIG)[2]
    assert jnp.isnan(rewards).tolist() == [False, True, False, False, False, False]


@pytest.mark.parametrize("setting", ["validate_actions", "allow_invalid_actions"])
def test_unchecked_actions_are_clipped(setting, state):
    config = make_config(SHAPE, action={setting: setting == "allow_invalid_actions"})
    clipped = arc_step(state, create_point_action(-4, 99, -1), config)
    assert_equal(clipped, arc_step(state, create_point_action(0, 4, 0), config))
    program = jax.make_jaxpr(lambda s, a: arc_step(s, a, config))(state, FILL)
    assert "callback" not in str(program)  # of a user's own, either


def test_dictionary_actions_are_refused(state, states):
    with pytest.raises(TypeError, match=r"PointAction.*dictionary actions are not"):
        arc_step(state, {"operation": 1, "selection": None}, CONFIG)
    with pytest.raises(TypeError, match="dictionary actions are not supported"):
        batch_step(states, {"operation": 1}, CONFIG)


def test_whole_numbers_of_all_types_share_one_program(state):
    wanted = arc_step(state, FILL, CONFIG)
    before = traces()
    for number in (int, np.int32, np.asarray, np.int64, np.uint8, jnp.int8, jnp.uint32):
        action = PointAction(*map(number, (3, 1, 2)))  # pyright: ignore
        assert_equal(arc_step(state, action, CONFIG), wanted)
    mixed = PointAction(FILL.operation, 1, jnp.asarray(2))  # pyright: ignore
    assert_equal(arc_step(state, mixed, CONFIG), wanted)
    assert more_traces(before) == [0, 0, 0]


def test_fractions_are_no_numbers_of_an_action(state):
    with pytest.raises(TypeError, match=r"row is 1\.5: it must be a whole number"):
        create_point_action(3, 1.5, 2)
    halves = jax.tree.map(lambda leaf: leaf / 2, FILL)
    with pytest.raises(TypeError, match=r"operation is .*a whole number"):
        arc_step(state, halves, CONFIG)
    with pytest.raises(TypeError, match=r"initial_pair_idx is 0\.5"):
        arc_reset(KEY, CONFIG, state.tasks, 0, 0.5)


def test_a_mask_of_numbers_selects_from_the_threshold_on(state):
    config = make_config(SHAPE, action={"selection_threshold": 0.8})
    cells = np.zeros(SHAPE)
    cells[0, 0], cells[0, 1], cells[1, 0] = 0.8, 1.0, 0.7
    fractions = MaskAction(jnp.int32(3), jnp.asarray(cells))
    wanted = create_mask_action(3, cells >= 0.8)
    after = arc_step(state, fractions, config)
    assert_equal(after, arc_step(state, wanted, config))
    assert_equal(after, arc_step(state, create_mask_action(3, cells), config))
    assert after[0].selected.sum() == 2
    whole = MaskAction(jnp.int32(3), jnp.asarray(cells >= 0.8, jnp.int32))
    assert_equal(arc_step(state, whole, config), after)
    with pytest.raises(TypeError, match="the selection is float32, not boolean"):
        fractions.to_selection_mask(SHAPE)


def test_states_need_an_action_each(state, states):
    three = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), FILL)
    for given, action in ((states, three), (states, FILL), (state, three)):
        many = given.step_count.ndim
        match = "give one action for every state" if many else "to step many, use batch"
        with pytest.raises(ValueError, match=match):
            (batch_step if many else arc_step)(given, action, CONFIG)


def test_a_batch_needs_a_key_for_each_environment(tasks):
    for one in (KEY, jax.random.key_data(KEY)):
        with pytest.raises(ValueError, match="give one key for every environment"):
            batch_reset(one, CONFIG, tasks[0])
    with pytest.raises(TypeError, match=r"keys is a list: join them, jnp\.stack"):
        batch_reset([KEY, KEY], CONFIG, tasks[0])


def test_an_augmentation_is_one_for_all_or_one_for_each(tasks):
    keys, colors = jax.random.split(KEY, 3), np.arange(10)
    env = Environment(CONFIG, stack_task_list(tasks))

    def start(symmetry, permutation, one=False):
        shown = Augmentation(symmetry, permutation)
        if one:
            return env.reset(KEY, augmentation=shown)
        return batch_reset(keys, CONFIG, tasks[0], 0, 0, augmentation=shown)

    mixed = start(np.array([2, 0, 2]), np.stack([colors] * 3))
    alike = start(2, colors)
    for index, wanted in ((0, alike), (2, alike), (1, start(0, colors))):
        assert_equal(row(mixed, index), row(wanted, index))
    for symmetry, permutation, message in (
        (1, colors, "symmetry 1: on grids padded to 5 x 7 .* is one of 0, 2, 4, 6"),
        (2, colors + 1, "not a permutation of the colors"),
        (2, colors[:9], r"permutation has shape \(9,\)"),
        (np.array([2, 0]), np.stack([colors] * 2), "symmetry has shape .* one number"),
    ):
        for one in (False, True):
            with pytest.raises(ValueError, match=message):
                start(symmetry, permutation, one)


def test_a_mask_of_another_shape_is_refused_before_it_runs(state):
    action = create_mask_action(0, np.zeros((7, 5), bool))
    with pytest.raises(ValueError, match=r"shape \(7, 5\)"):
        jax.eval_shape(lambda s: arc_step(s, action, CONFIG), state)


def test_the_task_rules_the_shape_and_the_configuration_the_bounds():
    config = make_config((15, 15))
    state, _ = arc_reset(KEY, config, create_mock_task())
    assert state.working_grid.shape == (30, 30)
    with pytest.raises(RuntimeError, match="row is 20: it must be 0 to 14"):
        arc_step(state, create_point_action(1, 20, 0), config)
    small, _ = arc_reset(KEY, config, create_mock_task(5, 5))
    after, *_ = arc_step(small, create_point_action(1, 14, 14), config)
    assert np.argwhere(after.working_grid == 1).tolist() == [[4, 4]]


@pytest.mark.slow  # many programs
def test_mappings_are_configurations(tasks, state):
    plain = {"dataset": {"max_grid_height": 5, "max_grid_width": 7}}
    start = lambda config: arc_reset(KEY, config, tasks[0], 0, 0)[0]
    wanted = arc_step(start(plain), FILL, plain)
    written = OmegaConf.create(plain)
    assert_equal(arc_step(start(written), FILL, written), wanted)
    keys = jax.random.split(KEY, 2)
    states, _ = batch_reset(keys, written, tasks[0], 0, 0)
    together = batch_step(states, stack([FILL] * 2), written)
    assert_equal(row(together, 1), wanted)


def test_typed_and_raw_keys_are_taken(tasks):
    raw = jax.random.key_data(KEY)
    assert_equal(arc_reset(raw, CONFIG, tasks[0]), arc_reset(KEY, CONFIG, tasks[0]))
    keys = jax.random.split(KEY, BATCH)
    typed = batch_reset(keys, CONFIG, tasks[0])
    assert_equal(batch_reset(jax.random.key_data(keys), CONFIG, tasks[0]), typed)


def test_a_chosen_pair(tasks):
    state, _ = arc_reset(KEY, CONFIG, tasks[0], 0, 2)
    assert state.current_example_idx == 2
    for mode, pair in ((0, 3), (1, 2), (0, -1)):
        with pytest.raises(ValueError, match=f"initial_pair_idx is {pair}"):
            arc_reset(KEY, CONFIG, tasks[0], mode, pair)
    with pytest.raises(ValueError, match="initial_pair_idx is 3"):
        batch_reset(jax.random.split(KEY, 2), CONFIG, tasks[0], 0, 3)


def test_modes(tasks):
    assert arc_reset(KEY, CONFIG, tasks[0])[0].episode_mode == 0
    testing = make_config(SHAPE, episode={"episode_mode": 1})
    assert arc_reset(KEY, testing, tasks[0])[0].episode_mode == 1
    assert arc_reset(KEY, testing, tasks[0], 0)[0].episode_mode == 0
    with pytest.raises(ValueError, match="episode_mode is 2"):
        arc_reset(KEY, CONFIG, tasks[0], 2)


def test_rows_of_a_buffer(tasks):
    buffer = stack_task_list(tasks)
    chosen = [1, 0, 0, 1, 1, 0]
    keys = jax.random.split(KEY, BATCH)
    states, _ = batch_reset(keys, CONFIG, buffer, task_indices=chosen)
    assert states.task_data.num_test_pairs.tolist() == [2 + c for c in chosen]
    for index, number in enumerate(chosen):
        alone, _ = arc_reset(keys[index], CONFIG, buffer, task_row=number)
        assert_equal(row(states, index), alone)
        jax.tree.map(np.testing.assert_array_equal, alone.task_data, tasks[number])
    with pytest.raises(ValueError, match="there are 2 tasks"):
        batch_reset(keys, CONFIG, buffer, task_indices=2)
    with pytest.raises(ValueError, match=r"task_indices has shape \(2,\)"):
        batch_reset(keys, CONFIG, buffer, task_indices=[0, 1])


def test_starts_are_those_of_the_environment_object(tasks):
    """One key makes one start, whichever interface it is given to."""
    buffer = stack_task_list(tasks)
    env = Environment(CONFIG, buffer)
    keys = jax.random.split(KEY, BATCH)
    states, grids = batch_reset(keys, CONFIG, buffer)
    others, first = jax.jit(jax.vmap(env.reset))(keys)
    assert_equal(states.episode, others.episode)
    np.testing.assert_array_equal(grids, first.observation)
    one, grid = arc_reset(keys[3], CONFIG, buffer)
    assert_equal(one.episode, row(others.episode, 3))
    np.testing.assert_array_equal(grid, one.working_grid)
    assert states.current_example_idx.any()
