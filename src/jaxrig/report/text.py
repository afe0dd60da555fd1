"""Words and numbers on a page: escaped markup, readable values, round axis ticks."""

import html
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

Number: TypeAlias = int | float | np.integer | np.floating

SIGNIFICANT_DIGITS = 4
# Plain notation inside these powers of ten, scientific notation outside.
SMALLEST_PLAIN_POWER = -4
LARGEST_PLAIN_POWER = 8
# A range narrower than this share of its values is rounding noise: drawn flat.
NOISE = 1e-12
TINIEST = 1e-300
# Tick steps, each taken up to the geometric mean with the next one.
STEPS = ((1, 2**0.5), (2, 10**0.5), (5, 50**0.5), (10, math.inf))


def format_number(value: Number) -> str:
    """Return four significant digits; whole parts in full, with separators.

    >>> format_number(1234567.8), format_number(0.5), format_number(1.23456e-7)
    ('1,234,568', '0.5', '1.235e-7')
    """
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    if number == 0:
        return "0"
    scientific = f"{number:.{SIGNIFICANT_DIGITS - 1}e}"
    power = int(scientific.split("e")[1])
    if not SMALLEST_PLAIN_POWER <= power <= LARGEST_PLAIN_POWER:
        return _compact(scientific)
    return _without_zeros(f"{number:,.{max(0, SIGNIFICANT_DIGITS - 1 - power)}f}")


def count_of(number: int, noun: str) -> str:
    """Return a number of things in words.

    >>> count_of(1, "task"), count_of(1200, "task")
    ('1 task', '1,200 tasks')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def linear_ticks(
    low: Number, high: Number, count: int = 5, whole: bool = False
) -> tuple[float, ...]:
    """Return ticks at 1, 2 or 5 times a power of ten that enclose the range."""
    low, high = _widen(float(low), float(high))
    rough = high / count - low / count
    base = 10.0 ** math.floor(math.log10(rough))
    step = base * next(m for m, limit in STEPS if rough < limit * base)
    if whole:
        step = max(step, 1.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(_snap(index, step) for index in range(first, last + 1))


def tick_labels(ticks: Sequence[float]) -> tuple[str, ...]:
    """Return labels with equal decimals, precise enough to tell neighbors apart."""
    step = min(abs(b - a) for a, b in pairwise(ticks))
    largest = max(abs(tick) for tick in ticks)
    fine, coarse = _power(step), _power(largest)
    if fine < SMALLEST_PLAIN_POWER or coarse > LARGEST_PLAIN_POWER:
        decimals = max(0, coarse - fine)
        return tuple(_compact(f"{tick:.{decimals}e}") for tick in ticks)
    return tuple(f"{tick:,.{max(0, -fine)}f}" for tick in ticks)


def _widen(low: float, high: float) -> tuple[float, float]:
    size = max(abs(low), abs(high))
    if high / 2 - low / 2 > max(size * NOISE, TINIEST):
        return low, high
    pad = size / 10 if size > TINIEST else 0.5
    return low - pad, high + pad


def _snap(index: int, step: float) -> float:
    power = _power(step)
    # Dividing by a whole power of ten gives 0.3 where multiplying gives 0.30000000004.
    if -300 < power < 0:
        return index * round(step * 10.0**-power) / 10.0**-power
    return index * step


def _power(value: float) -> int:
    return int(f"{value:.6e}".split("e")[1]) if value else 0


def _compact(scientific: str) -> str:
    mantissa, power = scientific.split("e")
    mantissa = _without_zeros(mantissa)
    return "0" if float(mantissa) == 0 else f"{mantissa}e{int(power)}"


def _without_zeros(decimal: str) -> str:
    return decimal.rstrip("0").rstrip(".") if "." in decimal else decimal


# Control characters, lone surrogates and noncharacters have no place in XML.
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_CODE = re.compile(r"`([^`\n]+)`")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


def escape(text: str) -> str:
    """Return text as it may stand between tags or inside a quoted attribute."""
    return html.escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)


def inline(text: str) -> str:
    """Return escaped text in which words between backticks are code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def paragraphs(text: str) -> str:
    """Return escaped text as paragraphs, split where a line is blank."""
    lines = text.replace("\r\n", "\n").strip()
    return "\n".join(f"<p>{inline(part)}</p>" for part in _BLANK_LINES.split(lines))
