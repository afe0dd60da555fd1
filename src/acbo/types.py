"""Words of the domain: channels of a data tensor, directions, numbers for people."""

import importlib
import math
from collections.abc import Collection, Sequence, Set
from numbers import Integral
from typing import Any, Literal

from jaxtyping import Array, Int

from jaxrig.machine import missing_extra
from jaxrig.settings import nearest

# Channels of the data tensor [rows, variables, 3].
VALUE, INTERVENED, TARGET = 0, 1, 2
CHANNELS = 3

MINIMIZE, MAXIMIZE = "MINIMIZE", "MAXIMIZE"
Direction = Literal["MINIMIZE", "MAXIMIZE"]

Index = Int[Array, ""]
Range = tuple[float, float]  # lowest and highest value


def check_direction(direction: str) -> Direction:
    """Return the direction in capitals; ValueError for anything else."""
    check_known(direction.upper(), (MINIMIZE, MAXIMIZE), "direction")
    return MINIMIZE if direction.upper() == MINIMIZE else MAXIMIZE


def lower_is_better(direction: str) -> float:
    """Return the sign that makes lower outcomes better: 1 or -1."""
    return 1.0 if check_direction(direction) == MINIMIZE else -1.0


def check_known(name: Any, names: Collection[str], what: str = "variable") -> None:
    """Raise ValueError, naming the nearest, unless the name is one of `names`."""
    if name not in names:
        listed = sorted(names) if isinstance(names, Set) else names
        raise ValueError(f"{what} {name!r} is not known; {nearest(str(name), listed)}")


def find_column(which: Any, names: Sequence[str]) -> int:
    """Return the column of a variable given by name or by number."""
    if isinstance(which, Integral) and 0 <= (column := int(which)) < len(names):
        return column
    check_known(which, names)
    return names.index(which)


def as_float(value: Any, what: str) -> float:
    """Return a finite number as a float; ValueError naming `what` for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}: give a number") from None
    if number - number != 0.0:
        raise ValueError(f"{what} is {number}: give a finite number")
    return number


def import_extra(name: str, what: str) -> Any:
    """Return a library of the extra `causal`; ImportError says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise missing_extra(f"{what} need {name}", "causal") from error


def signed(value: float, std: float = 0.0, digits: int = 4) -> str:
    """Return a number for people, in few digits, or in as many as its std needs."""
    if value and std > 0:
        digits = min(max(digits, math.ceil(math.log10(abs(value) / std)) + 2), 15)
    return f"{value:.{digits}g}"


def in_full(value: float) -> str:
    """Return a number as it was told, to single precision."""
    return signed(value, digits=7)


MINUS = "\N{MINUS SIGN}"


def in_words(value: float, spread: float = 0.0) -> str:
    """Return a number for a sentence: three digits, or more where values that spread
    so far need them to be told apart.

    >>> in_words(-1.23456), in_words(45231.0), in_words(351.234, 2.0)
    ('\N{MINUS SIGN}1.23', '45200', '351.23')
    """
    rounded = float(signed(value, spread, digits=3))
    return f"{rounded:.15g}".replace("-", MINUS)


def percent(value: float) -> str:
    """Return a probability as a percentage."""
    return f"{round(value, 2) + 0.0:.0%}"  # never -0%


FEWEST_ZEROS = (
    1e-6  # of a deviation: beyond it and its inverse, powers of ten are shorter
)


def plus_minus(value: float, std: float) -> str:
    """Return a number and its standard deviation, which has two digits.

    >>> plus_minus(60.2731, 8.859), plus_minus(45231.0, 1234.0)
    ('60.3 ± 8.9', '45231 ± 1234')
    >>> plus_minus(-2.231e-9, 1.62e-9)
    '(-2.2 ± 1.6)e-09'
    """
    if not std > 0:
        return signed(value)
    power = 0
    if not FEWEST_ZEROS <= std < 1 / FEWEST_ZEROS:
        power = math.floor(math.log10(max(abs(value), std)))
    value, std = (each * 10.0**-power for each in (value, std))
    places = min(max(0, 1 - math.floor(math.log10(std))), 15)
    shown = f"{value:.{places}f} ± {std:.{places}f}"
    return f"({shown})e{power:+03d}" if power else shown
