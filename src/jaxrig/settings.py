"""Checked settings: dataclasses whose fields say how their values are read.

A field is annotated with a reader, `Annotated[int, whole()]`, that takes a value and
its name and returns the value to store, or raises an error with the value, the rule
and the name. Unknown names are answered with the nearest known one.
"""

import contextlib
import dataclasses
import difflib
import functools
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

MOST_LISTED = 50  # names; of more, such as the tasks of a data set, one is offered
SIMILAR = 0.5  # of 1, by difflib's ratio; what is less alike is no typo

Reader = Callable[[Any, str], Any]
T = TypeVar("T", bound="Checked")


def nearest(name: str, known: Collection[str]) -> str:
    """Return what to write instead of an unknown name.

    >>> nearest("optimise", ["suggest", "optimize"])
    "did you mean 'optimize'? There are: suggest, optimize"
    >>> nearest("temp", ["Temperature (K)", "Pressure (bar)"])
    "did you mean 'Temperature (K)'? There are: Temperature (K), Pressure (bar)"
    >>> nearest("xyzzy", ["suggest", "optimize"])
    'no name is similar. There are: suggest, optimize'
    """
    if not known:
        return "there is nothing to choose from"
    close = difflib.get_close_matches(name, known, n=1, cutoff=SIMILAR)
    if not close and name:
        close = [full for full in known if full.lower().startswith(name.lower())]
    answer = f"did you mean {close[0]!r}?" if close else "no name is similar."
    if len(known) > MOST_LISTED:
        return answer
    return f"{answer} There are: {', '.join(known)}"


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


@dataclass(frozen=True)
class Checked:
    """A group of settings; every value is checked and converted when it is made.

    >>> @dataclass(frozen=True)
    ... class Grid(Checked):
    ...     cells: Count = 8
    >>> Grid(cells=0)
    Traceback (most recent call last):
    ValueError: cells is 0: give a whole number from 1
    """

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


def wrong(name: str, value: Any, rule: str) -> ValueError:
    """Return the error for a value: its name, what it is and what it must be."""
    return ValueError(f"{name} is {value!r}: give {rule}")


def text(value: Any, name: str) -> str:
    """Read text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, value, "some text in quotes")
    return value


def flag(value: Any, name: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise wrong(name, value, "true or false")
    return value


def whole(at_least: int = 1, up_to: float = math.inf) -> Reader:
    """Return the reader of a whole number from `at_least`, and up to `up_to`."""
    end = "" if up_to == math.inf else f" to {up_to}"

    def read(value: Any, name: str) -> int:
        # Python's booleans are integers; as a count they are a mistake. Arrays of one
        # integer, such as the step of a training state, have an index as well.
        found = None
        if not isinstance(value, bool):
            with contextlib.suppress(TypeError):
                found = operator.index(value)
        if found is None or not at_least <= found <= up_to:
            raise wrong(name, value, f"a whole number from {at_least}{end}")
        return found

    return read


def number(
    above: float = -math.inf, up_to: float = math.inf, at_least: float = -math.inf
) -> Reader:
    """Return the reader of a finite number within bounds."""
    ends = [f"above {above:g}"] * (above > -math.inf)
    ends += [f"from {at_least:g}"] * (at_least > -math.inf)
    word = "to" if at_least > -math.inf else "up to"
    ends += [f"{word} {up_to:g}"] * (up_to < math.inf)
    rule = " ".join(["a number", *ends])

    def read(value: Any, name: str) -> float:
        plain = isinstance(value, Real) and not isinstance(value, bool)
        found = float(value) if plain else math.nan
        inside = above < found and at_least <= found <= up_to
        if not inside or not math.isfinite(found):
            raise wrong(name, value, rule)
        return found

    return read


def one_of(*known: str) -> Reader:
    """Return the reader of one of some words."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in known:
            close = difflib.get_close_matches(str(value), known, n=1, cutoff=SIMILAR)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise wrong(name, value, f"one of {', '.join(known)}{meant}")
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


Count = Annotated[int, whole()]
Positive = Annotated[float, number(above=0)]
NotNegative = Annotated[float, number(at_least=0)]
Fraction = Annotated[float, number(at_least=0, up_to=1)]
