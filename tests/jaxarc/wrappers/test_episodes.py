"""Resets, figures and batches equal loops written by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    auto_reset,
    clipping,
    no_weak_types,
    observe,
    play,
    reset,
    sample_actions,
    small_buffer,
    small_env,
    small_params,
    step,
)
from arc_play import row
from arc_states import assert_same, point
from jaxarc.envs.environment import Environment
from jaxarc.types import JaxArcTask
from jaxarc.wrappers import (
    AutoReset,
    ContextualObservationWrapper,
    FlattenActionWrapper,
    MetricsWrapper,
    PointActionWrapper,
    Vectorize,
)
from jaxarc.wrappers.episodes import Wrapper, has_wrapper

SPACES = (
    "observation_space",
    "action_space",
    "reward_space",
    "discount_space",
    "state_space",
)


def test_everything_is_asked_of_the_environment_inside():
    env = small_env()
    wrapped = Wrapper(Wrapper(env))
    assert wrapped.unwrapped is env
    assert wrapped.params is env.params
    assert_same(reset(wrapped, jax.random.key(2)), reset(env, jax.random.key(2)))
    state, _ = reset(env, jax.random.key(2))
    assert_same(step(wrapped, state, point(3)), step(env, state, point(3)))
    done = jnp.asarray(True)
    assert_same(auto_reset(wrapped, state, done), auto_reset(env, state, done))
    assert_same(observe(wrapped, state), observe(env, state))
    assert_same(wrapped.arc_state(state), env.arc_state(state))
    assert wrapped.render(state, "ansi") == env.render(state, "ansi")
    for name in SPACES:
        assert getattr(wrapped, name)() == getattr(env, name)()
    wrapped.close()


def test_starts_and_parameters_are_passed_on():
    env, other = small_env(), small_params(episode_mode=1)
    start = {"task": 2, "pair": 1}
    found = reset(Wrapper(env), jax.random.key(0), other, start)
    alone = Environment(params=other)
    assert_same(found, reset(alone, jax.random.key(0), start=start))


def test_wrappers_are_found_in_any_depth():
    env = PointActionWrapper(MetricsWrapper(small_env()))
    assert has_wrapper(env, MetricsWrapper)
    assert has_wrapper(env, AutoReset, PointActionWrapper)
    assert not has_wrapper(env, AutoReset, Vectorize)
    assert not has_wrapper(small_env(), Wrapper)


def test_layers_in_an_order_that_would_miscount_are_refused():
    env = small_env()
    for outer in (AutoReset, MetricsWrapper, ContextualObservationWrapper):
        with pytest.raises(ValueError, match=f"a {outer.__name__} does not go around"):
            outer(PointActionWrapper(AutoReset(env)))
    for outer in (MetricsWrapper, ContextualObservationWrapper):
        with pytest.raises(ValueError, match=r"AutoReset or Vectorize: put .* inside"):
            outer(Vectorize(env))


def layered(**groups):
    env = ContextualObservationWrapper(small_env(clipping(**groups)), 2)
    return MetricsWrapper(PointActionWrapper(env))


def test_an_automatic_reset_is_a_step_and_another_start():
    env = layered(steps=3)
    auto = AutoReset(env)
    actions = sample_actions(env, jax.random.key(5), 16)
    first, last, found = play(auto, jax.random.key(1), actions)
    state, by_hand = reset(env, jax.random.key(1))
    assert_same(first[1].observation, by_hand.observation)
    ends = 0
    for index in range(16):
        state, after = step(env, state, row(actions, index))
        state = auto_reset(env, state, after.last())
        auto_step = row(found, index)
        ends += int(after.last())
        final = auto_step.extras.pop("final_observation")
        np.testing.assert_array_equal(final, after.observation)
        np.testing.assert_array_equal(auto_step.observation, observe(env, state))
        assert_same(auto_step.extras, after.extras)
        for name in ("step_type", "reward", "discount"):
            assert_same(getattr(auto_step, name), getattr(after, name))
    assert ends >= 5
    assert_same(last, state)


def test_automatic_resets_use_the_parameters_of_the_call():
    env, other = AutoReset(small_env()), small_params(clipping(steps=1), episode_mode=1)
    state, _ = reset(env, jax.random.key(0), other)
    found = step(env, state, point(2), other)
    alone = AutoReset(small_env(clipping(steps=1), episode_mode=1))
    assert_same(found, step(alone, state, point(2)))


def test_switched_off_a_finished_episode_stays_finished():
    config = clipping(steps=2)
    rules = dataclasses.replace(config.environment, auto_reset=False)
    plain = small_env(dataclasses.replace(config, environment=rules))
    env = AutoReset(plain)
    state, _ = reset(env, jax.random.key(0))
    for _ in range(2):
        state, _ = step(env, state, point(3))
    wanted = step(plain, state, point(3))
    state, after = step(env, state, point(3))
    assert bool(after.last())
    assert_same(state, wanted[0])
    np.testing.assert_array_equal(
        after.extras.pop("final_observation"), after.observation
    )
    assert_same(after, wanted[1])


def counted(steps, start):
    """Figures after every step of a sequence with automatic resets."""
    found, figures = [], None
    for index in range(steps.reward.shape[0]):
        if figures is None:
            figures = {
                "episode_return": np.float32(0),
                "episode_length": 0,
                "best_similarity": start,
                "solved": False,
                "steps_to_solve": -1,
            }
        one = row(steps, index)
        similarity = float(one.extras["similarity"])
        figures["episode_return"] += np.float32(one.reward)
        figures["episode_length"] += 1
        figures["best_similarity"] = max(figures["best_similarity"], similarity)
        figures["final_similarity"] = similarity
        if bool(one.extras["solved"]) and not figures["solved"]:
            figures["solved"] = True
            figures["steps_to_solve"] = figures["episode_length"]
        figures["was_truncated"] = bool(one.truncated())
        found.append(dict(figures))
        if bool(one.last()):
            figures = None
    return found


def test_figures_are_those_counted_by_hand():
    env = AutoReset(MetricsWrapper(small_env(clipping(steps=6), episode_mode=1)))
    actions = sample_actions(env, jax.random.key(5), 30)
    _, _, steps = play(env, jax.random.key(1), actions)
    # In test mode every episode begins with similarity 0.
    wanted = counted(steps, 0.0)
    metrics = steps.extras["episode_metrics"]
    for index, figures in enumerate(wanted):
        for name, value in figures.items():
            found = np.asarray(getattr(metrics, name))[index]
            np.testing.assert_allclose(found, value, atol=1e-6)
    assert bool(metrics.was_truncated.any())


def test_the_best_similarity_counts_the_start():
    env = MetricsWrapper(small_env())
    state, first = reset(env, jax.random.key(2))
    start = float(first.extras["similarity"])
    metrics = first.extras["episode_metrics"]
    assert float(metrics.best_similarity) == start
    assert float(metrics.final_similarity) == start
    assert int(metrics.episode_length) == 0
    _, after = step(env, state, point(33, 0, 0))
    later = after.extras["episode_metrics"]
    assert float(later.final_similarity) == float(after.extras["similarity"])
    assert float(later.best_similarity) == max(start, float(later.final_similarity))


def solvable():
    given = np.zeros((1, 5, 5), np.int32)
    wanted = given.copy()
    wanted[0, 0, :2] = 1
    mask = np.ones_like(given, bool)
    task = JaxArcTask(given, mask, wanted, mask, 1, given, mask, wanted, mask, 1)
    return jax.tree.map(lambda x: x[None], task)


def test_a_solution_is_counted_once():
    # Only Submit ends an episode, so that it can go on from a solution.
    config = clipping(episode={"training_reward_frequency": "submit"})
    env = MetricsWrapper(small_env(config, solvable()))
    state, _ = reset(env, jax.random.key(0))
    for action in (point(1, 0, 0), point(1, 0, 1), point(2, 0, 0)):
        state, after = step(env, state, action)
    metrics = after.extras["episode_metrics"]
    assert bool(metrics.solved)
    assert int(metrics.steps_to_solve) == 2
    assert float(metrics.best_similarity) == 1.0
    assert float(metrics.final_similarity) < 1.0


def test_what_happens_after_the_end_does_not_count():
    config = clipping().with_settings(auto_reset=False, max_episode_steps=2)
    env = MetricsWrapper(small_env(config, solvable()))
    state, _ = reset(env, jax.random.key(0))
    for action in (point(2, 0, 0), point(2, 0, 1)):
        state, ended = step(env, state, action)
    for action in (point(1, 0, 0), point(1, 0, 1)):
        state, after = step(env, state, action)
    assert bool(after.extras["solved"])
    metrics = after.extras["episode_metrics"]
    assert not bool(metrics.solved)
    assert_same(metrics, ended.extras["episode_metrics"])


COUNT = 5


def flat_layers(**kw):
    env = small_env(clipping(steps=4), **kw)
    env = ContextualObservationWrapper(FlattenActionWrapper(PointActionWrapper(env)), 2)
    return AutoReset(MetricsWrapper(env))


@pytest.mark.slow  # many programs
def test_rows_equal_single_environments_in_one_trace():
    one = flat_layers(augment=True)
    env = Vectorize(one)
    traces = []

    @jax.jit
    def step_all(env, states, actions):
        traces.append(states)
        return env.step(states, actions)

    keys = jax.random.split(jax.random.key(0), COUNT)
    states, steps = reset(env, keys)
    singles = [reset(one, key) for key in keys]
    for number in range(6):
        for index, (state, single) in enumerate(singles):
            assert_same(row((states, steps), index), (state, single))
        actions = sample_actions(env, jax.random.key(number), COUNT)
        states, steps = step_all(env, states, actions)
        singles = [
            step(one, state, actions[index]) for index, (state, _) in enumerate(singles)
        ]
    assert no_weak_types((states, steps))
    assert len(traces) == 1


def test_a_start_has_a_value_for_each():
    env = Vectorize(small_env())
    keys = jax.random.split(jax.random.key(0), 3)
    tasks, pairs = jnp.asarray([2, 1, 0]), jnp.asarray([2, 1, 0])
    states, _ = reset(env, keys, start={"task": tasks, "pair": pairs})
    np.testing.assert_array_equal(states.episode.task_row, tasks)
    np.testing.assert_array_equal(states.episode.current_example_idx, pairs)
    with pytest.raises(ValueError, match="there are"):
        env.reset(keys, task=tasks + 2)
    with pytest.raises(ValueError, match="there are"):
        env.reset(keys, task=tasks, pair=pairs + 1)
    with pytest.raises(ValueError, match=r"task has shape \(2,\), .* 3 keys: give one"):
        env.reset(keys, task=tasks[:2])
    with pytest.raises(ValueError, match="single one: take the environment inside"):
        env.reset(keys[0])
    with pytest.raises(ValueError, match=r"action has shape \(2,\), .* 3 states: give"):
        env.step(states, {"operation": np.zeros(2), "selection": np.zeros((2, 5, 5))})


def test_the_tasks_exist_once():
    """The compiled step takes the buffer as it is and returns nothing of its size."""
    buffer = small_buffer(16)
    env = Vectorize(small_env(buffer=buffer))
    keys = jax.random.split(jax.random.key(0), 256)
    states, _ = reset(env, keys)
    actions = sample_actions(env, jax.random.key(0), 256)
    shape = buffer.pairs.shape
    leaves = [leaf.shape for leaf in jax.tree.leaves((env, states))]
    assert leaves.count(shape) == 1
    assert (256, *shape[1:]) not in leaves
    text = step.lower(env, states, actions).as_text()
    mapped = "x".join(map(str, (256, *shape[1:])))
    assert f"tensor<{mapped}x" not in text


@pytest.mark.slow  # many programs
def test_documented_views_of_a_batch():
    env = Vectorize(MetricsWrapper(small_env()))
    states, first = reset(env, jax.random.split(jax.random.key(0), 3))
    arc = env.arc_state(states)
    np.testing.assert_array_equal(arc.working_grid, first.observation)
    assert arc.tasks is env.params.buffer
    for index in range(3):
        one = env.env.arc_state(row(states, index))
        np.testing.assert_array_equal(arc.target_grid[index], one.target_grid)
    pictures = env.render(states, "rgb_array")
    assert len(pictures) == 3
    np.testing.assert_array_equal(
        pictures[1], env.env.render(row(states, 1), "rgb_array")
    )
