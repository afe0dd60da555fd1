"""How the settings of particle tracking are read: axes, boxes, names, fractions.

These are readers for the checked settings of `jaxrig.settings`.
"""

from collections.abc import Mapping
from typing import Any

from jaxrig.settings import Reader, number, text, wrong
from jaxrig.static_arguments import freeze
from jaxtrace.bounds import AXES, box_bounds

GIB = 1024**3
DTYPES = ("float32", "float64")


def name_or_names(value: Any, name: str) -> str | tuple[str, ...]:
    """Read the name of an array, or those of two or three components."""
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(text(one, name) for one in value)
    return text(value, name)


def text_or_texts(value: Any, name: str) -> str | tuple[str, ...]:
    """Read one text, or a list of them."""
    if isinstance(value, list | tuple) and value:
        return tuple(text(one, name) for one in value)
    return text(value, name)


def percent(value: Any, name: str) -> float:
    """Read a number from 0 to 100."""
    return number(at_least=0, up_to=100)(value, name)


def per_axis(read: Reader) -> Reader:
    """Return the reader of x, y and z: one for all, a list, or a table {x, y, z}."""

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
    """Read two numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong(name, value, "two numbers, as in [0.0, 4.0]")
    first, second = (number()(end, name) for end in value)
    return first, second


def release(value: Any, name: str) -> float | tuple[float, float, float]:
    """Read a time of release, or start, stop and the time from one to the next."""
    if not isinstance(value, list | tuple):
        return number()(value, name)
    if len(value) != 3:
        raise wrong(name, value, "one time, or [start, stop, every]")
    start, stop, every = (number()(one, name) for one in value)
    return start, stop, every


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
