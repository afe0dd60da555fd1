"""Paired comparisons of two systems on the same problems: tests, effects, intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

RESAMPLES = 1000
CONFIDENCE = 0.95
ALPHA = 0.05


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
    """Student's t-test of whether the mean difference is zero, two-sided."""
    difference = _differences(first, second)
    count, mean = difference.size, difference.mean()
    error = difference.std(ddof=1) / math.sqrt(count)
    # Equal differences leave no spread to measure them by: certain, or nothing at all.
    if error == 0:
        certain = mean != 0
        statistic = math.copysign(math.inf, mean) if certain else 0.0
        return Comparison(statistic, 0.0 if certain else 1.0, float(mean), count)
    statistic = float(mean / error)
    p_value = float(2 * stats.t.sf(abs(statistic), count - 1))
    return Comparison(statistic, p_value, float(mean), count)


def wilcoxon_test(first: Any, second: Any) -> Comparison:
    """Wilcoxon's signed-rank test, two-sided; equal pairs are left out."""
    difference = _differences(first, second)
    mean, count = float(difference.mean()), difference.size
    if not difference.any():
        return Comparison(0.0, 1.0, mean, count)
    found: Any = stats.wilcoxon(difference[difference != 0])
    return Comparison(float(found.statistic), float(found.pvalue), mean, count)


def cohens_d(first: Any, second: Any) -> float:
    """Mean difference in standard deviations of the differences (paired)."""
    difference = _differences(first, second)
    spread = difference.std(ddof=1)
    if spread == 0:
        mean = difference.mean()
        return math.copysign(math.inf, mean) if mean else 0.0
    return float(difference.mean() / spread)


def resampling_counts(
    items: int, seed: int = 0, resamples: int = RESAMPLES
) -> np.ndarray:
    """[resamples, items]: how often each item is drawn, with replacement."""
    random = np.random.default_rng(seed)
    return random.multinomial(items, np.full(items, 1 / items), size=resamples)


def bootstrap_interval(
    values: Any,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The mean and the percentile interval of its bootstrap distribution."""
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise ValueError(
            f"values of shape {numbers.shape} are not a list of finite numbers: "
            "give at least one and drop NaN"
        )
    counts = resampling_counts(numbers.size, seed, resamples)
    return percentile_interval(
        float(numbers.mean()), counts @ numbers / numbers.size, confidence
    )


def percentile_interval(
    mean: float, resampled: np.ndarray, confidence: float = CONFIDENCE
) -> Interval:
    """The middle share of resampled estimates around an estimate."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} is not between 0 and 1")
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(mean, float(low), float(high))


def correct_p_values(p_values: Sequence[float], method: str = "holm") -> list[float]:
    """p-values of several tests made safe to read together: holm or bonferroni."""
    found = np.asarray(p_values, np.float64)
    if method == "bonferroni":
        return np.minimum(found * found.size, 1.0).tolist()
    if method != "holm":
        raise ValueError(f"method={method!r} is not one of: holm, bonferroni")
    order = np.argsort(found, kind="stable")
    steps = found[order] * np.arange(found.size, 0, -1)
    corrected = np.empty_like(found)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected.tolist()


def power_of_paired_test(effect: float, pairs: int, alpha: float = ALPHA) -> float:
    """Chance that a two-sided paired t-test finds an effect of this Cohen's d."""
    if pairs < 2:
        raise ValueError(f"pairs={pairs}: a paired test needs at least 2")
    freedom, shift = pairs - 1, abs(effect) * math.sqrt(pairs)
    critical = stats.t.ppf(1 - alpha / 2, freedom)
    below = stats.nct.cdf(-critical, freedom, shift)
    above = stats.nct.sf(critical, freedom, shift)
    return float(below + above)


def pairs_needed(effect: float, power: float = 0.8, alpha: float = ALPHA) -> int:
    """Smallest number of pairs at which a paired t-test has this power."""
    if effect == 0 or not alpha < power < 1:
        raise ValueError(
            f"effect={effect}, power={power}: need an effect that is not 0 and a "
            f"power between alpha={alpha} and 1"
        )
    high = 2
    while power_of_paired_test(effect, high, alpha) < power:
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        enough = power_of_paired_test(effect, middle, alpha) >= power
        low, high = (low, middle) if enough else (middle + 1, high)
    return low
