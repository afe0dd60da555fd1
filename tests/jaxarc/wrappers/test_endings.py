"""Step limits and automatic resets equal loops written by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import (
    auto_reset,
    clipping,
    described,
    no_weak_types,
    play,
    reset,
    sample_actions,
    small_env,
    small_params,
    step,
)
from arc_play import row
from arc_states import assert_same, point
from jaxarc.envs.environment import StepType
from jaxarc.wrappers import (
    AutoReset,
    ContextualObservationWrapper,
    MetricsWrapper,
    PointActionWrapper,
    StepLimit,
)

pytestmark = pytest.mark.slow  # many programs to compile


def layered(**groups):
    env = ContextualObservationWrapper(small_env(clipping(**groups)), 2)
    return MetricsWrapper(StepLimit(PointActionWrapper(env), 7))


def test_an_automatic_reset_is_a_step_and_a_start_from_renew():
    env = layered(steps=9)
    auto = AutoReset(env)
    actions = sample_actions(env, jax.random.key(5), 40)
    first, last, found = play(auto, jax.random.key(1), actions)
    state, by_hand = reset(env, jax.random.key(1))
    assert_same(first[1].observation, by_hand.observation)
    ends = 0
    for index in range(40):
        state, after = step(env, state, row(actions, index))
        state = auto_reset(env, state, after.last())
        auto_step = row(found, index)
        ends += int(after.last())
        final = auto_step.extras.pop("final_observation")
        np.testing.assert_array_equal(final, after.observation)
        np.testing.assert_array_equal(auto_step.observation, env.observe(state))
        assert_same(auto_step.extras, after.extras)
        for name in ("step_type", "reward", "discount"):
            assert_same(getattr(auto_step, name), getattr(after, name))
    assert ends >= 5
    assert_same(last, state)


def test_the_next_episode_is_fresh_while_the_step_is_the_last():
    env = AutoReset(small_env(clipping(steps=2)))
    state, _ = reset(env, jax.random.key(0))
    state, after = step(env, state, point(3))
    assert int(after.step_type) == StepType.MID
    np.testing.assert_array_equal(after.observation, after.extras["final_observation"])
    state, after = step(env, state, point(3))
    assert bool(after.last())
    assert int(state.episode.step_count) == 0
    assert not bool(state.episode.episode_done)
    np.testing.assert_array_equal(after.observation, env.observe(state))


def test_resets_and_steps_are_one_carry():
    for env in (AutoReset(layered()), StepLimit(small_env(), max_steps=2)):
        first = reset(env, jax.random.key(0))
        action = row(sample_actions(env, jax.random.key(0), 1), 0)
        after = step(env, first[0], action)
        assert described(first) == described(after)
        assert no_weak_types((first, after))


def test_automatic_resets_use_the_parameters_of_the_call():
    env, other = AutoReset(small_env()), small_params(clipping(steps=1), augment=True)
    state, _ = env.reset(jax.random.key(0), other)
    found = env.step(state, point(2), other)
    alone = AutoReset(small_env(clipping(steps=1), augment=True))
    assert_same(found, alone.step(state, point(2)))


def test_a_limit_truncates_and_keeps_the_discount():
    env = StepLimit(small_env(), max_steps=2)
    state, _ = reset(env, jax.random.key(3))
    state, after = step(env, state, point(0, 4, 4))
    assert int(after.step_type) == StepType.MID
    state, after = step(env, state, point(0, 4, 4))
    assert int(after.step_type) == StepType.TRUNCATED
    assert float(after.discount) == 1.0
    assert int(auto_reset(env, state, jnp.asarray(True)).steps) == 0
    assert int(auto_reset(env, state, jnp.asarray(False)).steps) == 2


def test_termination_comes_before_the_limit():
    env = StepLimit(small_env(), max_steps=1)
    state, _ = reset(env, jax.random.key(3))
    _, after = step(env, state, point(34))
    assert int(after.step_type) == StepType.TERMINATED
    assert float(after.discount) == 0.0


def test_the_limit_of_the_environment_holds_too():
    env = StepLimit(small_env(clipping(steps=1)), max_steps=5)
    state, _ = reset(env, jax.random.key(3))
    _, after = step(env, state, point(0, 4, 4))
    assert int(after.step_type) == StepType.TRUNCATED


def test_a_limit_is_static_and_at_least_one():
    env = StepLimit(small_env(), max_steps=3)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(env))
    assert env.render(reset(env, jax.random.key(0))[0], "ansi")
    with pytest.raises(ValueError, match="max_steps is 0"):
        StepLimit(small_env(), max_steps=0)


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
