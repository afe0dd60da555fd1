"""A wrapper that changes nothing is the environment it wraps."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from arc_environments import reset, small_env, small_params, step
from arc_states import assert_same, point
from jaxarc.envs.environment import Environment, StepType
from jaxarc.wrappers import AutoReset, MetricsWrapper, StepLimit, Vectorize
from jaxarc.wrappers.episodes import Wrapper, has_wrapper, replace_step

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
    assert_same(wrapped.auto_reset(state, done), env.auto_reset(state, done))
    assert_same(wrapped.observe(state), env.observe(state))
    assert_same(wrapped.arc_state(state), env.arc_state(state))
    assert wrapped.render(state, "ansi") == env.render(state, "ansi")
    for name in SPACES:
        assert getattr(wrapped, name)() == getattr(env, name)()
    wrapped.close()


def test_methods_can_be_handed_to_jax():
    wrapped = Wrapper(small_env())
    state, _ = jax.jit(wrapped.reset)(jax.random.key(0))
    actions = jax.tree.map(lambda x: x[None], point(3))
    after, _ = jax.lax.scan(wrapped.step, state, actions)
    assert_same(after, step(wrapped, state, point(3))[0])


def test_starts_and_parameters_are_passed_on():
    env, other = small_env(), small_params(episode_mode=1)
    start: dict[str, Any] = {"task": 2, "pair": 1}
    found = Wrapper(env).reset(jax.random.key(0), other, **start)
    assert_same(found, Environment(params=other).reset(jax.random.key(0), **start))


def test_wrappers_are_found_in_any_depth():
    env = StepLimit(MetricsWrapper(small_env()), max_steps=3)
    assert has_wrapper(env, MetricsWrapper)
    assert has_wrapper(env, AutoReset, StepLimit)
    assert not has_wrapper(env, AutoReset, Vectorize)
    assert not has_wrapper(small_env(), Wrapper)


def test_a_step_with_some_fields_changed():
    _, first = reset(small_env(), jax.random.key(0))
    changed = replace_step(first, reward=jnp.float32(3.0))
    assert float(changed.reward) == 3.0
    assert int(changed.step_type) == StepType.FIRST
    assert changed.observation is first.observation
    with pytest.raises(TypeError):
        replace_step(first, color=1)
