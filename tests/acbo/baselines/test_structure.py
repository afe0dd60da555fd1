import jax
import numpy as np
import pytest

from acbo.baselines import structure
from acbo.baselines.registry import predictors, proposers
from acbo.posterior.scores import regression_t
from causal_linear import draw_history, edges, linear_scm

# 0 causes 1 causes the target 2; 3 has nothing to do with it.
SCM = linear_scm(edges(4, e01=1.0, e12=2.0), 2)


def data():
    history = draw_history(SCM, observational=30, interventional=10, capacity=50)
    return history.values, history.intervened, history.row_mask, SCM.mask, SCM.target


@pytest.mark.parametrize(
    ("predictor", "expected"),
    [
        (structure.Constant(1.0), [1, 1, 0, 1]),
        (structure.Constant(0.0), [0, 0, 0, 0]),
        (structure.Correlation(), [0, 1, 0, 0]),
        (structure.Correlation(count=2), [1, 1, 0, 0]),
    ],
)
def test_who_is_called_a_parent(predictor, expected):
    probs, sets = jax.jit(predictor.predict)(*data())
    assert sets is None
    assert (np.asarray(probs) > 0.5).tolist() == [bool(x) for x in expected]
    assert (np.abs(np.asarray(probs) - 0.5) <= 0.5).all()


def test_regression_is_half_sure_at_the_threshold():
    t = abs(float(jax.jit(regression_t)(*data())[1]))
    probs, _ = jax.jit(structure.Regression(threshold=t).predict)(*data())
    assert float(probs[1]) == pytest.approx(0.5, abs=1e-3)
    assert (np.asarray(probs)[[0, 2, 3]] < 0.5).all()


def test_the_posterior_knows_a_child_where_local_scores_do_not():
    scm = linear_scm(edges(4, e01=1.0, e12=2.0, e23=1.5), 2)
    seen = draw_history(scm, observational=60, interventional=30, capacity=90)
    given = (seen.values, seen.intervened, seen.row_mask, scm.mask, scm.target)
    for predictor, child in (
        (structure.exact_predictor(2), False),
        (structure.local_predictor(2), True),
    ):
        probs, (logs, held) = jax.jit(predictor.predict)(*given)
        assert (np.asarray(probs) > 0.5).tolist() == [False, True, False, child]
        chance = np.exp(np.asarray(logs, np.float64))
        assert chance.sum() == pytest.approx(1.0, abs=1e-3)
        np.testing.assert_allclose(probs, chance @ np.asarray(held), atol=1e-3)


def test_every_baseline_is_listed_once_with_what_it_does():
    assert all(hasattr(system, "propose") for system in proposers().values())
    assert all(hasattr(system, "predict") for system in predictors().values())
    assert not proposers().keys() & predictors().keys()
