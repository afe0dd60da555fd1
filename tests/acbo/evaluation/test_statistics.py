import numpy as np
import pytest
from scipy import stats

from acbo.evaluation.statistics import (
    bootstrap_interval,
    cohens_d,
    paired_t_test,
    wilcoxon_test,
)

RANDOM = np.random.default_rng(0)
FIRST = RANDOM.normal(size=30)
SECOND = FIRST + RANDOM.normal(0.5, 1.0, size=30)


def test_paired_tests_agree_with_the_library():
    t = paired_t_test(FIRST, SECOND)
    known = stats.ttest_rel(FIRST, SECOND)
    assert (t.statistic, t.p_value) == pytest.approx((known.statistic, known.pvalue))
    assert t.difference == pytest.approx((FIRST - SECOND).mean())
    w = wilcoxon_test(FIRST, SECOND)
    assert w.p_value == pytest.approx(stats.wilcoxon(FIRST, SECOND)[1])
    assert t.pairs == w.pairs == 30


def test_equal_systems_do_not_differ_and_a_constant_gap_is_certain():
    same = paired_t_test(FIRST, FIRST)
    assert (same.p_value, same.statistic, cohens_d(FIRST, FIRST)) == (1.0, 0.0, 0.0)
    assert wilcoxon_test(FIRST, FIRST).p_value == 1.0
    ones, zeros = np.ones(5), np.zeros(5)
    assert paired_t_test(zeros, ones).p_value == 0.0
    assert paired_t_test(zeros, ones).statistic == cohens_d(zeros, ones) == -np.inf


def test_cohens_d_is_t_over_the_root_of_n():
    t = paired_t_test(FIRST, SECOND).statistic
    assert cohens_d(FIRST, SECOND) == pytest.approx(t / np.sqrt(30))


def test_bootstrap_interval_covers_as_often_as_it_says():
    found = [bootstrap_interval(RANDOM.normal(size=40), seed=s) for s in range(200)]
    inside = np.mean([each.low <= 0 <= each.high for each in found])
    assert 0.88 < inside < 0.99
    again = bootstrap_interval(FIRST)
    assert again == bootstrap_interval(FIRST)
    assert again.low < again.mean < again.high


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: paired_t_test([1.0], [2.0]), "equally long lists of at least 2"),
        (lambda: paired_t_test([1.0, 2.0], [1.0]), "equally long lists"),
        (lambda: wilcoxon_test([1.0, np.nan], [1.0, 2.0]), "drop pairs with NaN"),
        (lambda: bootstrap_interval([]), "at least one"),
    ],
)
def test_wrong_use_is_refused(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
