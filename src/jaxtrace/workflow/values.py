"""What may stand behind a key of a case: each reader checks a value and converts it."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from jaxrig.static import freeze
from jaxtrace.bounds import AXES, box_bounds

Reader = Callable[[Any, str], Any]


def wrong(name: str, value: Any, rule: str) -> ValueError:
    """The error for a value: its key, what it is and what it must be."""
    return ValueError(f"{name} is {value!r}: give {rule}")


def text(value: Any, name: str) -> str:
    """Words that are not empty."""
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, value, "some text in quotes")
    return value


def name_or_names(value: Any, name: str) -> str | tuple[str, ...]:
    """The name of an array, or those of the two or three that make a velocity."""
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(text(one, name) for one in value)
    return text(value, name)


def flag(value: Any, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(name, value, "true or false")
    return value


def whole(at_least: int = 1) -> Reader:
    """A whole number from some number on."""

    def read(value: Any, name: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise wrong(name, value, f"a whole number from {at_least}")
        return value

    return read


def number(above: float = -math.inf, up_to: float = math.inf) -> Reader:
    """A finite number above one and up to another."""
    ends = [f"above {above:g}"] * (above > -math.inf)
    ends += [f"up to {up_to:g}"] * (up_to < math.inf)
    rule = " ".join(["a number", *ends])

    def read(value: Any, name: str) -> float:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not above < value <= up_to:
            raise wrong(name, value, rule)
        return float(value)

    return read


def percent(value: Any, name: str) -> float:
    """A number from 0 to 100."""
    found = number(up_to=100)(value, name)
    if found < 0:
        raise wrong(name, value, "a number from 0 to 100")
    return found


def one_of(*known: str) -> Reader:
    """One of some words."""

    def read(value: Any, name: str) -> str:
        if value not in known:
            raise wrong(name, value, f"one of {', '.join(known)}")
        return value

    return read


def some_of(*known: str) -> Reader:
    """A list of some of the words, each at most once; it may be empty."""

    def read(value: Any, name: str) -> tuple[str, ...]:
        listed = isinstance(value, list | tuple)
        words = [one_of(*known)(word, name) for word in value] if listed else []
        if not listed or len(set(words)) < len(words):
            raise wrong(name, value, f"a list of some of {', '.join(known)}, each once")
        return tuple(words)

    return read


def maybe(read: Reader) -> Reader:
    """The same, or nothing."""
    return lambda value, name: None if value is None else read(value, name)


def per_axis(read: Reader) -> Reader:
    """A value for x, y and z: one for all, a list of three, or a table {x, y, z}."""

    def each(value: Any, name: str) -> tuple[Any, ...]:
        if isinstance(value, Mapping):
            if unknown := sorted(set(value) - set(AXES)):
                raise wrong(name, dict(value), f"x, y and z only, not {unknown[0]}")
            if missing := sorted(set(AXES) - set(value)):
                raise wrong(name, dict(value), f"a value for {missing[0]} too")
            value = [value[axis] for axis in AXES]
        if not isinstance(value, list | tuple):
            value = [value] * len(AXES)
        if len(value) != len(AXES):
            raise wrong(name, value, "one value, or one for each of x, y and z")
        return tuple(
            read(v, f"{name}.{axis}") for v, axis in zip(value, AXES, strict=True)
        )

    return each


def pair(value: Any, name: str) -> tuple[float, float]:
    """Two numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong(name, value, "two numbers, as in [0.0, 4.0]")
    first, second = (number()(end, name) for end in value)
    return first, second


def rising(value: Any, name: str) -> tuple[float, float]:
    """Two numbers, the second larger."""
    first, second = pair(value, name)
    if not first < second:
        raise wrong(name, value, "two numbers, the second larger")
    return first, second


def part(value: Any, name: str) -> tuple[float, float]:
    """A part of an axis, from a lower to an upper share of it."""
    low, high = rising(value, name)
    if low < 0 or high > 1:
        raise wrong(name, value, "shares of the domain, from 0 to 1")
    return low, high


def axis_parts(value: Any, name: str) -> tuple[tuple[float, float], ...]:
    """Parts {x = [0.0, 0.2], ...}; an axis left out counts whole."""
    if isinstance(value, Mapping):
        value = {**dict.fromkeys(AXES, (0.0, 1.0)), **value}
    return per_axis(part)(value, name)


def box(value: Any, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A box in any of the forms of bounds, or {x = [lo, hi], ...}; two corners."""
    if isinstance(value, Mapping):
        value = per_axis(pair)({"z": (0.0, 0.0), **value}, name)
    try:
        found = box_bounds(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return tuple(found.lo.tolist()), tuple(found.hi.tolist())


def options(value: Any, name: str) -> Any:
    """Any table, made hashable; `jaxrig.static.thaw` gives it back."""
    if isinstance(value, Mapping):
        return freeze(dict(value))
    return freeze(value)
