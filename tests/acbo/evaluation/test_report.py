import json

import numpy as np
import pytest

from acbo.evaluation.report import Report, Result
from acbo.evaluation.scoring import Cell
from acbo.evaluation.statistics import bootstrap_interval, paired_t_test

CELL = Cell("chain", 5, 20, 10)
RANDOM = np.random.default_rng(0)
GOOD, BAD = RANDOM.normal(1.0, 0.3, 12), RANDOM.normal(2.0, 0.3, 12)


def result(system, values, kind="episodes", cell=CELL, **more):
    curve = np.stack([values + 1, values], axis=1)
    return Result(cell, system, kind, {"regret": values}, {"regret": curve}, **more)


def report(*results, references=("bad",)):
    return Report(results, references, 0, {"steps": 2})


BOTH = report(result("good", GOOD), result("bad", BAD))


def test_rows_hold_mean_interval_and_paired_test():
    good, bad = BOTH.rows()
    interval = bootstrap_interval(GOOD)
    assert (good["mean"], good["low"], good["high"]) == (
        interval.mean,
        interval.low,
        interval.high,
    )
    assert good["problems"] == 12
    test = paired_t_test(GOOD, BAD)
    assert good["tests"]["bad"]["p_value"] == test.p_value
    assert good["tests"]["bad"]["difference"] == test.difference
    assert good["tests"]["bad"]["p_wilcoxon"] < 0.01
    assert bad["tests"] == {}


def test_pairs_without_a_number_drop_out():
    gaps = GOOD.copy()
    gaps[:3] = np.nan
    row, _ = report(result("good", gaps), result("bad", BAD)).rows()
    assert row["problems"] == row["tests"]["bad"]["pairs"] == 9
    assert row["mean"] == pytest.approx(GOOD[3:].mean())
    empty = report(result("good", GOOD * np.nan), result("bad", BAD)).rows()[0]
    assert (empty["mean"], empty["tests"]) == (None, {})


def test_only_equal_cells_and_kinds_are_compared():
    other = Cell("chain", 8, 20, 10)
    rows = report(
        result("good", GOOD), result("bad", BAD, cell=other), result("bad", BAD, "else")
    ).rows()
    assert rows[0]["tests"] == {}


def test_json_reads_back_and_holds_curves():
    content = json.loads(BOTH.to_json())
    assert content["schema"] == "acbo.evaluation/1"
    assert content["rows"] == BOTH.rows()
    np.testing.assert_allclose(
        content["curves"][0]["mean"], [GOOD.mean() + 1, GOOD.mean()]
    )
    hollow = report(result("good", GOOD * np.nan)).to_json()
    assert "NaN" not in hollow


def test_the_table_is_aligned_and_can_be_narrowed():
    lines = BOTH.table().splitlines()
    assert lines[0].split("  ")[0] == "cell"
    assert len(lines) == 3
    assert lines[1].index("good") == lines[2].index("bad") == lines[0].index("system")
    assert "p vs bad" in lines[0]
    assert BOTH.table(["nothing"]).count("\n") == 0


def test_calibration_error_pools_the_problems():
    count = np.array([[2.0, 0.0], [2.0, 0.0]])
    predicted, happened = count * 0.2, np.array([[1.0, 0.0], [0.0, 0.0]])
    bins = np.stack([count, predicted, happened])
    one = result("good", GOOD[:2], "parents", bins=bins)
    assert one.calibration_error(0).mean == pytest.approx(0.05)
    assert report(one).rows()[-1]["metric"] == "calibration_error"
    with pytest.raises(ValueError, match="no probabilities"):
        result("good", GOOD).calibration_error(0)


def test_results_are_found_by_system_kind_and_cell():
    assert BOTH.result("good", "episodes", size=5).scores["regret"] is GOOD
    with pytest.raises(ValueError, match="0 results of 'good'"):
        BOTH.result("good", "episodes", size=6)
