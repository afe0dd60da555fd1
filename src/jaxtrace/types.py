"""The domain's words shared by every layer: particle states, recorded paths, names."""

from collections.abc import Collection
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise ValueError unless a value is one of the names allowed."""
    if value not in allowed:
        raise ValueError(f"{name} {value!r}: choose one of {', '.join(allowed)}")


class ParticleStatus(IntEnum):
    """What became of a particle by the end of a run."""

    ACTIVE = 0
    ABSORBED = 1
    EXITED = 2
    LOST = 3
    STUCK = 4


@runtime_checkable
class PathRecord(Protocol):
    """Recorded paths as host arrays; what writers, pictures and analysis read."""

    @property
    def positions(self) -> Float[np.ndarray, "frames particles 3"]:
        """Return where each particle is at each recorded instant."""
        ...

    @property
    def times(self) -> Float[np.ndarray, " frames"]:
        """Return the recorded instants, rising or (backward tracking) falling."""
        ...

    @property
    def velocities(self) -> Float[np.ndarray, "frames particles 3"] | None:
        """Return field velocity at each recorded position, if it was recorded."""
        ...

    @property
    def alive(self) -> Bool[np.ndarray, "frames particles"]:
        """Return False where the slot holds no particle."""
        ...

    @property
    def generation(self) -> Int[np.ndarray, "frames particles"]:
        """Return how many particles used the slot before this one."""
        ...

    @property
    def metadata(self) -> dict[str, Any]:
        """Return facts about the run; `period` holds the lengths of wrapping axes."""
        ...


@runtime_checkable
class ExitRecord(PathRecord, Protocol):
    """Recorded paths that also know when each particle left."""

    @property
    def exit_time(self) -> Float[np.ndarray, " particles"]:
        """Return when the particle left, NaN while it is inside."""
        ...
