"""Steps by the interface of gymnax are those of the environment with AutoReset."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import clipping, small_env, small_params
from jaxarc.adapters.gymnax import GymnaxEnvironment, GymnaxParams
from jaxarc.wrappers import AutoReset, FlattenActionWrapper, PointActionWrapper

HAS_GYMNAX = importlib.util.find_spec("gymnax") is not None


def discrete(**groups):
    return FlattenActionWrapper(PointActionWrapper(small_env(clipping(**groups))))


@pytest.mark.slow  # compiles programs of its own
def test_steps_are_those_of_the_environment():
    inner = AutoReset(discrete(steps=2))
    env = GymnaxEnvironment(discrete(steps=2))
    params = env.default_params
    assert params.max_steps_in_episode == 2
    key = jax.random.key(0)
    seen, state = jax.jit(env.reset)(key, params)
    wanted, first = inner.reset(key)
    np.testing.assert_array_equal(seen, first.observation)
    for number in range(1, 4):
        action = jnp.asarray(7 * number, jnp.int32)
        seen, state, reward, done, info = env.step(key, state, action, params)
        wanted, step = inner.step(wanted, action)
        assert seen.dtype == jnp.float32
        np.testing.assert_array_equal(seen, step.observation)
        assert (reward, done) == (step.reward, step.last())
        assert info["similarity"] == step.extras["similarity"]


@pytest.mark.slow  # compiles programs of its own
def test_the_tasks_are_parameters():
    env = GymnaxEnvironment(discrete())
    other = GymnaxParams(small_params(subset_indices=[2]))
    _, state = env.reset(jax.random.key(0), other)
    assert int(state.episode.task_row) == 2


def test_an_environment_that_resets_itself_is_refused():
    with pytest.raises(ValueError, match="pass the inner one"):
        GymnaxEnvironment(AutoReset(small_env()))


@pytest.mark.skipif(HAS_GYMNAX, reason="gymnax is installed")
def test_spaces_ask_for_the_package():
    with pytest.raises(ModuleNotFoundError, match="pip install gymnax"):
        GymnaxEnvironment(discrete()).action_space()
