"""Charts as SVG text: curves with shaded intervals, and horizontal bars."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jaxrig.report.axes import (
    DASHES,
    PALETTE,
    Box,
    Scale,
    document,
    fit_ticks,
    label,
    line,
    pixel,
    shorten,
    text_width,
    x_axis,
    y_axis,
)
from jaxrig.report.text import Number, escape, format_number, linear_ticks, tick_labels


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
) -> list[Curve]:
    """Return the curves in order; ValueError names the series at fault."""
    if not series:
        raise ValueError("series is empty: a line chart needs at least one curve")
    if unknown := sorted(set(bands) - set(series)):
        raise ValueError(f"bands names {unknown}: each must be one of {list(series)}")
    curves = []
    for index, (name, (x, y)) in enumerate(series.items()):
        given = (x, y, *bands.get(name, (y, y)))
        xs, ys, low, high = (_numbers(each, f"series {name!r}") for each in given)
        if not xs.size == ys.size == low.size == high.size:
            sizes = f"{xs.size}, {ys.size}, {low.size}, {high.size}"
            raise ValueError(
                f"series {name!r} has x, y, low and high of {sizes} values: sizes must "
                "agree"
            )
        color = PALETTE[index % len(PALETTE)]
        dash = DASHES[index // len(PALETTE) % len(DASHES)]
        curve = Curve(name, xs, ys, low, high, color, dash)
        if not curve.seen.any():
            raise ValueError(f"series {name!r} has no point that is not NaN")
        if np.any(curve.low > curve.high):
            raise ValueError(f"bands[{name!r}] has a low above its high: swap them")
        curves.append(curve)
    return curves


def _numbers(values: ArrayLike, field: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{field} must be arrays of numbers: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"{field} has shape {array.shape}: it must be one-dimensional")
    if np.isinf(array).any():
        raise ValueError(f"{field} holds an infinite value: use NaN to leave a gap")
    return array


# A telephone shows this shrunk to about 0.64, with letters of ten pixels.
WIDTH, HEIGHT = 560, 336
MIN_WIDTH, MIN_HEIGHT = 240, 160
LEGEND_GAP = 20
LEGEND_SHARE = 0.3  # of the width, at most
BAR_PITCH, BAR_THICKNESS = 30, 20


def line_chart(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    width: Number = WIDTH,
    height: Number = HEIGHT,
) -> str:
    """Draw curves named at their right end, as SVG.

    Arguments:
        series: (x, y) by name; NaN breaks the curve, a lone point becomes a dot.
        bands: (low, high) by the name of a series, shaded over the x of that series.

    >>> svg = line_chart({"regret": ([1, 2, 3], [0.9, 0.4, 0.1])})
    """
    for name, size, least in (
        ("width", width, MIN_WIDTH),
        ("height", height, MIN_HEIGHT),
    ):
        if not least <= size < math.inf:
            raise ValueError(f"{name} is {size}: it must be at least {least} pixels")
    curves = read_curves(series, bands or {})
    xs = np.concatenate([curve.x[curve.seen] for curve in curves])
    drawn = np.concatenate([np.r_[c.y[c.seen], c.low, c.high] for c in curves])
    y_ticks = linear_ticks(np.nanmin(drawn), np.nanmax(drawn))
    names = {c.name: shorten(c.name, float(width) * LEGEND_SHARE) for c in curves}
    box = Box(
        left=max(map(text_width, tick_labels(y_ticks))) + (40 if y_label else 18),
        right=float(width) - max(map(text_width, names.values())) - 32,
        top=44 if title else 16,
        bottom=float(height) - (56 if x_label else 32),
    )
    whole = bool(np.all(xs == np.round(xs)))
    x_ticks = fit_ticks(float(xs.min()), float(xs.max()), box.right - box.left, whole)
    # The axis ends at the data; a lone x has no extent and takes the ticks' range.
    ends = (xs.min(), xs.max()) if xs.min() < xs.max() else (x_ticks[0], x_ticks[-1])
    across = Scale(float(ends[0]), float(ends[1]), box.left, box.right)
    up = Scale(y_ticks[0], y_ticks[-1], box.bottom, box.top)
    body = [*y_axis(box, up, y_ticks, y_label), *x_axis(box, across, x_ticks, x_label)]
    body += [
        _band(curve, across, up) for curve in curves if curve.name in (bands or {})
    ]
    body += [_stroke(curve, across, up) for curve in curves]
    body += _legend(curves, names, box, up)
    name = title or f"Curves: {', '.join(series)}"
    return document(float(width), float(height), name, title, body)


def bar_chart(values: Mapping[str, Number], title: str = "", x_label: str = "") -> str:
    """Draw horizontal bars from zero, each with its name and value, as SVG."""
    if not values:
        raise ValueError("values is empty: a bar chart needs at least one bar")
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"values[{name!r}] is {value}: bars must be finite")
    names = [shorten(name, WIDTH * LEGEND_SHARE) for name in values]
    amounts = [format_number(value) for value in values.values()]
    top = 40 if title else 8
    box = Box(
        left=max(map(text_width, names)) + 18,
        right=WIDTH - max(map(text_width, amounts)) - 14,
        top=top,
        bottom=top + BAR_PITCH * len(values),
    )
    low, high = min(0.0, *values.values()), max(0.0, *values.values())
    scale = Scale(float(low), float(high) if high > low else 1.0, box.left, box.right)
    rows = zip(values.items(), names, amounts, strict=True)
    body = [
        _bar(row, box.top + BAR_PITCH * (index + 0.5), box, scale)
        for index, row in enumerate(rows)
    ]
    zero = float(scale(0.0))
    body.append(line(zero, box.top, zero, box.bottom, 0.6))
    if x_label:
        middle = (box.left + box.right) / 2
        body.append(label(middle, box.bottom + 16, x_label, "middle"))
    height = box.bottom + (34 if x_label else 8)
    name = title or f"Bars: {', '.join(values)}"
    return document(WIDTH, height, name, title, body)


def _runs(mask: np.ndarray) -> list[np.ndarray]:
    indices = np.flatnonzero(mask)
    return np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{pixel(a)} {pixel(b)}" for a, b in zip(x, y, strict=True))


def _band(curve: Curve, across: Scale, up: Scale) -> str:
    seen = np.isfinite(curve.x + curve.low + curve.high)
    if not seen.any():
        return ""
    outline = "".join(
        _path(
            across(np.r_[curve.x[run], curve.x[run][::-1]]),
            up(np.r_[curve.low[run], curve.high[run][::-1]]),
        )
        + "Z"
        for run in _runs(seen)
    )
    return (
        f'<path data-band="{escape(curve.name)}" d="{outline}" fill="{curve.color}" '
        f'fill-opacity="0.18" stroke="{curve.color}" stroke-opacity="0.25"/>'
    )


def _stroke(curve: Curve, across: Scale, up: Scale) -> str:
    runs = [(across(curve.x[run]), up(curve.y[run])) for run in _runs(curve.seen)]
    path = "".join(_path(x, y) for x, y in runs if x.size > 1)
    dots = "".join(
        f'<circle cx="{pixel(x[0])}" cy="{pixel(y[0])}" r="3.5"/>'
        for x, y in runs
        if x.size == 1
    )
    stroke = (
        f'<path d="{path}" fill="none" stroke="{curve.color}" stroke-width="2" '
        f'stroke-linejoin="round" stroke-linecap="round"{curve.dash}/>'
    )
    name = escape(curve.name)
    return (
        f'<g data-series="{name}" fill="{curve.color}"><title>{name}</title>'
        f"{stroke if path else ''}{dots}</g>"
    )


def _legend(
    curves: Sequence[Curve], names: Mapping[str, str], box: Box, up: Scale
) -> list[str]:
    ends = [float(up(curve.y[curve.seen][-1])) for curve in curves]
    drawn = []
    for curve, end, at in zip(curves, ends, _spread(ends, box), strict=True):
        lead = _path(
            np.array([4, 10, 18, 24]) + box.right, np.array([end, end, at, at])
        )
        drawn.append(
            f'<path d="{lead}" fill="none" stroke="{curve.color}" '
            f'stroke-width="1.5"{curve.dash}/>'
        )
        drawn.append(label(box.right + 28, at, names[curve.name]))
    return drawn


def _spread(ends: Sequence[float], box: Box) -> list[float]:
    """Return heights near the ends, in order, a line of text apart."""
    gap = min(LEGEND_GAP, (box.bottom - box.top) / max(1, len(ends) - 1))
    order = sorted(range(len(ends)), key=lambda index: ends[index])
    # Down the page each name makes room for the next, then up again from the bottom
    # edge: the gaps and the order hold after both passes.
    places, floor = list(ends), -math.inf
    for index in order:
        floor = places[index] = max(places[index], floor)
        floor += gap
    ceiling = box.bottom
    for index in reversed(order):
        ceiling = places[index] = min(places[index], ceiling)
        ceiling -= gap
    return places


def _bar(
    row: tuple[tuple[str, Number], str, str], middle: float, box: Box, scale: Scale
) -> str:
    (name, value), words, amount = row
    near, far = sorted((float(scale(0.0)), float(scale(float(value)))))
    return (
        label(box.left - 10, middle, words, "end")
        + f'<rect data-bar="{escape(name)}" x="{pixel(near)}" '
        f'y="{pixel(middle - BAR_THICKNESS / 2)}" width="{pixel(far - near)}" '
        f'height="{BAR_THICKNESS}" fill="{PALETTE[0]}">'
        f"<title>{escape(name)}</title></rect>" + label(far + 6, middle, amount)
    )


Z = 1.96  # deviations of a 95 % interval


def wilson(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's 95 % interval of a share of `count` cases."""
    # Wilson (1927): unlike the normal interval it stays within 0 and 1 and is not empty
    # at a share of 0 or 1.
    scale = 1 + Z**2 / count
    middle = (share + Z**2 / (2 * count)) / scale
    half = Z * np.sqrt(share * (1 - share) / count + (Z / (2 * count)) ** 2) / scale
    return np.minimum(middle - half, share), np.maximum(middle + half, share)
