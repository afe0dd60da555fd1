import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines.proposers import Oracle, ParentOracle, Random
from acbo.baselines.structure import Constant, Regression
from acbo.environment import problem_spec
from acbo.evaluation.evaluate import (
    Protocol,
    _judge,
    draw_task,
    evaluate,
    evaluate_problems,
    task_keys,
)
from acbo.evaluation.report import Cell
from acbo.history import History
from acbo.problems import get
from acbo.scm import set_variables
from causal_linear import edges, linear_scm
from jaxrig.progress import Meter

SMALL = Protocol(grid=3, draws=8, chunk_size=4, clip_data=True)
TRACES = []


class Counted(Constant):
    """Remembers how often it was traced."""

    def read(self, seen):
        TRACES.append(seen.values)
        return super().read(seen)


# In a chain that is clipped no ancestor does more than the parent at its better end.
SYSTEMS = {
    "random": Random(),
    "oracle": ParentOracle(),
    "all": Counted(1.0),
    "regression": Regression(),
}


class Heard(Meter):
    """Remembers which pieces of work were begun."""

    def __init__(self):
        self.labels = []

    def start(self, label, total):
        self.labels.append((label, total))


METER = Heard()


def run(systems=SYSTEMS, **options):
    given = {"sizes": (4,), "families": ("chain",), "n_scms": 4, "steps": 2}
    return evaluate(systems, rows=((6, 3),), protocol=SMALL, **{**given, **options})


@pytest.fixture(scope="module")
def report():
    return run(sizes=(3, 4), n_scms=5, meter=METER)


def test_every_system_is_judged_in_every_cell_by_what_it_can_do(report):
    assert len(report.results) == 2 * 4
    for result in report.results:
        assert (result.kind == "parents") == (result.system in ("all", "regression"))
        assert all(v.shape == (5,) for v in result.scores.values())
        assert all(v.shape == (5, 2) for v in result.curves.values())


def test_predicting_everything_scores_as_the_formula_says(report):
    for size in (3, 4):
        result = report.result("all", "parents", family="chain", size=size)
        np.testing.assert_allclose(result.scores["f1"], 2 / size, rtol=1e-5)
        np.testing.assert_array_equal(result.scores["recall"], 1.0)


def test_regret_is_never_negative_and_the_oracle_has_least(report):
    regret = {
        name: np.concatenate(
            [r.curves["simple_regret"] for r in report.results if r.system == name]
        )
        for name in ("random", "oracle")
    }
    assert min(r.min() for r in regret.values()) >= -1e-5
    assert regret["oracle"].max() < 1e-4 < regret["random"].mean()
    assert (np.diff(regret["random"], axis=1) <= 1e-6).all()


def test_more_problems_extend_a_set_and_one_seed_gives_one_answer(report):
    few = run({"random": SYSTEMS["random"]}).result("random", "episodes").scores
    many = report.result("random", "episodes", family="chain", size=4).scores
    for metric, values in few.items():
        np.testing.assert_allclose(values, many[metric][:4], rtol=1e-3, atol=1e-4)


def test_references_are_those_that_take_part(report):
    assert report.references == ("random", "regression")
    content = json.loads(report.to_json())
    row = next(
        r
        for r in content["rows"]
        if (r["system"], r["metric"]) == ("oracle", "simple_regret")
    )
    assert row["tests"]["random"]["pairs"] == 5
    assert "oracle" in report.table(["simple_regret"])


def test_one_program_serves_all_sizes_of_a_bucket(report):
    assert [values.shape for values in TRACES] == [(9, 4)]
    assert METER.labels.count(("random, d=4, 9 rows", 5)) == 2


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"n_scms": 0}, ValueError, "n_scms=0"),
        ({"references": ["nobody"]}, ValueError, "'nobody' is not one of the systems"),
        ({"sizes": (500,)}, ValueError, "500 variables are more than"),
    ],
)
def test_wrong_use_is_refused(options, error, reason):
    with pytest.raises(error, match=reason):
        run(**options)


def test_a_system_must_do_something():
    with pytest.raises(TypeError, match="neither predict nor propose"):
        evaluate({"idle": object()})


def test_seed_family_size_and_index_all_matter():
    sets = [(0, "chain", 5), (1, "chain", 5), (0, "fork", 5), (0, "chain", 8)]
    keys = [jax.random.key_data(task_keys(*each, 4)) for each in sets]
    assert len(np.unique(np.concatenate(keys), axis=0)) == 16


def test_a_task_has_the_rows_of_its_cell_and_room_for_steps(key):
    scm, cell = linear_scm(edges(4, e01=1.0, e12=1.0), 2), Cell("chain", 4, 3, 2)
    task = jax.jit(lambda k: draw_task(k, scm, cell, steps=4, clip_to_range=True))(key)
    assert task.history.values.shape == (9, 4)
    assert int(task.history.count) == 5
    assert task.history.intervened.sum(1).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert not task.history.intervened[:, 2].any()
    others = task.history.values[:, jnp.array([0, 1, 3])]
    assert (others.min(), others.max()) >= (-2.0, -2.0)
    assert others.max() <= 3.0


def test_wrong_cells_and_protocols_are_refused():
    with pytest.raises(ValueError, match="need 2 variables"):
        Cell("chain", 1, 3, 2)
    with pytest.raises(ValueError, match="direction 'UP'"):
        Protocol(direction="UP")
    assert hash(Protocol()) == hash(Protocol())
    assert Cell("er1", 5, 20, 10).name == "er1 d=5 rows=20+10"


SYSTEMS_PROBLEMS = {
    "random": Random(),
    "oracle": Oracle(grid=65, draws=64, clip_to_range=False),
}


@pytest.fixture(scope="module")
def report_problems():
    return evaluate_problems(
        SYSTEMS_PROBLEMS,
        ["toy_graph"],
        runs=4,
        steps=2,
        observational=5,
        references=["random"],
    )


def test_the_oracle_goes_nearly_all_the_way_and_random_less(report_problems):
    oracle = report_problems.result("oracle", "problems", family="toy_graph")
    random = report_problems.result("random", "problems", family="toy_graph")
    assert oracle.scores["share"].min() > 0.95
    assert random.scores["share"].mean() < oracle.scores["share"].mean() <= 1 + 1e-6
    assert (np.diff(random.curves["share"], axis=1) >= 0).all()


def test_a_pair_beyond_the_best_single_variable_has_regret_below_0():
    problem = get("two_bumps")
    assert problem.best_pair is not None
    values = [problem.best_pair.intervention.get(n, 0.0) for n in problem.scm.names]
    mask = jnp.array([n in problem.best_pair.intervention for n in problem.scm.names])
    actions = set_variables(mask[None, None], jnp.array(values)[None, None])
    made = _judge(problem, Cell("two_bumps", 3, 5, 0), "pairs", actions)
    gain = problem.best_pair.outcome - problem.optimum.outcome
    np.testing.assert_allclose(made.scores["regret"], [gain], atol=1e-5)
    assert gain < 0


def test_outcome_and_regret_belong_to_the_share(report_problems):
    problem = get("toy_graph")
    scores = report_problems.result("random", "problems").scores
    way = problem.optimum.outcome - problem.observational_mean
    outcome = problem.observational_mean + scores["share"] * way
    np.testing.assert_allclose(scores["outcome"], outcome)
    np.testing.assert_allclose(scores["regret"], outcome - problem.optimum.outcome)
    assert "toy_graph d=3 rows=5+0" in report_problems.table()


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


def test_wrong_use_is_refused_of_problems():
    with pytest.raises(ValueError, match="references=\\['nobody'\\]"):
        evaluate_problems(SYSTEMS_PROBLEMS, ["toy_graph"], references=["nobody"])
    with pytest.raises(ValueError, match="runs=0"):
        evaluate_problems(SYSTEMS_PROBLEMS, ["toy_graph"], runs=0)
