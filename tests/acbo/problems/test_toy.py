import numpy as np
from scipy.integrate import quad

from acbo.problems.toy import toy_graph, two_bumps
from causal_problems import assert_means_follow_the_model, assert_no_better_on_a_grid


def density(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def test_toy_graph_landmarks():
    problem = toy_graph()
    assert problem.optimum.intervention["Z"] == np.round(-3.2003028, 7)
    assert round(problem.optimum.outcome, 4) == -2.1718
    np.testing.assert_allclose(problem.observational_mean, -0.719, atol=2e-3)
    xs = np.linspace(-5, 5, 1001)
    outcomes = [problem.expected_outcome({"X": x}) for x in xs]
    np.testing.assert_allclose(min(outcomes), -1.463, atol=2e-3)
    np.testing.assert_allclose(xs[np.argmin(outcomes)], -1.125, atol=0.01)
    zs = np.linspace(-5, 20, 5001)
    ys = np.array([problem.expected_outcome({"Z": z}) for z in zs])
    dips = zs[1:-1][(ys[1:-1] < ys[:-2]) & (ys[1:-1] < ys[2:])]
    np.testing.assert_allclose(dips, [-3.2003, 3.10, 9.39, 15.69], atol=0.01)


def test_toy_graph_by_adaptive_integration():
    problem = toy_graph()
    for x in (-1.125, 0.0, 2.0):
        outcome = lambda e, x=x: problem.mean({"Z": np.exp(-x) + e}) * density(e)
        expected = quad(outcome, -7, 7, epsabs=1e-10)[0]
        np.testing.assert_allclose(
            problem.expected_outcome({"X": x}), expected, atol=1e-8
        )


def test_toy_graph_optimum_and_model():
    problem = toy_graph()
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 1001)
    assert problem.best_pair is None
    assert_means_follow_the_model(problem, [{}, {"X": -1.125}, {"Z": 4.0}])


def test_two_bumps_landmarks_and_model():
    problem = two_bumps()
    assert problem.best_pair is not None
    np.testing.assert_allclose(problem.best_pair.outcome, -2.0068, atol=1e-4)
    pair = problem.best_pair.intervention
    assert {name: round(value, 2) for name, value in pair.items()} == {
        "X": 0.99,
        "Z": 1.00,
    }
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 1001)
    assert_no_better_on_a_grid(problem, problem.best_pair, 2, 61)
    assert_means_follow_the_model(problem, [{}, {"Z": 0.8}, dict(pair)])


def test_two_bumps_by_integration():
    problem = two_bumps()
    inner = lambda x: problem.mean({"X": x, "Z": 0.5}) * density(x)
    expected = quad(inner, -8, 8, epsabs=1e-10)[0]
    np.testing.assert_allclose(problem.mean({"Z": 0.5}), expected, atol=1e-8)
