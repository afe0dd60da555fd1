import numpy as np
import pytest

from acbo.named.samples import create_perfect_intervention, create_soft_intervention
from acbo.problems.problem import (
    gaussian_rule,
    linear_problem,
    point_rule,
    uniform_rule,
)
from causal_models import triangle
from causal_problems import assert_no_better_on_a_grid


@pytest.mark.parametrize("direction", ["MINIMIZE", "MAXIMIZE"])
def test_linear_optima_beat_every_grid_point(direction):
    ranges = {"A": (-1.0, 3.0), "B": (-2.0, 0.5)}
    problem = linear_problem("t", triangle(ranges=ranges), direction)
    assert problem.best_pair is not None
    assert_no_better_on_a_grid(problem, problem.optimum, 1, 41)
    assert_no_better_on_a_grid(problem, problem.best_pair, 2, 11)


def test_means_by_hand():
    problem = linear_problem("t", triangle())
    assert problem.target == "C"
    assert problem.ranges == {"A": (-5.0, 5.0), "B": (-5.0, 5.0)}
    np.testing.assert_allclose(problem.observational_mean, 0.3 - 1.5 + 1.6)
    np.testing.assert_allclose(problem.expected_outcome(), 0.4)
    np.testing.assert_allclose(problem.expected_outcome({"A": 2}), 0.3 - 3 + 3.2)
    assert problem.optimum.intervention == {"B": -5.0}
    np.testing.assert_allclose(problem.optimum.outcome, 0.3 - 1.5 - 10)


def test_intervention_objects_are_read_too():
    problem = linear_problem("t", triangle())
    perfect = create_perfect_intervention({"A"}, {"A": 2.0})
    found = problem.expected_outcome(perfect)
    assert found == problem.expected_outcome({"A": 2.0})
    soft = create_soft_intervention({"A"}, shift={"A": 2.0})
    with pytest.raises(ValueError, match="of a soft intervention is not known"):
        problem.expected_outcome(soft)


def test_a_pair_that_helps_nothing_is_left_out():
    scm = triangle(coefficients={("A", "B"): 1.0, ("B", "C"): 1.0})
    assert linear_problem("t", scm).best_pair is None


def test_a_range_without_ends_is_refused():
    with pytest.raises(ValueError, match="endless: A, B may be set to anything"):
        linear_problem("endless", triangle(ranges=None))


def test_gaussian_moments_and_waves():
    nodes, weights = gaussian_rule(1.5)
    np.testing.assert_allclose(weights @ nodes**2, 1.5**2)
    np.testing.assert_allclose(weights @ nodes**4, 3 * 1.5**4)
    np.testing.assert_allclose(weights @ np.cos(3 * nodes), np.exp(-(4.5**2) / 2))


def test_uniform_and_point():
    nodes, weights = uniform_rule(55.0, 75.0)
    np.testing.assert_allclose(weights @ nodes, 65.0)
    np.testing.assert_allclose(weights @ (nodes - 65) ** 2, 400 / 12)
    nodes, weights = point_rule(2.0)
    assert weights @ nodes**3 == 8.0
