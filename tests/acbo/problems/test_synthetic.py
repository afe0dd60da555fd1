import numpy as np

from acbo.problems.synthetic import complete_graph, synthetic2
from causal_problems import assert_means_follow_the_model, assert_no_better_on_a_grid

DRAWS = 200_000


def naive_complete(random, do):
    """The equations of the table, one NumPy line each."""
    e = lambda: random.standard_normal(DRAWS)
    u1, u2 = e(), e()
    f = do.get("F", e())
    a = f**2 + u1 + e()
    b = do.get("B", u2 + e())
    c = np.exp(-b) + e()
    d = do.get("D", np.exp(-c) / 10 + e())
    x = do.get("E", np.cos(a) + c / 10 + e())
    return np.mean(np.cos(d) - d / 5 + np.sin(x) - x / 4 + u1 + np.exp(-u2))


def naive_second(random, do):
    e = lambda: random.standard_normal(DRAWS)
    a, b = do.get("A", e()), e()
    c = np.exp(-a) / 5 + e()
    d = do.get("D", np.cos(b) + c / 10 + e())
    x = do.get("E", np.exp(-c) / 10 + e())
    return np.mean(np.cos(d) - d / 5 + np.sin(x) - x / 4)


def test_complete_graph_against_naive_draws():
    problem, random = complete_graph(), np.random.default_rng(0)
    cases = [{}, {"B": -5.0}, {"B": -5.0, "D": 3.343}, {"D": 3.343, "E": -1.3}]
    for do in [*cases, {"F": 1.0}, {"E": 2.0, "B": 1.0}, {"D": 0.0, "F": 2.0}]:
        drawn = naive_complete(random, do)
        np.testing.assert_allclose(problem.expected_outcome(do), drawn, atol=0.03)


def test_complete_graph_landmarks():
    problem = complete_graph()
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    assert best.intervention == {"B": -5.0}
    np.testing.assert_allclose(best.outcome, -1.22, atol=0.01)
    np.testing.assert_allclose(pair.outcome, -3.486, atol=5e-3)
    assert round(pair.intervention["D"], 3) == 3.343
    np.testing.assert_allclose(problem.observational_mean, 2.308, atol=5e-3)
    grid = [
        problem.expected_outcome({"D": d, "E": x})
        for d in np.linspace(3.3, 3.4, 11)
        for x in np.linspace(-1.4, -1.2, 21)
    ]
    np.testing.assert_allclose(min(grid), -0.638, atol=1e-3)


def test_complete_graph_optimum():
    problem = complete_graph()
    assert problem.best_pair is not None
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 19)
    assert_no_better_on_a_grid(problem, problem.best_pair, 2, 5)
    # Near the optimum the outcome oscillates with B.
    around = [problem.expected_outcome({"B": b}) for b in np.linspace(-5, -4, 21)]
    assert np.argmin(around) == 0


def test_complete_graph_model():
    problem = complete_graph()
    cases = [{"B": -5.0}, {"B": -5.0, "D": 3.343}, {"E": 2.0, "F": 1.0}]
    assert_means_follow_the_model(problem, cases)
    assert problem.scm.hidden == ("U1", "U2")


def test_synthetic2_landmarks_and_model():
    problem, random = synthetic2(), np.random.default_rng(0)
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    assert pair.intervention == {"A": -5.0, "E": -1.0}
    assert round(pair.outcome, 2) == -1.80
    assert round(best.outcome, 2) == -1.21
    np.testing.assert_allclose(problem.observational_mean, 0.346, atol=2e-3)
    cases = [{}, {"A": -5.0}, {"A": -5.0, "E": -1.0}, {"D": 0.5}, {"A": 1.0, "D": -1.0}]
    for do in cases:
        drawn = naive_second(random, do)
        np.testing.assert_allclose(problem.expected_outcome(do), drawn, atol=0.03)
    assert_no_better_on_a_grid(problem, best, 1, 101)
    assert_no_better_on_a_grid(problem, pair, 2, 11)
    assert_means_follow_the_model(problem, [{"A": -5.0}, {"D": 0.5}, {"E": 1.0}])
