import numpy as np

from acbo.problems.health import epidemic_static, psa
from causal_problems import assert_means_follow_the_model, assert_no_better_on_a_grid


def test_psa_landmarks_and_model():
    problem = psa()
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    assert best.intervention == {"S": 1.0}
    assert pair.intervention == {"A": 0.0, "S": 1.0}
    found = best.outcome, pair.outcome, problem.observational_mean
    assert [round(value, 3) for value in found] == [5.344, 5.155, 5.806]
    assert_no_better_on_a_grid(problem, best, 1, 21)
    assert_no_better_on_a_grid(problem, pair, 2, 6)
    assert_means_follow_the_model(problem, [{}, {"S": 1.0}, {"A": 0.3}], error=0.02)


def naive_cost(do, draws=400_000):
    """The equations of the docstring, one NumPy line each."""
    random = np.random.default_rng(0)
    e = lambda: random.standard_normal(draws)
    risk = e()
    v = do.get("vaccines", 0.5 * risk + 0.5 * e())
    d = do.get("distance", 0.7 * risk - 0.4 * v + 0.5 * e())
    growth = 0.2 + 0.6 * risk - 0.5 * v - 0.6 * d + 0.3 * e()
    return np.mean(np.exp(growth / 2) + 0.3 * d**2 + 0.1 * v**2)


def test_epidemic_optimum_and_model():
    problem = epidemic_static()
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    for do in ({}, {"vaccines": 1.5}, {"distance": -1.0}, dict(pair.intervention)):
        expected = naive_cost(do)
        np.testing.assert_allclose(problem.expected_outcome(do), expected, atol=0.01)
    assert_no_better_on_a_grid(problem, best, 1, 401)
    assert_no_better_on_a_grid(problem, pair, 2, 41)
    assert best.outcome < problem.observational_mean
    assert_means_follow_the_model(problem, [{}, dict(best.intervention)])
