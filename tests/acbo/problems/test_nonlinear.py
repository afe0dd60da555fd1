import numpy as np
from scipy.integrate import quad

from acbo.problems import nonlinear
from causal_problems import assert_means_follow_the_model, assert_no_better_on_a_grid


def density(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def test_toy_graph_landmarks():
    problem = nonlinear.toy_graph()
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
    problem = nonlinear.toy_graph()
    for x in (-1.125, 0.0, 2.0):
        outcome = lambda e, x=x: problem.mean({"Z": np.exp(-x) + e}) * density(e)
        expected = quad(outcome, -7, 7, epsabs=1e-10)[0]
        np.testing.assert_allclose(
            problem.expected_outcome({"X": x}), expected, atol=1e-8
        )


def test_toy_graph_optimum_and_model():
    problem = nonlinear.toy_graph()
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 1001)
    assert problem.best_pair is None
    assert_means_follow_the_model(problem, [{}, {"X": -1.125}, {"Z": 4.0}])


def test_two_bumps_landmarks_and_model():
    problem = nonlinear.two_bumps()
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
    problem = nonlinear.two_bumps()
    inner = lambda x: problem.mean({"X": x, "Z": 0.5}) * density(x)
    expected = quad(inner, -8, 8, epsabs=1e-10)[0]
    np.testing.assert_allclose(problem.mean({"Z": 0.5}), expected, atol=1e-8)


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
    problem, random = nonlinear.complete_graph(), np.random.default_rng(0)
    cases = [{}, {"B": -5.0}, {"B": -5.0, "D": 3.343}, {"D": 3.343, "E": -1.3}]
    for do in [*cases, {"F": 1.0}, {"E": 2.0, "B": 1.0}, {"D": 0.0, "F": 2.0}]:
        drawn = naive_complete(random, do)
        np.testing.assert_allclose(problem.expected_outcome(do), drawn, atol=0.03)


def test_complete_graph_landmarks():
    problem = nonlinear.complete_graph()
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
    problem = nonlinear.complete_graph()
    assert problem.best_pair is not None
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 19)
    assert_no_better_on_a_grid(problem, problem.best_pair, 2, 5)
    # Near the optimum the outcome oscillates with B.
    around = [problem.expected_outcome({"B": b}) for b in np.linspace(-5, -4, 21)]
    assert np.argmin(around) == 0


def test_complete_graph_model():
    problem = nonlinear.complete_graph()
    cases = [{"B": -5.0}, {"B": -5.0, "D": 3.343}, {"E": 2.0, "F": 1.0}]
    assert_means_follow_the_model(problem, cases)
    assert problem.scm.hidden == ("U1", "U2")


def test_synthetic2_landmarks_and_model():
    problem, random = nonlinear.synthetic2(), np.random.default_rng(0)
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    assert pair.intervention == {**best.intervention, "E": -1.0}
    assert round(pair.outcome, 2) == -1.80
    assert round(best.outcome, 2) == -1.21
    np.testing.assert_allclose(problem.observational_mean, 0.346, atol=2e-3)
    cases = [{}, {"A": -5.0}, {"A": -5.0, "E": -1.0}, {"D": 0.5}, {"A": 1.0, "D": -1.0}]
    for do in cases:
        drawn = naive_second(random, do)
        np.testing.assert_allclose(problem.expected_outcome(do), drawn, atol=0.03)
    # The optimum lies 0.028 inside the range of A: only a fine grid tells.
    assert_no_better_on_a_grid(problem, best, 1, 1001)
    assert_no_better_on_a_grid(problem, pair, 2, 11)
    beside = [problem.expected_outcome({"A": a, "E": -1.0}) for a in (-5.0, -4.95)]
    assert pair.outcome < min(beside)
    assert_means_follow_the_model(problem, [{"A": -5.0}, {"D": 0.5}, {"E": 1.0}])


def test_psa_landmarks_and_model():
    problem = nonlinear.psa()
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
    problem = nonlinear.epidemic_static()
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    for do in ({}, {"vaccines": 1.5}, {"distance": -1.0}, dict(pair.intervention)):
        expected = naive_cost(do)
        np.testing.assert_allclose(problem.expected_outcome(do), expected, atol=0.01)
    assert_no_better_on_a_grid(problem, best, 1, 401)
    assert_no_better_on_a_grid(problem, pair, 2, 41)
    assert best.outcome < problem.observational_mean
    assert_means_follow_the_model(problem, [{}, dict(best.intervention)])
