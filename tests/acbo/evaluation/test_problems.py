import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines.proposers import Oracle, Random
from acbo.environment import problem_spec
from acbo.evaluation.evaluate import evaluate_problems
from acbo.history import History
from acbo.problems import get

SYSTEMS = {"random": Random(), "oracle": Oracle(grid=65, draws=64, clip_to_range=False)}


@pytest.fixture(scope="module")
def report():
    return evaluate_problems(
        SYSTEMS, ["toy_graph"], runs=4, steps=2, observational=5, references=["random"]
    )


def test_the_oracle_goes_nearly_all_the_way_and_random_less(report):
    oracle = report.result("oracle", "problems", family="toy_graph")
    random = report.result("random", "problems", family="toy_graph")
    assert oracle.scores["share"].min() > 0.95
    assert random.scores["share"].mean() < oracle.scores["share"].mean() <= 1 + 1e-6
    assert (np.diff(random.curves["share"], axis=1) >= 0).all()


def test_outcome_and_regret_belong_to_the_share(report):
    problem = get("toy_graph")
    scores = report.result("random", "problems").scores
    way = problem.optimum.outcome - problem.observational_mean
    outcome = problem.observational_mean + scores["share"] * way
    np.testing.assert_allclose(scores["outcome"], outcome)
    np.testing.assert_allclose(scores["regret"], outcome - problem.optimum.outcome)
    assert "toy_graph d=3 rows=5+0" in report.table()


def test_what_cannot_be_set_is_never_set(key):
    scm = get("psa").scm
    given = problem_spec(scm)
    assert not np.isfinite(np.asarray(scm.low)).all()
    assert np.isfinite(np.asarray(given.low)).all()
    history = History(jnp.zeros((2, 6)), jnp.zeros((2, 6), bool), jnp.asarray(0))
    ask = jax.jit(jax.vmap(lambda k: Random().propose(k, history, given, scm)))
    actions = ask(jax.random.split(key, 50))
    chosen = {scm.names[i] for i in actions.variable.tolist()}
    assert chosen == set(get("psa").ranges)
    assert ((actions.value >= 0) & (actions.value <= 1)).all()


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="references=\\['nobody'\\]"):
        evaluate_problems(SYSTEMS, ["toy_graph"], references=["nobody"])
    with pytest.raises(ValueError, match="runs=0"):
        evaluate_problems(SYSTEMS, ["toy_graph"], runs=0)
