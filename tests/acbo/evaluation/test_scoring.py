import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.environment import Action
from acbo.evaluation.scoring import (
    Protocol,
    Task,
    find_optimum,
    score_episode,
    score_parents,
)
from causal_linear import draw_history, edges, linear_scm

SCM = linear_scm(edges(3, e02=2.0, e12=-1.0), 2, noise=0.1)
HISTORY = draw_history(SCM, observational=3, interventional=2, capacity=7)


class Fixed:
    """Always the same beliefs and the same two actions in turn."""

    def __init__(self, sets=None):
        self.sets = sets

    def predict(self, values, intervened, row_mask, var_mask, target):
        assert values.shape == (5, 3)
        return jnp.array([0.9, 0.3, 0.99]), self.sets

    def propose(self, key, history, spec, truth):
        first = history.count == 5
        return Action(jnp.where(first, 1, 0), jnp.where(first, 3.0, -1.5))


def score(predictor):
    task = Task(SCM, HISTORY, jax.random.key(0))
    return jax.jit(lambda t: score_parents(t, predictor, Protocol(), 5))(task)


def test_parents_are_judged_without_the_target():
    single = score(Fixed()).single
    assert float(single["recall"]) == 0.5
    assert float(single["precision"]) == 1.0
    assert float(single["shd"]) == 1.0
    expected = -(np.log(0.9) + np.log(0.3)) / 2
    assert float(single["log_loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(score(Fixed()).reliability.count.sum()) == 2
    assert "set_log_loss" not in single


def test_beliefs_over_sets_are_judged_by_the_true_set():
    members = jnp.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], bool)
    right = score(Fixed((jnp.log(jnp.array([0.1, 0.2, 0.7])), members))).single
    assert float(right["exact_set"]) == 1.0
    assert float(right["set_log_loss"]) == pytest.approx(-np.log(0.7), rel=1e-5)
    never = score(Fixed((jnp.log(jnp.array([0.5, 0.5, 0.0])), members))).single
    assert float(never["exact_set"]) == 0.0
    assert np.isfinite(float(never["set_log_loss"]))


@pytest.mark.parametrize(
    ("direction", "optimum", "regret", "total"),
    [
        ("MINIMIZE", -4.0, [1.0, 1.0], [1.0, 2.0]),
        ("MAXIMIZE", 6.0, [9.0, 9.0], [9.0, 18.0]),
    ],
)
def test_regret_is_that_of_the_true_means(direction, optimum, regret, total):
    """do(X1 = 3) gives -3 and do(X0 = -1.5) gives -3; the ends give -4 and 6."""
    protocol = Protocol(direction=direction, grid=3, draws=4)

    @jax.jit
    def play(task):
        best = find_optimum(task, protocol)
        return best, score_episode((task, best), Fixed(), protocol, 2)

    best, scores = play(Task(SCM, HISTORY, jax.random.key(3)))
    assert float(best) == pytest.approx(optimum, abs=1e-5)
    np.testing.assert_allclose(scores.curves["simple_regret"], regret, atol=1e-4)
    np.testing.assert_allclose(scores.curves["cumulative_regret"], total, atol=1e-4)
    assert float(scores.single["parent_rate"]) == 1.0
    assert float(scores.single["simple_regret"]) == pytest.approx(regret[-1], abs=1e-4)
