"""A run is judged by true means, however lucky its outcomes were."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.environment import Action
from acbo.problems import get
from acbo.runs import run_problem, true_edges
from acbo.scm import set_variables


class Fixed(eqx.Module):
    """Sets the first variable to ever lower values."""

    def propose(self, key, history, setting, truth):
        return Action(jnp.asarray(0), 4.0 - history.count.astype(jnp.float32))


def test_steps_shares_and_the_best():
    problem = get("simple")  # E[Y | do(X = x)] = 2 x, at best -10
    run = run_problem(problem, Fixed(), steps=3, rows=4)
    assert run.interventions == ({"X": 0.0}, {"X": -1.0}, {"X": -2.0})
    np.testing.assert_allclose(run.expected, [0.0, -2.0, -4.0])
    np.testing.assert_allclose(run.shares, [0.0, 0.2, 0.4])
    assert run.best == 2
    assert run.record.history.values.shape == (7, 3)
    again = run_problem(problem, Fixed(), steps=3, rows=4)
    np.testing.assert_array_equal(run.outcomes, again.outcomes)


class Both(eqx.Module):
    """Sets the first two variables to one and two less at each step."""

    def propose(self, key, history, setting, truth):
        value = 4.0 - history.count.astype(jnp.float32)
        mask = jnp.arange(setting.mask.shape[0]) < 2
        lower = jnp.arange(1.0, 1.0 + mask.shape[0])
        return set_variables(mask, value - lower)


def test_pairs_are_judged_together():
    problem = get("toy_graph")
    run = run_problem(problem, Both(), steps=2, rows=4)
    first, second = problem.scm.names[:2]
    made = [{first: -1.0, second: -2.0}, {first: -2.0, second: -3.0}]
    assert list(run.interventions) == made
    expected = [problem.expected_outcome(each) for each in made]
    np.testing.assert_allclose(run.expected, expected)
    assert run.record.history.intervened[4:].sum() == 4


@pytest.mark.parametrize(("name", "count"), [("simple", 2), ("toy_graph", 2)])
def test_true_edges_are_those_of_the_model(name, count):
    edges = true_edges(get(name))
    names = get(name).scm.names
    assert edges.sum() == count
    assert all(not edges[i, i] for i in range(len(names)))
