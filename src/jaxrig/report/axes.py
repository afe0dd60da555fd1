"""What charts stand on: data to pixels, text on the drawing, axes and colors."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxrig.report.text import escape, linear_ticks, tick_labels

# At least 3:1 against the light and the dark page, and apart for eyes without red or
# green cones; that leaves room for five, further curves differ by their dashes.
PALETTE = ("#0077bb", "#d55e00", "#009e73", "#b55a98", "#6644ff")
# Attributes that tell curves of the same color apart.
DASHES = ("", *(f' stroke-dasharray="{d}"' for d in ("6 4", "2 4", "9 4 2 4")))
FONT_SIZE = 16
MOST_X_TICKS = (7, 6, 5, 4, 3, 2)
FONT_FAMILY = "system-ui, sans-serif"
# Mean advance of a character relative to the font size; East Asian glyphs are square.
NARROW, WIDE = 0.64, 1.0


@dataclass(frozen=True)
class Scale:
    """A range of data laid over a range of pixels."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        """Return pixels of the values."""
        # Halved, so that a range near the largest float does not overflow.
        half = self.low / 2
        share = (np.asarray(values) / 2 - half) / (self.high / 2 - half)
        return np.asarray(self.start + share * (self.stop - self.start))


@dataclass(frozen=True)
class Box:
    """The plotting area in pixels."""

    left: float
    right: float
    top: float
    bottom: float


def pixel(value: float) -> str:
    """Return a coordinate to a hundredth of a pixel, in the fewest characters."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return estimated width in pixels; no font is at hand to measure with."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (wide * WIDE + (len(text) - wide) * NARROW)


def shorten(text: str, room: float, size: float = FONT_SIZE) -> str:
    """Return the text, cut with an ellipsis where it is wider than the room."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(text + "\u2026", size) > room:
        text = text[:-1]
    return text.rstrip() + "\u2026"


def label(x: float, y: float, text: str, anchor: str = "start", extra: str = "") -> str:
    """Return text whose middle line is at y, anchored at its start, middle or end."""
    return (
        f'<text x="{pixel(x)}" y="{pixel(y)}" dy="0.35em" '
        f'text-anchor="{anchor}"{extra}>{escape(text)}</text>'
    )


def line(x1: float, y1: float, x2: float, y2: float, opacity: float = 0.15) -> str:
    """Return a rule in the color of the text."""
    ends = f'x1="{pixel(x1)}" y1="{pixel(y1)}" x2="{pixel(x2)}" y2="{pixel(y2)}"'
    return f'<line {ends} stroke="currentColor" stroke-opacity="{opacity}"/>'


def fit_ticks(low: float, high: float, room: float, whole: bool) -> tuple[float, ...]:
    """Return as many ticks over the range as have room, in pixels, for labels."""
    for count in MOST_X_TICKS:
        ticks = linear_ticks(low, high, count, whole)
        widest = max(map(text_width, tick_labels(ticks)))
        share = (ticks[1] - ticks[0]) / max(high - low, ticks[1] - ticks[0])
        if widest + FONT_SIZE < share * room:
            return ticks
    return linear_ticks(low, high, 1, whole)


def x_axis(box: Box, scale: Scale, ticks: Sequence[float], title: str) -> list[str]:
    """Return tick labels below the plot and a title below them."""
    drawn = [line(box.left, box.bottom, box.right, box.bottom, 0.6)]
    for tick, words in zip(ticks, tick_labels(ticks), strict=True):
        if scale.low <= tick <= scale.high:
            at = float(scale(tick))
            drawn.append(line(at, box.bottom, at, box.bottom + 5, 0.6))
            drawn.append(label(at, box.bottom + 17, words, "middle", ' data-axis="x"'))
    if title:
        middle = (box.left + box.right) / 2
        words = shorten(title, box.right - box.left)
        drawn.append(label(middle, box.bottom + 40, words, "middle"))
    return drawn


def y_axis(box: Box, scale: Scale, ticks: Sequence[float], title: str) -> list[str]:
    """Return grid lines, tick labels left of them, and an upright title."""
    drawn = []
    for tick, words in zip(ticks, tick_labels(ticks), strict=True):
        at = float(scale(tick))
        drawn.append(line(box.left, at, box.right, at))
        drawn.append(label(box.left - 8, at, words, "end", ' data-axis="y"'))
    if title:
        middle = (box.top + box.bottom) / 2
        turn = f' transform="rotate(-90 12 {pixel(middle)})"'
        words = shorten(title, box.bottom - box.top)
        drawn.append(label(12, middle, words, "middle", turn))
    return drawn


def document(
    width: float, height: float, name: str, heading: str, body: Sequence[str]
) -> str:
    """Return a stand-alone SVG that takes its text color from where it is shown."""
    w, h = pixel(width), pixel(height)
    if heading:
        words = shorten(heading, width, FONT_SIZE + 1)
        bold = f' font-weight="600" font-size="{FONT_SIZE + 1}"'
        body = [label(0, 16, words, extra=bold), *body]
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" '
        f'width="{w}" height="{h}" role="img" fill="currentColor" '
        f'font-family="{FONT_FAMILY}" font-size="{FONT_SIZE}">'
    )
    return "\n".join([opening, f"<title>{escape(name)}</title>", *body, "</svg>"])
