"""Oracle: a naive Python loop over single environments, and mistakes a user makes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.compile_guard import compile_once
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn.grpo import GRPOConfig, grpo_init
from jaxrig.learn.ppo import PPOConfig, ppo_init
from jaxrig.learn.rollout import (
    Choice,
    Evaluation,
    Step,
    rollout,
    start_runner,
)
from jaxrig.testing import assert_trees_close


class Counter(eqx.Module):
    """Counts to a random goal; ends there, or is cut after five steps."""

    def reset(self, key):
        goal = jax.random.randint(key, (), 1, 9)
        return (goal, jnp.zeros((), jnp.int32)), goal.astype(jnp.float32)

    def step(self, key, state, action):
        goal, count = state[0], state[1] + 1
        observation = (goal - count).astype(jnp.float32)
        noise = jax.random.uniform(key)
        return Step(
            (goal, count), observation, action + noise, count >= goal, count >= 5
        )


class Linear(eqx.Module):
    weight: jax.Array

    def sample(self, key, observation):
        action = jax.random.normal(key) + self.weight * observation
        return Choice(action, -(action**2), self.weight * observation)

    def evaluate(self, observation, action):
        return Evaluation(-(action**2), jnp.zeros(()), self.weight * observation)


ENVIRONMENT, POLICY = Counter(), Linear(jnp.asarray(0.5))


def naive(key, count, steps):
    """The same keys, one environment and one step at a time, in Python."""
    reset, step = eqx.filter_jit(ENVIRONMENT.reset), eqx.filter_jit(ENVIRONMENT.step)
    sample = eqx.filter_jit(POLICY.sample)
    start = batch_keys(named_key(key, "start"), count)
    rows = []
    for b in range(count):
        state, observation = reset(start[b])
        total, row = 0.0, []
        for t in range(steps):
            step_key = jax.random.fold_in(named_key(key, "run"), t)
            keys = {
                n: batch_keys(named_key(step_key, n), count)[b]
                for n in ("act", "step", "reset")
            }
            choice = sample(keys["act"], observation)
            after = step(keys["step"], state, choice.action)
            total += float(after.reward)
            done = bool(after.terminated | after.truncated)
            next_value = 0.0 if after.terminated else 0.5 * float(after.observation)
            row.append(
                (float(observation), float(choice.action), next_value, done, total)
            )
            state, observation = after.state, after.observation
            if done:
                total = 0.0
                state, observation = reset(keys["reset"])
        rows.append(row)
    return np.asarray(rows, np.float32).transpose(1, 0, 2)


def run(key, count=6, steps=12):
    runner = start_runner(named_key(key, "start"), ENVIRONMENT, count)
    return rollout(named_key(key, "run"), ENVIRONMENT, POLICY, runner, steps)


played = compile_once(run, max_traces=None)


def test_equals_the_naive_loop(key):
    _, found, episodes = played(key)
    expected = naive(key, 6, 12)
    np.testing.assert_allclose(found.observation, expected[..., 0], rtol=1e-5)
    np.testing.assert_allclose(found.action, expected[..., 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.next_value, expected[..., 2], rtol=1e-5)
    np.testing.assert_array_equal(found.done, expected[..., 3].astype(bool))
    ended = expected[..., 3].astype(bool)
    assert int(episodes.count) == ended.sum()
    np.testing.assert_allclose(
        episodes.mean_return, expected[..., 4][ended].mean(), rtol=1e-5
    )


def test_two_halves_equal_nothing_lost(key):
    """Episodes go on across rollouts: lengths keep counting."""
    step = compile_once(
        lambda key, runner: rollout(key, ENVIRONMENT, POLICY, runner, 1)[0]
    )
    runner = start_runner(named_key(key, "start"), ENVIRONMENT, 4)
    lengths = []
    for part in range(3):
        runner = step(jax.random.fold_in(key, part), runner)
        lengths.append(np.asarray(runner.episode_length))
    stays = (lengths[2] > 0) & (lengths[1] > 0)
    assert stays.any()
    np.testing.assert_array_equal(lengths[2][stays], lengths[1][stays] + 1)


def test_one_trace_for_any_key_and_no_dependence_on_batch_size(key):
    small, large = played(key, 4)[1], played(key)[1]
    traces = played.trace_count
    played(jax.random.key(9))
    assert played.trace_count == traces
    assert_trees_close(
        jax.tree.map(lambda x: x[:, :4], large), small, rtol=1e-6, atol=1e-6
    )


def test_no_finished_episode_gives_nan_not_zero(key):
    episodes = played(key, 1, 0)[2]
    assert int(episodes.count) == 0
    assert np.isnan(episodes.mean_return)


class Env(eqx.Module):
    """Right by default, wrong in one way by choice."""

    wrong: str = ""

    def reset(self, key):
        state = jnp.zeros((), jnp.int32)
        return state if self.wrong == "reset" else (state, jnp.zeros(2))

    def step(self, key, state, action):
        observation = jnp.zeros(2, jnp.int8 if self.wrong == "dtype" else jnp.float32)
        reward = jnp.zeros(1 if self.wrong == "reward" else ())
        no = jnp.zeros((), bool)
        if self.wrong == "tuple":
            return state, observation, reward, no, {}
        return Step(state, observation, reward, no, no)


class Pol(eqx.Module):
    wrong: str = ""

    def sample(self, key, observation):
        value = jnp.zeros(1 if self.wrong == "value" else ())
        log_prob = jnp.zeros((), jnp.int32 if self.wrong == "log_prob" else jnp.float32)
        return Choice(jnp.zeros((), jnp.int32), log_prob, value)

    def evaluate(self, observation, action):
        zero = jnp.zeros(())
        if self.wrong == "evaluate":
            return zero, zero, zero
        return Evaluation(zero, zero, zero)


@pytest.mark.parametrize("init", [ppo_init, grpo_init])
@pytest.mark.parametrize(
    ("environment", "policy", "message"),
    [
        (Env("reset"), Pol(), r"reset must return \(state, observation\)"),
        (Env("tuple"), Pol(), r"environment\.step returned a tuple"),
        (Env("reward"), Pol(), "reward"),
        (Env("dtype"), Pol(), "observation as int8.*they must be equal"),
        (Env(), Pol("value"), r"policy\.sample: value is float32\[1\]"),
        (Env(), Pol("log_prob"), "log_prob is int32"),
        (Env(), Pol("evaluate"), r"policy\.evaluate returned a tuple"),
        (Pol(), Env(), "environment"),
    ],
)
def test_mistakes_are_named_before_training(init, environment, policy, message):
    config = PPOConfig() if init is ppo_init else GRPOConfig()
    with pytest.raises(TypeError, match=message):
        init(jax.random.key(0), environment, policy, config)
