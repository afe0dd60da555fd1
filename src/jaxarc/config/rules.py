"""Rules of single settings: which values are legal, in words, and which are unusual."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LARGEST_WHOLE = 2**31 - 1  # counters and sizes are int32 on the device
INFINITY = float("inf")


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Rule:
    """What a setting must be, in words and as a test.

    `read` gives the value that a file's value stands for; legal values larger than
    `unusual_above` deserve a warning.
    """

    wanted: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any] = _same
    unusual_above: float | None = None


def flag() -> Rule:
    """True or False, not 1 or 0."""
    return Rule("true or false", lambda value: isinstance(value, bool))


def whole(
    least: int = -LARGEST_WHOLE,
    most: int = LARGEST_WHOLE,
    unusual_above: float | None = None,
) -> Rule:
    """A whole number between two bounds, both included."""

    def accepts(value: Any) -> bool:
        number = isinstance(value, int) and not isinstance(value, bool)
        return number and least <= value <= most

    words = f"a whole number from {least} to {most}"
    return Rule(words, accepts, unusual_above=unusual_above)


def number(
    least: float = -INFINITY, most: float = INFINITY, above: float = -INFINITY
) -> Rule:
    """A finite number between two bounds, both included, and above a third."""

    def accepts(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        inside = least <= value <= most and value > above
        return inside and -INFINITY < value < INFINITY

    words = "a finite number"
    words += f" from {least:g}" if least > -INFINITY else ""
    words += f" above {above:g}" if above > -INFINITY else ""
    words += f" to {most:g}" if most < INFINITY else ""
    return Rule(words, accepts)


def text(empty: bool = True) -> Rule:
    """Text, which may have to hold something."""

    def accepts(value: Any) -> bool:
        return isinstance(value, str) and (empty or bool(value.strip()))

    return Rule("text" if empty else "text that is not empty", accepts)


def one_of(*options: str | int) -> Rule:
    """One of a few values, of the type listed."""

    def accepts(value: Any) -> bool:
        return any(type(value) is type(x) and value == x for x in options)

    def read(value: Any) -> Any:
        # YAML takes a bare `off` for false.
        return "off" if value is False and "off" in options else value

    return Rule("one of " + ", ".join(map(repr, options)), accepts, read)


def items(item: Rule, empty: bool = False) -> Rule:
    """A tuple of distinct values that all follow one rule."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, tuple) or not (value or empty):
            return False
        return all(map(item.accepts, value)) and len(set(value)) == len(value)

    words = "a list" if empty else "a list, not empty,"
    return Rule(f"{words} of distinct values, each {item.wanted}", accepts)


def maybe(rule: Rule) -> Rule:
    """None, or what another rule says."""

    def accepts(value: Any) -> bool:
        return value is None or rule.accepts(value)

    def read(value: Any) -> Any:
        return None if value is None else rule.read(value)

    return Rule(f"null or {rule.wanted}", accepts, read)
