import json

import numpy as np
import pytest
from scipy import stats

from acbo.evaluation.report import (
    Cell,
    Report,
    Result,
    bootstrap_interval,
    paired_tests,
)

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
    assert (good["mean"], good["low"], good["high"]) == bootstrap_interval(GOOD)
    assert good["problems"] == 12
    assert good["tests"]["bad"] == paired_tests(GOOD, BAD)
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


def test_the_table_has_a_line_per_system_and_can_be_narrowed():
    title, *lines = BOTH.table().splitlines()
    assert title == "Optimization of the target"
    assert len(lines) == 3
    assert lines[1].index("good") == lines[2].index("bad") == lines[0].index("system")
    assert "p vs bad" in lines[0]
    for row, line in zip(BOTH.rows(), lines[1:], strict=True):
        assert f"{row['mean']:.3f} ({row['low']:.2f} to {row['high']:.2f})" in line
    assert BOTH.table(["nothing"]) == ""
    parents = result("good", GOOD, "parents")
    both = report(parents, *BOTH.results).table().split("\n\n")
    assert ["p vs bad" in part for part in both] == [False, True]


FIRST = RANDOM.normal(size=30)
SECOND = FIRST + RANDOM.normal(0.5, 1.0, size=30)


def test_paired_tests_agree_with_the_library():
    found, t = paired_tests(FIRST, SECOND), stats.ttest_rel(FIRST, SECOND)
    assert found["p_value"] == pytest.approx(t.pvalue)
    assert found["p_wilcoxon"] == pytest.approx(stats.wilcoxon(FIRST, SECOND)[1])
    assert found["difference"] == pytest.approx((FIRST - SECOND).mean())
    assert found["cohens_d"] == pytest.approx(t.statistic / np.sqrt(30))
    assert found["pairs"] == 30


def test_equal_systems_do_not_differ_and_a_constant_gap_is_certain():
    same = paired_tests(FIRST, FIRST)
    assert same["p_value"] == same["p_wilcoxon"] == 1.0
    assert same["cohens_d"] == 0.0
    gap = paired_tests(np.zeros(5), np.ones(5))
    assert (gap["p_value"], gap["difference"], gap["cohens_d"]) == (0.0, -1.0, None)


def test_bootstrap_interval_covers_as_often_as_it_says():
    found = [bootstrap_interval(RANDOM.normal(size=40), seed=s) for s in range(200)]
    inside = np.mean([each.low <= 0 <= each.high for each in found])
    assert 0.88 < inside < 0.99
    again = bootstrap_interval(FIRST)
    assert again == bootstrap_interval(FIRST)
    assert again.low < again.mean < again.high


def test_calibration_error_pools_the_problems():
    count = np.array([[2.0, 0.0], [2.0, 0.0]])
    predicted, happened = count * 0.2, np.array([[1.0, 0.0], [0.0, 0.0]])
    bins = np.stack([count, predicted, happened], axis=1)
    one = result("good", GOOD[:2], "parents", bins=bins)
    assert one.calibration_error(0).mean == pytest.approx(0.05)
    assert report(one).rows()[-1]["metric"] == "calibration_error"
    with pytest.raises(ValueError, match="no probabilities"):
        result("good", GOOD).calibration_error(0)


def test_results_are_found_by_system_kind_and_cell():
    assert BOTH.result("good", "episodes", size=5).scores["regret"] is GOOD
    with pytest.raises(ValueError, match="0 results of 'good'"):
        BOTH.result("good", "episodes", size=6)
