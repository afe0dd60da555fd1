"""Curves are shares by bin, with Wilson's intervals; thin bins are left out."""

import numpy as np
import pytest
from scipy import stats

from acbo.pictures.calibration import draw_calibration, wilson

SUMS = np.array([[100.0, 5.0, 40.0], [10.0, 2.0, 36.0], [12.0, 5.0, 30.0]])


def test_every_predictor_has_a_curve_beside_the_ideal():
    svg = draw_calibration({"ours": SUMS, "theirs": SUMS})
    assert all(f'data-series="{n}"' in svg for n in ("ours", "theirs", "ideal"))
    assert svg.count("data-band") == 2


def test_intervals_are_those_of_scipy():
    share, count = np.array([0.0, 0.12, 0.75]), np.array([10.0, 100.0, 40.0])
    low, high = wilson(share, count)
    for i in range(3):
        test = stats.binomtest(round(share[i] * count[i]), int(count[i]))
        exact = test.proportion_ci(method="wilson")
        assert low[i] == pytest.approx(exact.low, abs=1e-4)
        assert high[i] == pytest.approx(exact.high, abs=1e-4)


def test_too_few_predictions_are_refused():
    with pytest.raises(ValueError, match="'ours' has no bin of 10"):
        draw_calibration({"ours": SUMS[:, 1:2]})
