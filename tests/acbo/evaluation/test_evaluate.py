import json

import numpy as np
import pytest

from acbo.baselines.proposers import ParentOracle, Random
from acbo.baselines.structure import Everything, Regression
from acbo.evaluation.evaluate import evaluate
from acbo.evaluation.scoring import Protocol
from jaxrig.progress import Meter

SMALL = Protocol(grid=3, draws=8, chunk_size=4, clip_data=True)
TRACES = []


class Counted(Everything):
    """Remembers how often it was traced."""

    def predict(self, values, intervened, row_mask, var_mask, target):
        TRACES.append(values)
        return super().predict(values, intervened, row_mask, var_mask, target)


# In a chain that is clipped no ancestor does more than the parent at its better end.
SYSTEMS = {
    "random": Random(),
    "oracle": ParentOracle(),
    "all": Counted(),
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
    two = {name: SYSTEMS[name] for name in ("random", "regression")}
    few = run(two)
    for name, kind in (("random", "episodes"), ("regression", "parents")):
        many = report.result(name, kind, family="chain", size=4).scores
        for metric, values in few.result(name, kind).scores.items():
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
        ({"sizes": (500,)}, ValueError, "size=500 does not fit"),
    ],
)
def test_wrong_use_is_refused(options, error, reason):
    with pytest.raises(error, match=reason):
        run(**options)


def test_a_system_must_do_something():
    with pytest.raises(TypeError, match="neither predict nor propose"):
        evaluate({"idle": object()})
