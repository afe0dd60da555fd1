"""Oracle: the shipped tabular problem and policy, and every mistake a user makes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from jaxrig.learn.grpo import GRPOConfig, grpo_init
from jaxrig.learn.ppo import PPOConfig, ppo_init
from jaxrig.learn.protocol import (
    Choice,
    Environment,
    Evaluation,
    Policy,
    Step,
    check_protocol,
)
from jaxrig.learn.tabular import corridor, uniform_policy

PROBLEM = corridor()
POLICY = uniform_policy(PROBLEM)


def test_shipped_problem_and_policy_follow_the_protocols():
    assert isinstance(PROBLEM, Environment)
    assert isinstance(POLICY, Policy)
    assert not isinstance(PROBLEM, Policy)
    check_protocol(PROBLEM, POLICY)


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
        (Env("dtype"), Pol(), "observation as int8.*they must agree"),
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
