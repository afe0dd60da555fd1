"""Words of the domain: channels of a data tensor, directions, array aliases."""

from typing import Any, Literal

from jaxtyping import Array, Float, Int

# Channels of the data tensor [rows, variables, 3].
VALUE, INTERVENED, TARGET = 0, 1, 2
CHANNELS = 3

MINIMIZE, MAXIMIZE = "MINIMIZE", "MAXIMIZE"
Direction = Literal["MINIMIZE", "MAXIMIZE"]

Row = Float[Array, " d"]
Index = Int[Array, ""]


def check_direction(direction: str) -> Direction:
    """Return the direction in capitals; ValueError for anything else."""
    found = direction.upper()
    if found == MINIMIZE:
        return MINIMIZE
    if found == MAXIMIZE:
        return MAXIMIZE
    raise ValueError(f"direction={direction!r} is not one of: {MINIMIZE}, {MAXIMIZE}")


def lower_is_better(direction: str) -> float:
    """Return the sign that makes lower outcomes better: 1 or -1."""
    return 1.0 if check_direction(direction) == MINIMIZE else -1.0


def as_float(value: Any, what: str) -> float:
    """Return a finite number as a float; ValueError naming `what` for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {value!r}: give a number") from None
    if number - number != 0.0:
        raise ValueError(f"{what} is {number}: give a finite number")
    return number
