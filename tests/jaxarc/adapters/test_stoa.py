"""Stoa's interface and wrappers work on our environments."""

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import clipping, small_env, small_params
from jaxarc.adapters import stoa as adapter
from jaxarc.wrappers import FlattenActionWrapper, MetricsWrapper, PointActionWrapper

pytestmark = pytest.mark.slow  # many programs to compile

METRICS = {
    "solved": np.array([True, False, True, False]),
    "steps_to_solve": np.array([3, -1, 6, -1]),
    "was_truncated": np.array([False, True, False, False]),
    "best_similarity": np.array([1.0, 0.5, 1.0, 0.1], np.float32),
    "final_similarity": np.array([1.0, 0.25, 1.0, 0.0], np.float32),
}


@pytest.fixture
def stoa():
    return pytest.importorskip("stoa")


def flat(**groups):
    return FlattenActionWrapper(PointActionWrapper(small_env(clipping(**groups))))


def test_custom_metrics_are_rates_and_means():
    found = adapter.jaxarc_custom_metrics(METRICS)
    assert float(found["success_rate"]) == 50.0
    assert float(found["avg_steps_to_solve"]) == 4.5
    assert float(found["truncation_rate"]) == 25.0
    assert float(found["best_similarity_mean"]) == pytest.approx(0.65)
    assert float(found["final_similarity_mean"]) == pytest.approx(0.5625)
    assert found["solved"] is METRICS["solved"]
    assert set(METRICS) == set(found) - {
        *("success_rate", "avg_steps_to_solve", "truncation_rate"),
        *("best_similarity_mean", "final_similarity_mean"),
    }


def test_metrics_without_solved_are_left_alone():
    metrics = {"episode_return": 1.0}
    assert adapter.jaxarc_custom_metrics(metrics) is metrics


def test_without_a_solution_the_mean_of_steps_is_zero():
    none = METRICS | {"solved": np.zeros(4, bool)}
    assert float(adapter.jaxarc_custom_metrics(none)["avg_steps_to_solve"]) == 0.0


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
    assert set(METRICS) <= set(metrics)


@pytest.fixture
def scenario(monkeypatch):
    """Names need no data here."""
    make = lambda name, config, **kw: (None, small_params(config, episode_mode=0))
    monkeypatch.setattr(adapter, "make", make)


def configured(mode="point", **channels) -> Any:
    env = SimpleNamespace(
        scenario=SimpleNamespace(name="Mini-easy"),
        action=SimpleNamespace(mode=mode),
        observation_wrappers=channels,
        config=clipping(),
    )
    return SimpleNamespace(env=env)


def test_training_and_evaluation(stoa, scenario):
    config = configured(answer_grid=True, input_grid=True, contextual=True)
    train, evaluation = adapter.make_jaxarc_env(config)
    _, seen = train.reset(jax.random.key(0))
    _, hidden = evaluation.reset(jax.random.key(0))
    assert seen.observation.shape == (5, 5, 13)
    assert hidden.observation.shape == (5, 5, 13)
    assert (np.asarray(seen.observation[..., -1]) >= 0).any()
    assert (np.asarray(hidden.observation[..., -1]) == -1).all()
    state, _ = evaluation.reset(jax.random.key(0))
    assert int(state.inner.episode.episode_mode) == 1
    assert train.action_space().num_values == 42 * 25


@pytest.mark.parametrize(("mode", "count"), [("bbox", 42 * 625), ("mask", None)])
def test_forms_of_actions(stoa, scenario, mode, count):
    train, _ = adapter.make_jaxarc_env(configured(mode))
    space = train.action_space()
    assert getattr(space, "num_values", None) == count
    assert train.observation_space().shape == (5, 5)


def test_what_is_missing_or_wrong_is_named(stoa, scenario):
    with pytest.raises(ValueError, match=r"env\.scenario\.name"):
        adapter.make_jaxarc_env({"env": {}})
    with pytest.raises(ValueError, match="'line': it is one of point, bbox, mask"):
        adapter.make_jaxarc_env(configured("line"))
