"""Series and intervals as given by the user, checked and given their colors."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jaxrig.report.axes import DASHES, PALETTE


@dataclass(frozen=True)
class Curve:
    """One named curve; without a band, low and high are the curve itself."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    color: str
    dash: str

    @property
    def seen(self) -> np.ndarray:
        """Where there is a point to draw."""
        return np.isfinite(self.x) & np.isfinite(self.y)


def read_curves(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]],
    log_y: bool,
) -> list[Curve]:
    """The curves in order; a ValueError names the series at fault and the rule."""
    if not series:
        raise ValueError("series is empty: a line chart needs at least one curve")
    if unknown := sorted(set(bands) - set(series)):
        raise ValueError(f"bands names {unknown}: each must be one of {list(series)}")
    curves = []
    for index, (name, (x, y)) in enumerate(series.items()):
        xs, ys = _numbers(x, f"series[{name!r}] x"), _numbers(y, f"series[{name!r}] y")
        low, high = bands.get(name, (ys, ys))
        lows = _numbers(low, f"bands[{name!r}] low")
        highs = _numbers(high, f"bands[{name!r}] high")
        color = PALETTE[index % len(PALETTE)]
        dash = DASHES[index // len(PALETTE) % len(DASHES)]
        curve = Curve(name, xs, ys, lows, highs, color, dash)
        _check_curve(curve, log_y)
        curves.append(curve)
    return curves


def _numbers(values: ArrayLike, field: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{field} must be an array of numbers: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"{field} has shape {array.shape}: it must be one-dimensional")
    if np.isinf(array).any():
        raise ValueError(f"{field} holds an infinite value: use NaN to leave a gap")
    return array


def _check_curve(curve: Curve, log_y: bool) -> None:
    sizes = {array.size for array in (curve.x, curve.y, curve.low, curve.high)}
    if len(sizes) > 1:
        raise ValueError(
            f"series {curve.name!r} has {curve.x.size} x, {curve.y.size} y, "
            f"{curve.low.size} low and {curve.high.size} high: sizes must agree"
        )
    if not curve.seen.any():
        raise ValueError(f"series {curve.name!r} has no point that is not NaN")
    if np.any(curve.low > curve.high):
        raise ValueError(f"bands[{curve.name!r}] has a low above its high: swap them")
    if log_y and np.any(curve.y[curve.seen] <= 0):
        raise ValueError(
            f"series {curve.name!r} reaches {curve.y[curve.seen].min()}: log_y needs "
            "values above zero; use NaN to leave points out, or log_y=False"
        )
