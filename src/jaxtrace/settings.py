"""Checked settings: dataclasses whose fields say how their values are read.

A field is annotated with a reader, `Annotated[int, whole()]`, that takes a value and
its name and returns the value to store, or raises an error with the value, the rule
and the name. Cases and the package's own configuration are made of these.
"""

import dataclasses
import difflib
import functools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, get_type_hints

from jaxrig.static import freeze
from jaxtrace.bounds import AXES, box_bounds

GIB = 1024**3
DTYPES = ("float32", "float64")

Reader = Callable[[Any, str], Any]
T = TypeVar("T", bound="Checked")


@dataclass(frozen=True)
class Checked:
    """A group of settings; every value is checked and converted when it is made."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, read in readers(type(self)).items():
            object.__setattr__(self, name, read(getattr(self, name), self._full(name)))

    @classmethod
    def from_mapping(cls: type[T], given: Mapping[str, Any]) -> T:
        """Return the settings of a mapping; unknown and missing keys are errors."""
        read = cls.read(given)
        for field in dataclasses.fields(cls):
            if field.default is dataclasses.MISSING and field.name not in read:
                raise ValueError(f"[{cls.section}] needs {field.name}: add it")
        return cls(**read)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of known keys, checked and converted."""
        what = f"key in [{cls.section}]" if cls.section else "setting"
        table = readers(cls)
        known = known_only(given, list(table), what)
        return {k: table[k](v, cls._full(k)) for k, v in known.items()}

    def to_mapping(self) -> dict[str, Any]:
        """Return the settings as a file would hold them; None is left out."""
        found = {name: getattr(self, name) for name in readers(type(self))}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def _full(cls, name: str) -> str:
        return f"{cls.section}.{name}" if cls.section else name


@functools.cache
def readers(kind: type[Checked]) -> dict[str, Reader]:
    """Return the reader of every field, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return {f.name: hints[f.name].__metadata__[0] for f in dataclasses.fields(kind)}


def known_only(
    given: Mapping[str, Any], known: Collection[str], what: str
) -> dict[str, Any]:
    """Return the mapping as a dict; TypeError names the nearest of the known names.

    >>> known_only({"dt": 1}, ("dt", "n"), "option")
    {'dt': 1}
    """
    for name in given:
        if name not in known:
            raise TypeError(f"no {what} {name!r}; {nearest(name, known)}")
    return dict(given)


def nearest(name: str, known: Collection[str]) -> str:
    """Return what to write instead of an unknown name."""
    if not known:
        return "there is nothing to choose from"
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return f"did you mean {close!r}? There are: {', '.join(known)}"


def wrong(name: str, value: Any, rule: str) -> ValueError:
    """Return the error for a value: its name, what it is and what it must be."""
    return ValueError(f"{name} is {value!r}: give {rule}")


def text(value: Any, name: str) -> str:
    """Read text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, value, "some text in quotes")
    return value


def name_or_names(value: Any, name: str) -> str | tuple[str, ...]:
    """Read the name of an array, or those of two or three components."""
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(text(one, name) for one in value)
    return text(value, name)


def flag(value: Any, name: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise wrong(name, value, "true or false")
    return value


def whole(at_least: int = 1) -> Reader:
    """Return the reader of a whole number from `at_least`."""

    def read(value: Any, name: str) -> int:
        plain = isinstance(value, Integral) and not isinstance(value, bool)
        if not plain or value < at_least:
            raise wrong(name, value, f"a whole number from {at_least}")
        return int(value)

    return read


def number(above: float = -math.inf, up_to: float = math.inf) -> Reader:
    """Return the reader of a finite number above one bound and up to another."""
    ends = [f"above {above:g}"] * (above > -math.inf)
    ends += [f"up to {up_to:g}"] * (up_to < math.inf)
    rule = " ".join(["a number", *ends])

    def read(value: Any, name: str) -> float:
        plain = isinstance(value, Real) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not above < value <= up_to:
            raise wrong(name, value, rule)
        return float(value)

    return read


def percent(value: Any, name: str) -> float:
    """Read a number from 0 to 100."""
    found = number(up_to=100)(value, name)
    if found < 0:
        raise wrong(name, value, "a number from 0 to 100")
    return found


def one_of(*known: str) -> Reader:
    """Return the reader of one of some words."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in known:
            raise wrong(name, value, f"one of {', '.join(known)}")
        return value

    return read


def some_of(*known: str) -> Reader:
    """Return the reader of a list of the words, each at most once; it may be empty."""

    def read(value: Any, name: str) -> tuple[str, ...]:
        listed = isinstance(value, list | tuple)
        words = [one_of(*known)(word, name) for word in value] if listed else []
        if not listed or len(set(words)) < len(words):
            raise wrong(name, value, f"a list of some of {', '.join(known)}, each once")
        return tuple(words)

    return read


def maybe(read: Reader) -> Reader:
    """Return the reader of the same, or of None."""
    return lambda value, name: None if value is None else read(value, name)


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
    """Read any table, made hashable; `jaxrig.static.thaw` gives it back."""
    return freeze(dict(value) if isinstance(value, Mapping) else value)
