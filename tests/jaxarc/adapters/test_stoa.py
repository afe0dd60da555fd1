"""Stoa's interface and wrappers work on our environments."""

import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import clipping, small_env
from jaxarc.adapters import stoa as adapter
from jaxarc.wrappers import FlattenActionWrapper, MetricsWrapper, PointActionWrapper

pytestmark = pytest.mark.slow  # many programs to compile


@pytest.fixture
def stoa():
    return pytest.importorskip("stoa")


def flat(**groups):
    return FlattenActionWrapper(PointActionWrapper(small_env(clipping(**groups))))


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "stoa", None)
    adapter.environment_class.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="stoa"):
        adapter.environment_class()
    with pytest.raises(AttributeError, match="Nothing"):
        _ = adapter.Nothing


def test_steps_are_those_of_the_environment(stoa):
    inner = flat(steps=3)
    env = adapter.StoaEnvironment(inner)
    assert isinstance(env, stoa.Environment)
    assert env.unwrapped is env
    state, first = env.reset(jax.random.key(0))
    ours, wanted = inner.reset(jax.random.key(0))
    for number in (30, 60, 90):
        assert isinstance(first, stoa.TimeStep)
        assert first.step_type.dtype == jnp.int8
        for name in ("step_type", "reward", "discount", "observation"):
            np.testing.assert_array_equal(getattr(first, name), getattr(wanted, name))
        state, first = env.step(state, jnp.int32(number))
        ours, wanted = inner.step(ours, jnp.int32(number))
    assert bool(first.last()) == bool(wanted.last())
    assert isinstance(adapter.StoaEnvironment(small_env()).render(state), np.ndarray)
    env.close()


@pytest.mark.parametrize("name", ["plain", "flat"])
def test_spaces_hold_what_the_environment_gives(stoa, name):
    inner = small_env() if name == "plain" else flat()
    env = adapter.StoaEnvironment(inner)
    spaces = env.environment_space()
    with jax.numpy_dtype_promotion("standard"):
        action = spaces.actions.sample(jax.random.key(0))
        assert bool(jnp.all(spaces.actions.contains(action)))
        state, first = env.reset(jax.random.key(0))
        _, after = env.step(state, action)
        for step in (first, after):
            assert bool(spaces.observations.contains(step.observation))
            assert bool(spaces.rewards.contains(step.reward))
            assert bool(spaces.discounts.contains(step.discount))


def layered(stoa, env, count):
    wrappers = importlib.import_module("stoa.core_wrappers.wrapper")
    metrics = importlib.import_module("stoa.core_wrappers.episode_metrics")
    resets = importlib.import_module("stoa.core_wrappers.auto_reset")
    vmap = importlib.import_module("stoa.core_wrappers.vmap")
    env = metrics.RecordEpisodeMetrics(wrappers.AddRNGKey(env))
    env = resets.AutoResetWrapper(env, next_obs_in_extras=True)
    return vmap.VmapWrapper(env, num_envs=count)


def test_core_wrappers_of_stoa_work(stoa):
    env = layered(stoa, adapter.StoaEnvironment(flat(steps=4)), 3)
    actions = jax.random.randint(jax.random.key(1), (10, 3), 0, 34 * 25)

    def go(key):
        state, first = env.reset(key)
        _, steps = jax.lax.scan(lambda s, a: env.step(s, a), state, actions)
        return first, steps

    with jax.numpy_dtype_promotion("standard"):
        first, steps = jax.jit(go)(jax.random.key(0))
    assert first.observation.shape == (3, 5, 5)
    assert steps.observation.shape == (10, 3, 5, 5)
    metrics = steps.extras["episode_metrics"]
    done = np.asarray(metrics["is_terminal_step"])
    np.testing.assert_array_equal(done, steps.last())
    assert done.sum() >= 6
    lengths = np.asarray(metrics["episode_length"])[done]
    assert lengths.max() <= 4
    assert lengths.min() >= 1
    running = ~done
    np.testing.assert_array_equal(
        np.asarray(steps.extras["next_obs"])[running],
        np.asarray(steps.observation)[running],
    )


def test_our_figures_are_a_dictionary_with_those_of_stoa(stoa):
    env = adapter.StoaEnvironment(MetricsWrapper(flat(steps=1)))
    state, _ = env.reset(jax.random.key(0))
    _, after = env.step(state, jnp.int32(0))
    metrics = after.extras["episode_metrics"]
    assert bool(metrics["is_terminal_step"])
    assert int(metrics["episode_length"]) == 1
    assert {"solved", "steps_to_solve", "was_truncated"} <= set(metrics)
