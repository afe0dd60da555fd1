"""Checks of configuration values, with one sentence for all of them."""

import math
from typing import Any


def require(config: Any, low: float, high: float, *names: str) -> None:
    """Each named field is finite and within [low, high]; `high` may be infinite."""
    for name in names:
        value = getattr(config, name)
        if not (math.isfinite(value) and low <= value <= high):
            bound = f"in [{low}, {high}]" if math.isfinite(high) else f"at least {low}"
            raise ValueError(f"{name}={value} must be {bound}")


def require_positive(config: Any, *names: str) -> None:
    """Each named field is finite and above 0."""
    for name in names:
        value = getattr(config, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value} must be above 0")
