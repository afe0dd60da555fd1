"""Oracle: values computed by hand, a naive float64 loss, exact optima."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrig.compile_guard import compile_once
from jaxrig.keys import batch_keys, named_key
from jaxrig.learn import tabular
from jaxrig.learn.grpo import (
    REWARD_SCALINGS,
    GRPOConfig,
    grpo_advantages,
    grpo_init,
    grpo_loss,
    grpo_terms,
    grpo_update,
    sample_group,
)
from jaxrig.learn.rollout import Choice, Evaluation, Step

single_update = eqx.filter_jit(grpo_update)
advantages = jax.jit(grpo_advantages, static_argnames="scale")
COEFFICIENTS = ("clip", "entropy_coeff", "kl_coeff")
terms_of = jax.jit(grpo_terms, static_argnames=COEFFICIENTS)


def test_advantages_by_hand():
    rewards = np.asarray([[1, 2, 3, 6], [100, 100, 100, 100]], np.float32)
    # First group: mean 3, population variance (4 + 1 + 0 + 9) / 4 = 3.5.
    expected = np.asarray([-2, -1, 0, 3]) / np.sqrt(3.5)
    found = np.asarray(advantages(rewards))
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(found[1], 0.0)
    unscaled = np.asarray(advantages(rewards, scale=False))
    np.testing.assert_array_equal(unscaled[0], [-2, -1, 0, 3])


def test_another_state_in_the_batch_does_not_change_a_group():
    rng = np.random.default_rng(1)
    one = rng.normal(size=(1, 8)).astype(np.float32)
    other = (rng.normal(size=(3, 8)) * 1e3 + 1e4).astype(np.float32)
    both = np.asarray(advantages(np.concatenate([one, other])))
    np.testing.assert_array_equal(both[:1], advantages(one))


def test_loss_by_hand():
    # Ratios 1.5, 0.5, 1.0 with advantages 1, -1, 2:
    #   min(1.5, 1.2) = 1.2;  min(-0.5, -0.8) = -0.8;  min(2, 2) = 2.
    ratio, advantage = np.asarray([1.5, 0.5, 1.0]), np.asarray([1.0, -1.0, 2.0])
    old = np.log([0.2, 0.4, 0.3])
    given = (old + np.log(ratio), old, advantage, np.asarray([0.5, 0.7, 0.9]))
    arrays = [np.asarray(x, np.float32) for x in given]
    found = terms_of(*arrays, clip=0.2, entropy_coeff=0.1, kl_coeff=2.0)
    kl = -(np.log(1.5) + np.log(0.5)) / 3
    np.testing.assert_allclose(found["policy_loss"], -(1.2 - 0.8 + 2.0) / 3, rtol=1e-5)
    np.testing.assert_allclose(found["entropy_loss"], -0.07, rtol=1e-5)
    np.testing.assert_allclose(found["approx_kl"], kl, rtol=1e-5)
    np.testing.assert_allclose(found["kl_penalty"], 2.0 * (kl - 0.01), rtol=1e-5)
    total = -0.8 - 0.07 + 2.0 * (kl - 0.01)
    np.testing.assert_allclose(found["total_loss"], total, rtol=1e-5)
    # Wider: 1.5 counts as 1.4; 0.5 counts as 0.6, since its advantage is negative.
    wide = -(1.4 - 0.6 + 2.0) / 3 - 0.01 * 0.7
    loss = jax.jit(grpo_loss, static_argnames="clip")(*arrays, clip=0.4)
    np.testing.assert_allclose(loss, wide, rtol=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 2**31 - 1))
def test_masked_loss_equals_a_loop_over_what_counts(seed):
    rng = np.random.default_rng(seed)
    new, old, advantage, entropy = rng.normal(size=(4, 3, 5, 2)).astype(np.float32)
    counts = rng.random((3, 5, 2)) < 0.7
    counts[0, 0, 0] = True
    terms, entropies, drifts = [], [], []
    for index in np.argwhere(counts):
        i = tuple(index)
        ratio = np.exp(float(new[i]) - float(old[i]))
        limited = min(max(ratio, 0.8), 1.2)
        terms.append(min(ratio * advantage[i], limited * advantage[i]))
        entropies.append(entropy[i])
        drifts.append(float(old[i]) - float(new[i]))
    expected = (
        -np.mean(terms)
        - 0.01 * np.mean(entropies)
        + 0.5 * max(0.0, np.mean(drifts) - 0.01)
    )
    found = terms_of(new, old, advantage, entropy, counts=counts, kl_coeff=0.5)
    found = found["total_loss"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def bandit(states=4, arms=5, seed=0):
    """One action, then the end: the best arm differs from state to state."""
    rng = np.random.default_rng(seed)
    reward = rng.random((states, arms)).astype(np.float32) + 10.0 * np.arange(states)[
        :, None
    ].astype(np.float32)
    reward = np.concatenate([reward, np.zeros((1, arms), np.float32)])
    transition = np.zeros((states + 1, arms, states + 1), np.float32)
    transition[..., states] = 1.0
    start = np.asarray([1 / states] * states + [0.0], np.float32)
    tables = (transition, reward, np.arange(states + 1) == states, start)
    return tabular.TabularProblem(*map(jax.device_put, tables), max_steps=1)


@functools.cache
def updates_of(config):
    """One for each configuration: other seeds are no reason to trace again."""
    return compile_once(grpo_update, donate=["state"])


def learn(problem, config, seed, updates):
    update = updates_of(config)
    state = grpo_init(
        jax.random.key(seed), problem, tabular.uniform_policy(problem), config
    )
    state, metrics = update(state, problem, config)
    for _ in range(updates - 1):
        state, metrics = update(state, problem, config)
    assert update.trace_count == 1
    return state, metrics


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_finds_the_best_arm_of_every_state(seed):
    """States earn 0, 10, 20, 30: a baseline across states would drown the arms."""
    problem = bandit()
    config = GRPOConfig(states=16, group_size=16, learning_rate=0.05)
    state, _ = learn(problem, config, seed, 60)
    chosen = np.asarray(state.policy.probabilities())[:4].argmax(axis=1)
    np.testing.assert_array_equal(chosen, np.asarray(problem.reward)[:4].argmax(axis=1))


@pytest.mark.parametrize("seed", [0, 1])
def test_reaches_the_optimum_of_the_corridor_by_whole_episodes(seed):
    problem = tabular.corridor(5, lure=0.3, slip=0.05)
    config = GRPOConfig(
        states=8, group_size=8, horizon=20, learning_rate=0.05, discount=0.95
    )
    state, metrics = learn(problem, config, seed, 60)
    start = np.asarray(problem.start, np.float64)
    best = start @ tabular.optimal_values(problem, 0.95)
    found = start @ tabular.policy_values(problem, state.policy.probabilities(), 0.95)
    assert found >= 0.97 * best
    np.testing.assert_allclose(metrics.mean_advantage, 0.0, atol=1e-5)


def test_first_gradient_is_the_policy_gradient(key):
    """At ratio 1 the loss falls along mean(A (onehot(action) - p)): NumPy, float64."""
    problem = bandit()
    config = GRPOConfig(states=8, group_size=8, num_iterations=1, entropy_coeff=0.0)
    policy = tabular.uniform_policy(problem)
    state = grpo_init(key, problem, policy, config)
    _, metrics = single_update(state, problem, config)
    keys = batch_keys(named_key(jax.random.fold_in(state.key, 0), "group"), 8)
    sample = eqx.filter_jit(jax.vmap(sample_group, (0, None, None, 0, None)))
    starts = (state.state, state.observation)
    group, _ = sample(keys, problem, policy, starts, config)
    group, places = jax.device_get((group, state.observation))
    reward = np.asarray(group.reward, np.float64)
    advantage = (reward - reward.mean(1, keepdims=True)) / reward.std(1, keepdims=True)
    gradient = np.zeros((5, 5))
    for s in range(8):
        for g in range(8):
            pull = np.eye(5)[group.first.action[s, g]] - 0.2
            gradient[places[s]] -= advantage[s, g] * pull / 64
    assert float(metrics.grad_norm) == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
    assert float(metrics.policy_loss) == pytest.approx(0.0, abs=1e-5)
    assert float(metrics.approx_kl) == 0.0


def test_best_member_is_where_the_next_update_starts(key):
    """In a corridor without ends in reach, 'best' walks on and 'reset' does not."""
    problem = tabular.corridor(30, lure=0.0)
    problem_reward = jnp.asarray(np.tile([0.0, 1.0], (32, 1)), jnp.float32)
    problem = tabular.TabularProblem(
        problem.transition,
        problem_reward,
        problem.terminal,
        jnp.zeros(32).at[5].set(1.0),
        max_steps=1000,
    )
    config = GRPOConfig(states=4, group_size=32, horizon=3, advance="best")
    state = grpo_init(key, problem, tabular.uniform_policy(problem), config)
    state, _ = single_update(state, problem, config)
    np.testing.assert_array_equal(state.observation, 8)  # three rewarded steps right
    state, _ = single_update(state, problem, config)
    np.testing.assert_array_equal(state.observation, 11)


def test_the_best_member_is_best_before_scaling(key):
    """Scaled rewards saturate and tie; the arm that earned most must be executed."""
    reward = jnp.asarray([[20.0, 30.0, 25.0], [0.0, 0.0, 0.0]])
    stay = jnp.zeros((2, 3, 2)).at[:, :, 0].set(1.0)
    problem = Remember(
        tabular.TabularProblem(
            stay, reward, jnp.zeros(2, bool), jnp.asarray([1.0, 0.0]), max_steps=99
        )
    )
    config = GRPOConfig(
        states=3, group_size=64, reward_scaling="clip", advance="best", horizon=1
    )
    policy = tabular.uniform_policy(problem.problem)
    state = grpo_init(key, problem, policy, config)
    state, metrics = single_update(state, problem, config)
    np.testing.assert_array_equal(state.state[1], 1)  # the last action taken
    assert float(metrics.group_baseline) == 10.0  # scaled, and what was earned is not
    assert 20.0 < float(metrics.mean_reward) < 30.0


class Remember(eqx.Module):
    """A tabular problem whose state remembers the last action."""

    problem: tabular.TabularProblem

    def reset(self, key):
        state, observation = self.problem.reset(key)
        return (state, jnp.asarray(-1)), observation

    def step(self, key, state, action):
        after = self.problem.step(key, state[0], action)
        return eqx.tree_at(lambda s: s.state, after, (after.state, action))


class Fading(eqx.Module):
    """Undefined where nothing is left: 0 / 0 at the end of an episode."""

    bias: jax.Array

    def _logits(self, observation):
        return self.bias * (observation / observation)

    def sample(self, key, observation):
        logits = jax.nn.log_softmax(self._logits(observation))
        action = jax.random.categorical(key, logits)
        return Choice(action, logits[action], jnp.zeros(()))

    def evaluate(self, observation, action):
        logits = jax.nn.log_softmax(self._logits(observation))
        entropy = -(jnp.exp(logits) * logits).sum()
        return Evaluation(logits[action], entropy, jnp.zeros(()))


class Countdown(eqx.Module):
    """Three steps, then the observation is 0; earns the action."""

    def reset(self, key):
        return jnp.asarray(3.0), jnp.asarray(3.0)

    def step(self, key, state, action):
        left = state - 1
        reward = action.astype(jnp.float32)
        return Step(left, left, reward, left <= 0, jnp.zeros((), bool))


def test_steps_after_the_end_leave_no_trace(key):
    config = GRPOConfig(states=4, group_size=8, horizon=6, learning_rate=0.05)
    state = grpo_init(key, Countdown(), Fading(jnp.zeros(3)), config)
    update = compile_once(grpo_update)
    for _ in range(20):
        state, metrics = update(state, Countdown(), config)
        assert np.isfinite(metrics.total_loss)
    assert int(state.policy.bias.argmax()) == 2


def test_reward_scaling():
    rewards = np.asarray([-50.0, 1.0, 50.0], np.float32)
    expected = {
        "none": rewards,
        "clip": [-10.0, 1.0, 10.0],
        "tanh": 10 * np.tanh(rewards / 10),
    }
    assert set(REWARD_SCALINGS) == set(expected)
    for name, scaled in expected.items():
        np.testing.assert_allclose(REWARD_SCALINGS[name](rewards), scaled, rtol=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"group_size": 1}, "group_size is 1: give a whole number from 2"),
        ({"reward_scaling": "log"}, "'log': give one of none, tanh, clip"),
        ({"advance": "worst"}, "'worst': give one of reset, best"),
    ],
)
def test_bad_configurations_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        GRPOConfig(**values)
