"""Oracle: closed forms of the corridor, and simulation against the linear solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.learn.rollout import rollout, start_runner
from jaxrig.learn.tabular import (
    TabularProblem,
    corridor,
    optimal_values,
    policy_values,
    uniform_policy,
)


def test_optimal_values_of_the_corridor_in_closed_form():
    length, discount, lure = 6, 0.9, 0.1
    cells = np.arange(length)
    left = lure * discount**cells
    right = discount ** (length - 1 - cells)
    found = optimal_values(corridor(length, lure), discount)
    np.testing.assert_allclose(found[:length], np.maximum(left, right), atol=1e-7)
    np.testing.assert_array_equal(found[length:], 0.0)


def test_value_of_the_best_policy_is_the_optimal_value():
    problem = corridor(5, slip=0.2)
    best = optimal_values(problem, 0.95)
    always_right = np.tile([0.0, 1.0], (7, 1))
    np.testing.assert_allclose(policy_values(problem, always_right, 0.95), best)


def test_gambler_formula_for_the_uniform_policy():
    problem = corridor(5, lure=0.0)
    policy = uniform_policy(problem)
    found = policy_values(problem, np.asarray(policy.probabilities()), 1.0 - 1e-12)
    np.testing.assert_allclose(found[:5], np.arange(1, 6) / 6, atol=1e-6)


def test_simulated_returns_agree_with_the_linear_solve(key):
    known = corridor(4, slip=0.1)
    tables = (known.transition, known.reward, known.terminal, known.start)
    problem = TabularProblem(*tables, max_steps=10_000)  # never cut short
    policy = uniform_policy(problem)
    runner = start_runner(key, problem, 256)
    _, _, episodes = jax.jit(rollout, static_argnums=4)(
        key, problem, policy, runner, 400
    )
    exact = policy_values(problem, np.asarray(policy.probabilities()), 1.0 - 1e-12)
    expected = float(np.asarray(problem.start) @ exact)
    assert int(episodes.count) > 5000
    assert float(episodes.mean_return) == pytest.approx(expected, abs=0.02)


def test_probabilities_and_rewards_are_consistent():
    problem = corridor(3, slip=0.25)
    np.testing.assert_allclose(problem.transition.sum(axis=2), 1.0)
    np.testing.assert_allclose(problem.reward[2], [0.25, 0.75])
    assert jnp.isclose(problem.start.sum(), 1.0)
    with pytest.raises(ValueError, match=r"slip=0\.7"):
        corridor(slip=0.7)
