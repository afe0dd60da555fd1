"""Paired comparisons of two systems on the same problems: tests, effects, intervals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 1000


@dataclass(frozen=True)
class Comparison:
    """Outcome of a paired test of first minus second."""

    statistic: float
    p_value: float
    difference: float  # mean of first minus second
    pairs: int


@dataclass(frozen=True)
class Interval:
    """A mean and where it lies, by resampling."""

    mean: float
    low: float
    high: float


def _differences(first: Any, second: Any) -> np.ndarray:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size < 2:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} are not two equally long lists of at "
            "least 2 numbers: give one number of each system per problem"
        )
    difference = a - b
    if not np.isfinite(difference).all():
        raise ValueError("a paired test takes finite numbers: drop pairs with NaN")
    return difference


def paired_t_test(first: Any, second: Any) -> Comparison:
    """Run Student's t-test of whether the mean difference is zero, two-sided."""
    difference = _differences(first, second)
    count, mean = difference.size, difference.mean()
    error = difference.std(ddof=1) / math.sqrt(count)
    # Equal differences leave no spread to measure them by: certain, or nothing at all.
    if error == 0:
        certain = mean != 0
        statistic = math.copysign(math.inf, mean) if certain else 0.0
        return Comparison(statistic, 0.0 if certain else 1.0, float(mean), count)
    from scipy import stats  # slow to import

    statistic = float(mean / error)
    p_value = float(2 * stats.t.sf(abs(statistic), count - 1))
    return Comparison(statistic, p_value, float(mean), count)


def wilcoxon_test(first: Any, second: Any) -> Comparison:
    """Run Wilcoxon's signed-rank test, two-sided; equal pairs are left out."""
    difference = _differences(first, second)
    mean, count = float(difference.mean()), difference.size
    if not difference.any():
        return Comparison(0.0, 1.0, mean, count)
    from scipy import stats  # slow to import

    found: Any = stats.wilcoxon(difference[difference != 0])
    return Comparison(float(found.statistic), float(found.pvalue), mean, count)


def cohens_d(first: Any, second: Any) -> float:
    """Return the mean difference in standard deviations of the differences (paired)."""
    difference = _differences(first, second)
    spread = difference.std(ddof=1)
    if spread == 0:
        mean = difference.mean()
        return math.copysign(math.inf, mean) if mean else 0.0
    return float(difference.mean() / spread)


def resampling_counts(items: int, seed: int = 0) -> np.ndarray:
    """Return how often each item is drawn with replacement [resamples, items]."""
    random = np.random.default_rng(seed)
    return random.multinomial(items, np.full(items, 1 / items), size=RESAMPLES)


def bootstrap_interval(values: Any, *, seed: int = 0) -> Interval:
    """Return the mean and the percentile interval of its bootstrap distribution
    (Efron and Tibshirani, 1993, chapter 13).
    """
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise ValueError(
            f"values of shape {numbers.shape} are not a list of finite numbers: "
            "give at least one and drop NaN"
        )
    counts = resampling_counts(numbers.size, seed)
    return percentile_interval(float(numbers.mean()), counts @ numbers / numbers.size)


def percentile_interval(mean: float, resampled: np.ndarray) -> Interval:
    """Return the middle 95 % of resampled estimates around an estimate."""
    low, high = np.quantile(resampled, [0.025, 0.975]).tolist()
    return Interval(mean, low, high)
