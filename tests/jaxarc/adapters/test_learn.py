"""Environments of jaxarc under the learners of the core."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_environments import clipping, small_env
from jaxarc.learning.training import LearnEnvironment
from jaxarc.wrappers import FlattenActionWrapper, PointActionWrapper
from jaxrig import learn
from jaxrig.learn.rollout import check_protocol


class LinearPolicy(eqx.Module):
    """Scores of actions from a flattened grid; the value is a constant."""

    weights: jax.Array
    value: jax.Array

    def scores(self, observation):
        seen = observation.reshape(-1).astype(jnp.float32)
        return jax.nn.log_softmax(seen @ self.weights)

    def sample(self, key, observation):
        scores = self.scores(observation)
        action = jax.random.categorical(key, scores)
        return learn.Choice(action, scores[action], self.value)

    def evaluate(self, observation, action):
        scores = self.scores(observation)
        entropy = -jnp.sum(jnp.exp(scores) * scores)
        return learn.Evaluation(scores[action], entropy, self.value)


def learnable(**groups):
    env = FlattenActionWrapper(PointActionWrapper(small_env(clipping(**groups))))
    return LearnEnvironment(env)


def policy(env):
    actions = env.env.action_space().num_values
    weights = 0.01 * jax.random.normal(jax.random.key(0), (25, actions))
    return LinearPolicy(weights, jnp.zeros(()))


def test_the_protocol_is_followed():
    env = learnable()
    check_protocol(env, policy(env))


def test_a_step_is_that_of_the_environment():
    env = learnable(steps=2)
    state, observation = jax.jit(env.reset)(jax.random.key(1))
    inner, first = jax.jit(env.env.reset)(jax.random.key(1))
    step, inner_step = jax.jit(env.step), jax.jit(env.env.step)
    np.testing.assert_array_equal(observation, first.observation)
    for number in (30, 51):
        action = jnp.int32(number)
        after = step(jax.random.key(0), state, action)
        inner, wanted = inner_step(inner, action)
        state = after.state
        np.testing.assert_array_equal(after.observation, wanted.observation)
        assert float(after.reward) == float(wanted.reward)
        assert bool(after.terminated) == bool(wanted.terminated())
        assert bool(after.truncated) == bool(wanted.truncated())
    assert bool(after.truncated)
    assert not bool(after.terminated)


@pytest.mark.slow
def test_a_learner_updates_a_policy():
    env = learnable(steps=6)
    start = policy(env)
    config = learn.PPOConfig(environments=8, steps=8, minibatches=2, epochs=1)
    state = learn.ppo_init(jax.random.key(0), env, start, config)
    state, metrics = eqx.filter_jit(learn.ppo_update)(state, env, config)
    assert np.isfinite(float(metrics.loss))
    assert not np.array_equal(state.policy.weights, start.weights)
