"""How the settings of particle tracking are read: axes, boxes, names, fractions.

These are readers for the checked settings of `jaxrig.settings`.
"""

import datetime
import re
from collections.abc import Mapping
from typing import Any

from jaxrig.settings import Reader, number, text, wrong
from jaxrig.static_arguments import freeze
from jaxtrace.bounds import AXES, box_bounds

GIB = 1024**3
DTYPES = ("float32", "float64")


def text_or_texts(value: Any, name: str) -> str | tuple[str, ...]:
    """Read one text, or a list of them."""
    if isinstance(value, list | tuple) and value:
        return tuple(text(one, name) for one in value)
    return text(value, name)


def name_or_names(value: Any, name: str) -> str | tuple[str, ...]:
    """Read the name of an array, or those of two or three components."""
    several = isinstance(value, list | tuple) and len(value) in (2, 3)
    return (text_or_texts if several else text)(value, name)


def percent(value: Any, name: str) -> float:
    """Read a number from 0 to 100."""
    return number(at_least=0, up_to=100)(value, name)


def per_axis(read: Reader) -> Reader:
    """Return the reader of x, y and z: one for all, a list, or a table {x, y, z}."""

    def each(value: Any, name: str) -> tuple[Any, ...]:
        if isinstance(value, Mapping):
            if unknown := sorted(set(value) - set(AXES)):
                keys = ", ".join(map(repr, unknown))
                rule = "x, y and z (x = longitude, y = latitude on a sphere)"
                raise ValueError(f"{name} has {keys}: give {rule}")
            if missing := sorted(set(AXES) - set(value)):
                raise ValueError(f"{name} has no {missing[0]!r}: give it too")
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
    """Read two numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong(name, value, "two numbers, as in [0.0, 4.0]")
    first, second = (number()(end, name) for end in value)
    return first, second


Instant = float | str  # a number, or a date as ISO 8601 writes it


def instant(value: Any, name: str) -> Instant:
    """Read a time: a number in the units of the data, or a date."""
    if isinstance(value, datetime.date):  # and date-times, which TOML has too
        value = value.isoformat()
    if not isinstance(value, str):
        return number()(value, name)
    try:
        # Some calendars have days in February that others have not.
        proper = re.sub(r"^(\d{4}-02)-(29|30)", r"\1-28", value)
        found = datetime.datetime.fromisoformat(proper).isoformat()
        return found if proper == value else value[:10] + found[10:]
    except ValueError as error:
        rule = 'a number or a date, as in "2020-02-28" or "2020-02-28T12:00"'
        raise wrong(name, value, rule) from error


def span(value: Any, name: str) -> tuple[Instant, Instant]:
    """Read two times."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong(name, value, "two numbers or dates, as in [0.0, 4.0]")
    return instant(value[0], name), instant(value[1], name)


def release(value: Any, name: str) -> Instant | tuple[Instant, Instant, float]:
    """Read a time of release, or start, stop and the time from one to the next."""
    if not isinstance(value, list | tuple):
        return instant(value, name)
    if len(value) != 3:
        raise wrong(name, value, "one time, or [start, stop, every]")
    return instant(value[0], name), instant(value[1], name), number()(value[2], name)


def rising(value: Any, name: str) -> tuple[float, float]:
    """Read two numbers, the second larger."""
    first, second = pair(value, name)
    if not first < second:
        raise wrong(name, value, "two numbers, the second larger")
    return first, second


def axis_fractions(value: Any, name: str) -> tuple[tuple[float, float], ...]:
    """Read parts of the domain {x = [0.0, 0.2], ...}; an axis left out counts whole."""
    if isinstance(value, Mapping):
        value = {**dict.fromkeys(AXES, (0.0, 1.0)), **value}
    return per_axis(_fraction)(value, name)


def _fraction(value: Any, name: str) -> tuple[float, float]:
    low, high = rising(value, name)
    if low < 0 or high > 1:
        raise wrong(name, value, "fractions of the domain, from 0 to 1")
    return low, high


def box(value: Any, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Read a box, as bounds in any form or {x = [lo, hi], ...}, as two corners."""
    if isinstance(value, Mapping):
        value = per_axis(pair)({"z": (0.0, 0.0), **value}, name)
    try:
        found = box_bounds(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return tuple(found.lo.tolist()), tuple(found.hi.tolist())


def options(value: Any, name: str) -> Any:
    """Read any table, made hashable; `jaxrig.static_arguments.thaw` gives it back."""
    return freeze(dict(value) if isinstance(value, Mapping) else value)


def as_given(value: Any, name: str) -> Any:
    """Read anything: whoever uses it checks it."""
    del name
    return value
