"""The environment object: episodes as `arc_step` plays them, as a pytree of its own.

Kinds of steps, and what follows from them.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    STEPS,
    auto_reset,
    clipping,
    described,
    no_weak_types,
    play,
    reset,
    sample_actions,
    small_buffer,
    small_env,
    small_params,
    small_puzzles,
    step,
)
from arc_episode_reference import Puzzle
from arc_play import make_config, random_move, row, stack
from arc_play import shown as arc_shown
from arc_reference import size_of
from arc_states import assert_same, point
from jaxarc.actions import BboxAction, MaskAction
from jaxarc.envs.environment import (
    Environment,
    StepType,
    TimeStep,
    as_action,
)
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset
from jaxarc.episode import Augmentation
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.tasks.identity import create_jax_task_index
from jaxarc.tasks.samples import gather_task
from jaxarc.wrappers import Vectorize
from jaxrig.checks import CheckError
from jaxrig.testing import assert_one_trace

SUBMIT = int(Op.SUBMIT)
KEY = jax.random.key(0)


@eqx.filter_jit
def started(env, key, **start):
    return env.reset(key, **start)


def test_an_episode_is_that_of_the_functional_interface():
    config, buffer = clipping(), small_buffer()
    env = small_env(config, buffer)
    state, first = started(env, jax.random.key(3), task=2, pair=1)
    task = gather_task(buffer, 2)
    arc, observation = arc_reset(jax.random.key(3), config, task, 0, 1)
    np.testing.assert_array_equal(first.observation, observation)
    rng = np.random.default_rng(0)
    for _ in range(STEPS + 2):
        action = random_move(rng, (5, 5), "point").action()
        over = bool(arc.episode_done)
        state, found = step(env, state, action)
        arc, observation, reward, done, info = arc_step(arc, action, config)
        np.testing.assert_array_equal(found.observation, observation)
        assert float(found.reward) == (0.0 if over else float(reward))
        assert bool(found.last()) == bool(done)
        assert float(found.extras["similarity"]) == float(info["similarity"])
        assert bool(found.extras["solved"]) == bool(info["success"])


def test_a_first_step_is_a_first_step():
    state, first = reset(small_env(), jax.random.key(0))
    assert int(first.step_type) == StepType.FIRST
    assert (float(first.reward), float(first.discount)) == (0.0, 1.0)
    assert int(first.extras["operation_id"]) == -1
    assert not bool(first.extras["solved"])
    assert float(first.extras["similarity"]) == float(state.episode.similarity_score)
    np.testing.assert_array_equal(state.working_grid, first.observation)


def test_equal_keys_make_equal_starts_and_others_differ():
    env = small_env()
    assert_same(reset(env, jax.random.key(5)), reset(env, jax.random.key(5)))
    places = {
        (int(s.episode.task_row), int(s.episode.current_example_idx))
        for s, _ in (reset(env, jax.random.key(n)) for n in range(30))
    }
    assert places == {(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0)}


def test_an_augmentation_can_be_given():
    puzzles, env = small_puzzles(), small_env()
    permutation = np.array([0, *range(9, 0, -1)], np.int32)
    shown = Augmentation(jnp.int32(3), jnp.asarray(permutation))
    state, first = started(env, jax.random.key(0), task=1, pair=1, augmentation=shown)
    seen = first.observation, arc_shown(env.arc_state(state))["target_grid"]
    for found, grid in zip(seen, puzzles[1].demos[1], strict=True):
        height, width = size_of(grid)
        wanted = np.full_like(grid, -1)
        wanted[:width, :height] = permutation[np.rot90(grid[:height, :width], 3)]
        np.testing.assert_array_equal(found, wanted)


def solving_task():
    """One cell of a grid is to be painted blue."""
    given = np.zeros((5, 5), np.int32)
    wanted = given.copy()
    wanted[0, 0] = 1
    return Puzzle([(given, wanted)], [(given, wanted)], (4, 3)).as_task()


def one_task():
    """Of the shape of `small_buffer`, so that they share programs."""
    return small_env(buffer=stack([solving_task()] * 4))


def test_solving_terminates_with_discount_zero():
    env = one_task()
    begun, _ = reset(env, jax.random.key(0))
    state, after = step(env, begun, point(1))
    assert int(after.step_type) == StepType.TERMINATED
    assert float(after.discount) == 0.0
    assert bool(after.extras["solved"])
    assert int(after.extras["operation_id"]) == 1
    _, later = step(env, state, point(0))
    assert float(later.reward) == 0.0
    assert bool(later.last())
    _, submitted = step(env, begun, point(SUBMIT))
    assert int(submitted.step_type) == StepType.TERMINATED
    assert float(submitted.discount) == 0.0


@pytest.mark.parametrize("solved", [False, True])
def test_the_limit_truncates_unless_the_last_step_solves(solved):
    env = one_task()
    state, _ = reset(env, jax.random.key(0))
    steps = []
    for action in [point(0, 4, 4)] * (STEPS - 1) + [point(1 if solved else 0)]:
        state, after = step(env, state, action)
        steps.append((int(after.step_type), float(after.discount)))
    running = (StepType.MID, 1.0)
    ends = (StepType.TERMINATED, 0.0) if solved else (StepType.TRUNCATED, 1.0)
    assert steps == [running] * (STEPS - 1) + [ends]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("augment", [False, True])
def test_reset_and_step_are_one_carry(augment, wide):
    env = small_env(augment=augment)  # types are known before anything is compiled
    # Where 64 bits are on, as other packages want them, types are still those.
    promotion = jax.numpy_dtype_promotion("standard" if wide else "strict")
    with jax.enable_x64(wide), promotion:
        first = jax.eval_shape(reset, env, jax.random.key(0))
        after = jax.eval_shape(step, env, first[0], point(3))
        renewed = jax.eval_shape(auto_reset, env, first[0], jnp.asarray(True))
    assert described(first) == described(after)
    assert described(first[0]) == described(renewed)
    assert no_weak_types((first, after, renewed))


def test_other_keys_states_and_tasks_are_no_reason_to_trace_again():
    envs = [small_env(buffer=small_buffer(seed=seed)) for seed in (0, 1)]

    def go(env, key, action):
        state, _ = env.reset(key)
        return env.step(state, action)

    calls = [(env, jax.random.key(n), point(n)) for n, env in enumerate(envs)]
    assert_one_trace(jax.jit(go), *calls)


def test_the_seed_moves_on_with_every_renewal_alone():
    env = small_env()
    state, _ = reset(env, jax.random.key(0))
    assert_same(auto_reset(env, state, jnp.asarray(False)), state)
    seeds = [int(state.seed)]
    for _ in range(3):
        state = auto_reset(env, state, jnp.asarray(True))
        seeds.append(int(state.seed))
    assert len(set(seeds)) == 4


def test_other_parameters_can_be_given_for_a_call():
    env, other = small_env(), small_params(buffer=small_buffer(seed=7), episode_mode=1)
    alone = Environment(params=other)
    key, action, done = jax.random.key(0), point(2, 1, 1), jnp.asarray(True)

    @jax.jit
    def given(env, other):
        state, first = env.reset(key, other)
        stepped = env.step(state, action, other)
        return (state, first), stepped, env.auto_reset(state, done, other)

    begun, stepped, renewed = given(env, other)
    assert_same(begun, reset(alone, key))
    assert_same(stepped, step(alone, begun[0], action))
    assert_same(renewed, auto_reset(alone, begun[0], done))


def test_a_dictionary_is_a_mask_action():
    cells = np.zeros((5, 5), np.int8)
    cells[1, 2] = 1
    action = as_action({"operation": 4, "selection": cells})
    assert isinstance(action, MaskAction)
    env = one_task()
    state, _ = reset(env, jax.random.key(0))
    fractions = jnp.where(cells == 1, 0.5, 0.4)
    _, after = step(env, state, {"operation": jnp.int32(4), "selection": fractions})
    np.testing.assert_array_equal(after.observation, 4 * cells)


@pytest.mark.parametrize(
    "action",
    [point(12, 4, 9), point(33, 2, 3), BboxAction(*map(jnp.int32, (3, 2, 9, 0, 1)))],
)
def test_the_canonical_action_does_the_same(action):
    env = small_env()
    state, first = reset(env, jax.random.key(4))
    canonical = first.extras["canonical_action"]
    assert int(canonical["operation"]) == -1
    assert not canonical["selection"].any()
    found = step(env, state, action)
    assert_same(step(env, state, found[1].extras["canonical_action"]), found)


def test_the_canonical_action_is_what_was_asked_for():
    env = small_env(clipping(action={"allowed_operations": (1, 34)}))
    state, _ = reset(env, jax.random.key(4))
    _, after = step(env, state, point(7, 2, 1))
    assert int(after.extras["canonical_action"]["operation"]) == 7
    assert int(after.extras["operation_id"]) == 1


def test_other_dictionaries_are_refused():
    env = one_task()
    state, _ = reset(env, jax.random.key(0))
    with pytest.raises(TypeError, match="missing or not known: '"):
        env.step(state, {"operation": 1})


def test_an_environment_steps_one_state_with_one_action():
    env = one_task()
    state, _ = reset(env, jax.random.key(0))
    three = jax.tree.map(lambda x: jnp.stack([x] * 3), point(1, 0, 0))
    with pytest.raises(ValueError, match="and there is one state: to step many"):
        env.step(state, three)
    with pytest.raises(ValueError, match="the state is a batch, and"):
        env.step(jax.tree.map(lambda x: jnp.stack([x] * 3), state), three)


def test_actions_out_of_range_are_refused_or_clipped():
    strict = small_env(make_config((5, 5)))
    state, _ = reset(strict, jax.random.key(0))
    with pytest.raises(CheckError, match="row"):
        strict.step(state, point(1, 7, 0))
    clipped = small_env()
    assert_same(
        step(clipped, state, point(1, 7, 0)), step(clipped, state, point(1, 4, 0))
    )


def test_samples_of_the_spaces_play_and_are_contained():
    env = small_env()
    actions = sample_actions(env, jax.random.key(0), 12)
    played = play(env, jax.random.key(1), actions)
    first, _, steps = played[0], *jax.device_get(played[1:])
    space = env.observation_space()
    assert space.contains(first[1].observation)
    assert all(space.contains(one) for one in steps.observation)
    assert all(env.reward_space().contains(one) for one in steps.reward)
    assert all(env.discount_space().contains(one) for one in steps.discount)
    arc = arc_shown(env.arc_state(first[0]))
    grids = {name: arc[name] for name in dict(env.state_space().spaces)}
    assert env.state_space().contains(grids)


def test_an_environment_needs_its_parts():
    with pytest.raises(TypeError, match="configuration and a buffer"):
        Environment()


def test_methods_can_be_handed_to_jax():
    env = small_env()
    key = jax.random.key(0)
    state, _ = jax.jit(env.reset)(key)
    actions = sample_actions(env, jax.random.key(1), 5)
    wanted, after = [], state
    for index in range(5):
        after, told = step(env, after, row(actions, index))
        wanted.append(told)
    wanted = (after, stack(wanted))
    assert_same(jax.lax.scan(env.step, state, actions), wanted)


def test_pictures():
    env = one_task()
    state, _ = reset(env, jax.random.key(0))
    picture = env.render(state)
    assert picture.dtype == np.uint8
    assert picture.shape == (100, 100, 3)
    assert isinstance(env.render(state, "ansi"), str)
    assert env.render(state, "svg").startswith("<svg")
    with pytest.raises(ValueError, match="rgb_array, ansi, svg"):
        env.render(state, "film")


def test_a_kind_answers_every_question():
    kinds, zeros = jnp.array([*StepType], jnp.int32), jnp.zeros(len(StepType))
    step = TimeStep(kinds, zeros, zeros, zeros, {})
    assert step.first().tolist() == [True, False, False, False]
    assert step.terminated().tolist() == [False, False, True, False]
    assert step.truncated().tolist() == [False, False, False, True]
    assert step.last().tolist() == step.done().tolist() == [False, False, True, True]


def test_a_task_is_chosen_by_its_id():
    ids = ("00d62c1b", "0a938d79", None)
    numbers = jnp.stack([create_jax_task_index(name) for name in ids])
    named = eqx.tree_at(lambda tasks: tasks.task_index, small_buffer(3), numbers)
    env = small_env(buffer=named)
    assert env.params.task_ids == ids
    np.testing.assert_array_equal(env.params.rows_of(["0a938d79", "00d62c1b"]), [1, 0])
    np.testing.assert_array_equal(env.params.rows_of("0a938d79"), [1])
    state, _ = env.reset(KEY, task="0a938d79")
    assert int(state.episode.task_row) == 1
    assert env.arc_state(state).task_index == named.task_index[1]
    keys = jax.random.split(KEY, 2)
    states, _ = Vectorize(env).reset(keys, task=["0a938d79", "00d62c1b"])
    np.testing.assert_array_equal(states.episode.task_row, [1, 0])
    for start in (
        lambda task: env.reset(KEY, task=task),
        lambda task: arc_reset(KEY, env.params.config, named, task_row=task),
        lambda task: batch_reset(keys, env.params.config, named, task_indices=[task]),
    ):
        with pytest.raises(ValueError, match=r"id '0a938d7b': did you mean '0a938d79'"):
            start("0a938d7b")
    with pytest.raises(TypeError, match=r"env\.params\.rows_of"):
        jax.jit(lambda env: env.reset(KEY, task="00d62c1b"))(env)
