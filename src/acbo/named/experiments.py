"""All that is known in the middle of an optimization, by name: rows, target, ranges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acbo.named.digraph import check_names
from acbo.types import check_direction

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Experiments:
    """Rows seen so far, which cells were set, and what is wanted of the target.

    `ranges` names the variables that may be set and how far; the target is never one.
    """

    values: np.ndarray
    intervened: np.ndarray
    names: tuple[str, ...]
    target: str
    ranges: Ranges
    direction: str = "MINIMIZE"

    def __post_init__(self) -> None:
        values = np.asarray(self.values, np.float32)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "intervened", np.asarray(self.intervened, bool))
        object.__setattr__(self, "names", check_names(self.names))
        object.__setattr__(self, "direction", check_direction(self.direction))
        self._check_shapes()
        self._check_names()

    def _check_shapes(self) -> None:
        shape = (len(self.values), len(self.names))
        if self.values.shape != shape or self.intervened.shape != shape:
            raise ValueError(
                f"values {self.values.shape} and intervened {self.intervened.shape} "
                f"need one column for each of the {len(self.names)} names"
            )
        bad = ~np.isfinite(self.values).all(axis=1)
        if bad.any():
            raise ValueError(f"row {int(np.argmax(bad)) + 1} is not finite")

    def _check_names(self) -> None:
        if self.target not in self.names:
            raise ValueError(
                f"target {self.target!r} is not one of: {', '.join(self.names)}"
            )
        if self.target in self.ranges:
            raise ValueError(f"the target {self.target!r} must not have a range")
        if not self.ranges:
            raise ValueError("ranges is empty: name the variables that may be set")
        for name, (low, high) in self.ranges.items():
            if name not in self.names:
                raise ValueError(f"a range is given for {name!r}, which is no variable")
            if not (np.isfinite(low) and np.isfinite(high) and low <= high):
                raise ValueError(f"range of {name!r}: {low} to {high} is no range")

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Low and high ends by column, 0 where nothing may be set, and what may be."""
        allowed = np.array([name in self.ranges for name in self.names])
        ends = [self.ranges.get(name, (0.0, 0.0)) for name in self.names]
        low, high = np.array(ends, np.float32).T
        return low, high, allowed

    def add(self, row: Mapping[str, float], setting: Sequence[str]) -> "Experiments":
        """One more row, in which the variables of `setting` were set."""
        missing = [name for name in self.names if name not in row]
        if missing:
            raise ValueError(f"the row has no value for: {', '.join(missing)}")
        unknown = [name for name in setting if name not in self.names]
        if unknown:
            raise ValueError(f"set, but no variable: {', '.join(unknown)}")
        value: Any = np.array([[row[name] for name in self.names]], np.float32)
        flags = np.array([[name in setting for name in self.names]])
        return replace(
            self,
            values=np.concatenate([self.values, value]),
            intervened=np.concatenate([self.intervened, flags]),
        )
