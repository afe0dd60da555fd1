"""Agents are what their configuration says, resume exactly, and learn.

What a run's folder gives back, and what it says when something is missing.
"""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_agents import TINY_PPO, tiny_config, write_small_tasks
from arc_samples import DATA, needs_data
from jaxarc.learning.evaluation import evaluate, every_pair
from jaxarc.learning.training import (
    CONFIG_FILE,
    PAINTING,
    AgentConfig,
    load_agent,
    load_config,
    make_agent,
    read_metrics,
    save_config,
    train_agent,
)
from jaxrig.learn import PPOConfig

pytestmark = pytest.mark.slow  # many programs to compile


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def agent(folder):
    return make_agent(tiny_config(folder))


def same_arrays(one, other):
    pairs = zip(
        jax.tree.leaves(eqx.filter(one, eqx.is_array)),
        jax.tree.leaves(eqx.filter(other, eqx.is_array)),
        strict=True,
    )
    return all(_equal(a, b) for a, b in pairs)


def _equal(one, other):
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, other = jax.random.key_data(one), jax.random.key_data(other)
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=False)


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ({}, (5, 5)),
        ({"answer": True}, (5, 5, 2)),
        ({"context_pairs": 2}, (5, 5, 6)),
        ({"answer": True, "context_pairs": 1}, (5, 5, 5)),
    ],
)
def test_the_configuration_decides_what_is_seen(folder, values, shape):
    agent = make_agent(tiny_config(folder, **values))
    assert agent.env.observation_space().shape == shape
    _, begun = agent.env.reset(jax.random.key(0))
    assert begun.observation.shape == shape
    choice = agent.state.policy.sample(jax.random.key(1), begun.observation)
    assert int(choice.action.operation) in PAINTING


def test_tasks_steps_and_operations_are_those_configured(folder):
    agent = make_agent(
        tiny_config(folder, tasks=2, max_episode_steps=7, operations=(3, 34))
    )
    params = agent.env.params
    assert params.subset_indices.tolist() == [0, 1]
    assert params.config.environment.max_episode_steps == 7
    assert agent.state.policy.operations == (3, 34)
    assert agent.env.params.episode_mode == 0
    for tasks in (-1, 4):
        with pytest.raises(ValueError, match=f"tasks is {tasks}: Mini-all has 3"):
            make_agent(tiny_config(folder, tasks=tasks))


def test_seeds_make_networks(folder, agent):
    assert same_arrays(make_agent(tiny_config(folder)).state, agent.state)
    other = make_agent(tiny_config(folder, seed=1)).state
    assert not same_arrays(other.policy, agent.state.policy)


def test_tests_are_played_as_they_are(folder):
    agent = make_agent(tiny_config(folder, answer=True, augment=True, tasks=2))
    env = agent.environment(1)
    assert (env.params.episode_mode, env.params.augment) == (1, False)
    assert every_pair(env)[0].tolist() == [0, 1]
    assert env.observation_space().shape == (5, 5, 2)
    pictures = {
        np.asarray(env.reset(key, task=1, pair=0)[1].observation).tobytes()
        for key in jax.random.split(jax.random.key(0), 4)
    }
    assert len(pictures) == 1
    training = agent.environment(0)
    assert (training.params.episode_mode, training.params.augment) == (0, True)
    assert agent.env.params.episode_mode == 0


def test_stopping_and_going_on_changes_nothing(folder, agent, tmp_path):
    heard = []
    sink = lambda step, metrics: heard.append((step, metrics["entropy"]))
    whole, history = train_agent(agent, 4, sinks=(sink,))
    assert heard == [(n + 1, record["entropy"]) for n, record in enumerate(history)]
    train_agent(agent, 2, tmp_path)
    resumed, rest = train_agent(agent, 4, tmp_path)
    assert same_arrays(whole, resumed)
    assert int(resumed.updates) == 4
    assert [len(history), len(rest)] == [4, 2]
    assert [r["loss"] for r in history[2:]] == [r["loss"] for r in rest]
    records = read_metrics(tmp_path)
    assert [record["step"] for record in records] == [1, 2, 3, 4]
    assert [r["loss"] for r in records] == [r["loss"] for r in history]
    assert not same_arrays(whole.policy, agent.state.policy)
    ppo = dataclasses.replace(TINY_PPO, learning_rate=0.5)
    other = make_agent(tiny_config(folder, ppo=ppo))
    with pytest.raises(ValueError, match="a run with a different configuration"):
        train_agent(other, 5, tmp_path)


@needs_data
def test_an_agent_that_sees_the_answer_learns_to_paint_it():
    ppo = PPOConfig(
        environments=64, steps=32, epochs=2, minibatches=4, learning_rate=3e-3
    )
    config = AgentConfig(
        dataset_path=str(DATA / "MiniARC"),
        tasks=3,
        answer=True,
        features=16,
        depth=0,
        max_episode_steps=30,
        ppo=ppo,
    )
    agent = make_agent(config)
    key = jax.random.key(0)
    before = evaluate(agent.state.policy, agent.env, key)
    trained, _ = train_agent(agent, 300)
    after = evaluate(trained.policy, agent.env, key)
    assert before.pair_rate == 0.0
    assert after.pair_rate >= 0.5


@pytest.mark.parametrize(
    "config",
    [
        AgentConfig(),
        AgentConfig("AGI1-train", operations=(1, 34), context_pairs=2, augment=True),
        AgentConfig(ppo=PPOConfig(learning_rate=0.1, entropy_coeff=0.0), seed=7),
    ],
)
def test_a_configuration_comes_back(tmp_path, config):
    save_config(tmp_path / "a" / "run", config)
    found = load_config(tmp_path / "a" / "run")
    assert found == config
    assert hash(found) == hash(config)


def test_a_folder_holds_one_configuration(tmp_path):
    for load in (load_config, load_agent):
        with pytest.raises(FileNotFoundError, match="does not contain a run of `jaxr"):
            load(tmp_path)
    assert read_metrics(tmp_path) == []
    for _ in range(2):
        save_config(tmp_path, AgentConfig(seed=3))
    with pytest.raises(ValueError, match=r"different configuration .* use another f"):
        save_config(tmp_path, AgentConfig(seed=4))
    assert load_config(tmp_path).seed == 3


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"operations": 3, "ppo": {}}',
        '{"operations": [], "ppo": {"speed": 1}}',
        '{"operations": [], "ppo": {}, "color": "red"}',
    ],
)
def test_a_broken_configuration_is_named(tmp_path, text):
    (tmp_path / CONFIG_FILE).write_text(text)
    with pytest.raises(ValueError, match="is not the configuration of a run"):
        load_config(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"st')
    with pytest.raises(ValueError, match="line 2 is not a metrics record"):
        read_metrics(tmp_path)


def test_a_trained_agent_comes_back(tmp_path):
    config = tiny_config(write_small_tasks(tmp_path / "tasks"), answer=True)
    run = tmp_path / "run"
    save_config(run, config)
    with pytest.raises(FileNotFoundError, match="no checkpoint yet: train it first"):
        load_agent(run)
    state, _ = train_agent(make_agent(config), 2, run)
    agent, policy, updates = load_agent(run)
    assert (agent.config, updates) == (config, 2)
    _, begun = agent.env.reset(jax.random.key(0))
    found = policy.distribution(begun.observation)
    wanted = state.policy.distribution(begun.observation)
    start = agent.state.policy.distribution(begun.observation)
    assert all(map(jnp.array_equal, found, wanted))
    assert not jnp.array_equal(found[0], start[0])
    assert json.loads((run / CONFIG_FILE).read_text())["features"] == 8
