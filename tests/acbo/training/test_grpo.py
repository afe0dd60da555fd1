"""Oracle: a run in one go, against the same run in two.

Oracle: problems are the same every time, and nothing beats the optimum.
"""

import json
import logging
from dataclasses import replace

import jax
import numpy as np
import pytest

from acbo.environment import Proposer
from acbo.policy.advisor import PolicyProposer
from acbo.training.config import EvaluationConfig
from acbo.training.grpo import evaluate_held_out, grpo_with_jax_surrogate
from acbo.training.parent_set_model import SetReader
from causal_experience import (
    EPISODES,
    LEVEL,
    MODEL,
    NARROW,
    SURROGATE,
    TRAINING,
    params,
    policy_params,
)

SMALL = {"model": MODEL, "policy": NARROW, "episodes": EPISODES, "levels": (LEVEL,)}


def test_a_resumed_run_must_have_the_same_settings(tmp_path, monkeypatch):
    """What a folder is checked against names everything but how long and how often."""
    seen = {}

    def stop(update, state, updates, **options):
        seen.update(options, updates=updates)
        raise KeyboardInterrupt

    monkeypatch.setattr("acbo.training.grpo.train", stop)
    monkeypatch.setattr("acbo.training.grpo._Rounds.start", lambda self: None)
    with pytest.raises(KeyboardInterrupt):
        grpo_with_jax_surrogate(TRAINING, SURROGATE, folder=tmp_path, **SMALL)
    config = seen["config"]
    assert (seen["updates"], seen["save_every"]) == (2, 1)
    assert (config.seed, config.warmup_steps, config.levels) == (42, 1, (LEVEL,))
    assert config.surrogate == SURROGATE
    learner = config.recipe.policy.learner
    assert (learner.states, learner.horizon, learner.group_size) == (2, 2, 8)
    assert config.recipe.policy.episodes.weights == TRAINING.rewards
    assert config.recipe.exploration == TRAINING.exploration
    assert config.recipe.max_parents == MODEL.max_parent_size


@pytest.mark.slow
def test_both_learn_and_a_run_in_two_halves_is_the_same(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "acbo.training.grpo"):
        whole = grpo_with_jax_surrogate(TRAINING, SURROGATE, **SMALL)
    lines = [each for each in caplog.messages if each.startswith("step ")]
    assert [line.split(":")[0] for line in lines] == ["step 2"]
    first, second = whole.history
    assert not any(name.startswith("policy/") for name in first)  # warming up
    assert "policy/mean_reward" in second
    assert {"held_out/f1", "held_out/regret"} <= set(second) - set(first)
    assert first["level"] == 1
    assert isinstance(PolicyProposer(whole.surrogate, whole.policy), Proposer)

    half = replace(TRAINING, total_steps=1)
    begun = grpo_with_jax_surrogate(half, SURROGATE, folder=tmp_path, **SMALL)
    assert begun.history == [first]
    ended = grpo_with_jax_surrogate(TRAINING, SURROGATE, folder=tmp_path, **SMALL)
    assert len(ended.history) == 1
    learned = lambda run: jax.tree.leaves((run.policy, run.surrogate))
    for a, b in zip(learned(whole), learned(ended), strict=True):
        np.testing.assert_array_equal(a, b)
    written = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in written] == [1, 2]

    other = replace(TRAINING, seed=1)
    with pytest.raises(ValueError, match="seed: 42 -> 1"):
        grpo_with_jax_surrogate(other, SURROGATE, folder=tmp_path, **SMALL)


@pytest.mark.slow
def test_trials_are_of_every_size_and_repeat():
    config = EvaluationConfig(1, 3, (3, 4))
    given = SetReader(params()), policy_params().network, config, 2
    found = evaluate_held_out(jax.random.key(0), *given)
    again = evaluate_held_out(jax.random.key(0), *given)
    assert found == again
    assert set(found) == {
        *("f1", "f1_d3", "f1_d4"),
        *("regret", "regret_d3", "regret_d4"),
    }
    for name in ("f1", "regret"):
        parts = [found[f"{name}_d3"], found[f"{name}_d4"]]
        np.testing.assert_allclose(found[name], np.mean(parts), rtol=1e-5)
        assert min(parts) >= -1e-4
    assert found["f1"] <= 1
