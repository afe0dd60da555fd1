"""Charts hold the numbers they were given, with intervals checked against scipy."""

import re

import numpy as np
import pytest
from scipy import stats

from acbo.pictures import charts
from acbo.posterior.distribution import create_parent_set_posterior
from jaxrig.report.charts import wilson

SUMS = np.array([[100.0, 5.0, 40.0], [10.0, 2.0, 36.0], [12.0, 5.0, 30.0]])


def test_every_predictor_has_a_curve_beside_the_ideal():
    svg = charts.draw_calibration({"ours": SUMS, "theirs": SUMS})
    assert all(f'data-series="{n}"' in svg for n in ("ours", "theirs", "ideal"))
    assert svg.count("data-band") == 2
    with pytest.raises(ValueError, match="'ours' has no bin of 10"):
        charts.draw_calibration({"ours": SUMS[:, 1:2]})


def test_intervals_are_those_of_scipy():
    share, count = np.array([0.0, 0.12, 0.75]), np.array([10.0, 100.0, 40.0])
    low, high = wilson(share, count)
    for i in range(3):
        test = stats.binomtest(round(share[i] * count[i]), int(count[i]))
        exact = test.proportion_ci(method="wilson")
        assert low[i] == pytest.approx(exact.low, abs=1e-4)
        assert high[i] == pytest.approx(exact.high, abs=1e-4)


POSTERIOR = create_parent_set_posterior(
    "Y", [[], ["X"], ["X", "Z"]], [0.125, 0.625, 0.25]
)


def bars(svg):
    return re.findall(r'data-bar="([^"]*)"', svg)


def test_sets_and_single_causes_by_name():
    svg = charts.draw_parent_sets(POSTERIOR)
    assert bars(svg) == ["X", "X, Z", "none"]
    assert ">0.625<" in svg
    assert bars(charts.draw_parent_sets(POSTERIOR, most=1)) == ["X"]
    svg = charts.draw_parent_probs(POSTERIOR)
    assert bars(svg) == ["X", "Z"]
    assert ">0.875<" in svg


def test_every_proposer_has_a_curve_and_a_band():
    random = np.random.default_rng(0)
    svg = charts.draw_regret({"a": random.random((9, 4)), "b": np.ones((9, 4))})
    assert all(f'data-series="{n}"' in svg for n in "ab")
    assert all(f'data-band="{n}"' in svg for n in "ab")
    with pytest.raises(ValueError, match="'a' has shape"):
        charts.draw_regret({"a": np.ones(4)})
