"""What a run's folder gives back, and what it says when something is missing."""

import json

import jax
import jax.numpy as jnp
import pytest

from arc_agents import tiny_config, write_small_tasks
from jaxarc.learning.training import (
    CONFIG_FILE,
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


def test_the_same_configuration_may_be_saved_again(tmp_path):
    for _ in range(2):
        save_config(tmp_path, AgentConfig(seed=3))
    with pytest.raises(ValueError, match=r"another configuration .* give another fold"):
        save_config(tmp_path, AgentConfig(seed=4))
    assert load_config(tmp_path).seed == 3


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no run of `jaxrig arc train`"):
        load_config(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no run of `jaxrig arc train`"):
        load_agent(tmp_path)
    assert read_metrics(tmp_path) == []


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
    with pytest.raises(ValueError, match=r"agent\.json is no configuration of a run"):
        load_config(tmp_path)


def test_a_broken_record_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"st')
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2 is no record"):
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
