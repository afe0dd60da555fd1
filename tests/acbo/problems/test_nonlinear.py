"""Means against the equations, one NumPy line each, and optima against grids."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from acbo.problems import get
from causal_problems import assert_means_follow_the_model, assert_no_better_on_a_grid

DRAWS = 200_000


def toy(e, do):
    z = do.get("Z", np.exp(-do.get("X", e())) + e())
    return np.cos(z) - np.exp(-z / 20)


def bumps(e, do):
    x, z = do.get("X", e()), do.get("Z", e())
    return -2 * np.exp(-((x - 1) ** 2) - (z - 1) ** 2) - np.exp(-((x + 1) ** 2) - z**2)


def complete(e, do):
    u1, u2 = e(), e()
    a = do.get("F", e()) ** 2 + u1 + e()
    c = np.exp(-do.get("B", u2 + e())) + e()
    d = do.get("D", np.exp(-c) / 10 + e())
    x = do.get("E", np.cos(a) + c / 10 + e())
    return np.cos(d) - d / 5 + np.sin(x) - x / 4 + u1 + np.exp(-u2)


def second(e, do):
    c = np.exp(-do.get("A", e())) / 5 + e()
    d = do.get("D", np.cos(e()) + c / 10 + e())
    x = do.get("E", np.exp(-c) / 10 + e())
    return np.cos(d) - d / 5 + np.sin(x) - x / 4


def psa(e, do):
    age = np.random.default_rng(5).uniform(55, 75, DRAWS)
    bmi = 27 - 0.01 * age + 0.7 * e()
    a = do.get("A", expit(-8 + 0.10 * age + 0.03 * bmi))
    s = do.get("S", expit(-13 + 0.10 * age + 0.20 * bmi))
    cancer = expit(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * s + 0.02 * a)
    return 6.8 + 0.04 * age - 0.15 * bmi - 0.60 * s + 0.55 * a + cancer


def epidemic(e, do):
    risk = e()
    v = do.get("vaccines", 0.5 * risk + 0.5 * e())
    d = do.get("distance", 0.7 * risk - 0.4 * v + 0.5 * e())
    growth = 0.2 + 0.6 * risk - 0.5 * v - 0.6 * d + 0.3 * e()
    return np.exp(growth / 2) + 0.3 * d**2 + 0.1 * v**2


CASES = {  # interventions, then those that the model itself is asked about
    "toy_graph": (toy, [{}, {"X": -1.125}, {"Z": 4.0}], 3),
    "two_bumps": (bumps, [{}, {"Z": 0.8}, {"X": 0.99, "Z": 1.0}], 3),
    "complete_graph": (
        complete,
        [
            *({"B": -5.0}, {"B": -5.0, "D": 3.343}, {"E": 2.0, "F": 1.0}, {}),
            *({"D": 3.343, "E": -1.3}, {"F": 1.0}, {"E": 2.0, "B": 1.0}),
            {"D": 0.0, "F": 2.0},
        ],
        3,
    ),
    "synthetic2": (
        second,
        [{"A": -5.0}, {"D": 0.5}, {}, {"A": -5.0, "E": -1.0}, {"A": 1.0, "D": -1.0}],
        2,
    ),
    "psa": (psa, [{}, {"S": 1.0}, {"A": 0.3}], 3),
    "epidemic_static": (
        epidemic,
        [{}, {"distance": 0.49}, {"vaccines": 1.5}, {"vaccines": 1.0, "distance": 0.4}],
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_means_are_those_of_the_equations_and_of_the_model(name):
    problem, random = get(name), np.random.default_rng(0)
    equations, cases, asked = CASES[name]
    for do in cases:
        drawn = equations(lambda: random.standard_normal(DRAWS), do)
        expected = problem.expected_outcome(do)
        np.testing.assert_allclose(expected, drawn.mean(), atol=0.03)
    error = 0.02 if name == "psa" else 0.05
    assert_means_follow_the_model(problem, cases[:asked], error=error)


@pytest.mark.parametrize(
    ("name", "single", "pair", "known", "within"),
    [
        ("toy_graph", 1001, 0, (-2.1718, -0.719), 2e-3),
        ("two_bumps", 1001, 61, (None, None, -2.0068), 1e-4),
        ("complete_graph", 19, 5, (-1.22, 2.308, -3.486), 1e-2),
        # The optimum lies 0.028 inside the range of A: only a fine grid tells.
        ("synthetic2", 1001, 11, (-1.21, 0.346, -1.80), 5e-3),
        ("psa", 21, 6, (5.344, 5.806, 5.155), 5e-4),
        ("epidemic_static", 401, 41, (None, None, None), 0),
    ],
)
def test_optima_and_landmarks(name, single, pair, known, within):
    """Known are the best of single variables, the mean at rest, the best of pairs."""
    problem = get(name)
    found = [problem.optimum.outcome, problem.observational_mean]
    assert_no_better_on_a_grid(problem, problem.optimum, 1, single)
    assert (problem.best_pair is not None) == bool(pair)
    if problem.best_pair is not None:
        assert_no_better_on_a_grid(problem, problem.best_pair, 2, pair)
        found.append(problem.best_pair.outcome)
    for value, wanted in zip(found, known, strict=True):
        assert wanted is None or value == pytest.approx(wanted, abs=within)


def test_where_the_optima_are():
    toy_graph, bumps = get("toy_graph"), get("two_bumps").best_pair
    assert toy_graph.optimum.intervention["Z"] == np.round(-3.2003028, 7)
    assert round(toy_graph.optimum.outcome, 4) == -2.1718
    assert bumps is not None
    assert [round(x, 2) for x in bumps.intervention.values()] == [0.99, 1.00]
    problem = get("complete_graph")
    assert problem.scm.hidden == ("U1", "U2")
    assert problem.optimum.intervention == {"B": -5.0}
    assert problem.best_pair is not None
    assert round(problem.best_pair.intervention["D"], 3) == 3.343
    found = problem.best_pair.outcome, problem.observational_mean
    np.testing.assert_allclose(found, [-3.486, 2.308], atol=5e-3)
    # Near the optimum the outcome oscillates with B.
    around = [problem.expected_outcome({"B": b}) for b in np.linspace(-5, -4, 21)]
    assert np.argmin(around) == 0
    grid = [
        problem.expected_outcome({"D": d, "E": x})
        for d in np.linspace(3.3, 3.4, 11)
        for x in np.linspace(-1.4, -1.2, 21)
    ]
    np.testing.assert_allclose(min(grid), -0.638, atol=1e-3)
    problem = get("synthetic2")
    best, pair = problem.optimum, problem.best_pair
    assert pair is not None
    assert pair.intervention == {**best.intervention, "E": -1.0}
    beside = [problem.expected_outcome({"A": a, "E": -1.0}) for a in (-5.0, -4.95)]
    assert pair.outcome < min(beside)
    problem = get("psa")
    assert problem.optimum.intervention == {"S": 1.0}
    assert problem.best_pair is not None
    assert problem.best_pair.intervention == {"A": 0.0, "S": 1.0}


def test_toy_graph_along_its_ranges():
    problem = get("toy_graph")
    xs = np.linspace(-5, 5, 1001)
    outcomes = [problem.expected_outcome({"X": x}) for x in xs]
    np.testing.assert_allclose(min(outcomes), -1.463, atol=2e-3)
    np.testing.assert_allclose(xs[np.argmin(outcomes)], -1.125, atol=0.01)
    zs = np.linspace(-5, 20, 5001)
    ys = np.array([problem.expected_outcome({"Z": z}) for z in zs])
    dips = zs[1:-1][(ys[1:-1] < ys[:-2]) & (ys[1:-1] < ys[2:])]
    np.testing.assert_allclose(dips, [-3.2003, 3.10, 9.39, 15.69], atol=0.01)


def test_quadrature_is_that_of_adaptive_integration():
    density = lambda x: np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    problem = get("toy_graph")
    for x in (-1.125, 0.0, 2.0):
        outcome = lambda e, x=x: problem.mean({"Z": np.exp(-x) + e}) * density(e)
        expected = quad(outcome, -7, 7, epsabs=1e-10)[0]
        found = problem.expected_outcome({"X": x})
        np.testing.assert_allclose(found, expected, atol=1e-8)
    mean = get("two_bumps").mean
    inner = lambda x: mean({"X": x, "Z": 0.5}) * density(x)
    expected = quad(inner, -8, 8, epsabs=1e-10)[0]
    np.testing.assert_allclose(mean({"Z": 0.5}), expected, atol=1e-8)
