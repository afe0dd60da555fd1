"""The domain's words shared by every layer: particle states, recorded paths, names."""

import inspect
import re
from collections.abc import Callable, Collection
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise ValueError unless a value is one of the names allowed."""
    if value not in allowed:
        raise ValueError(f"{name} {value!r}: choose one of {', '.join(allowed)}")


def is_url(name: Any) -> bool:
    """Return whether a name is an address, such as "s3://bucket/store.zarr"."""
    return bool(re.match(r"[a-z][a-z0-9+.:-]*://", str(name)))


def needed_arguments(function: Callable[..., Any]) -> int:
    """Return how many positional arguments a function cannot do without."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


class ParticleStatus(IntEnum):
    """What became of a particle by the end of a run."""

    ACTIVE = 0
    ABSORBED = 1
    EXITED = 2
    LOST = 3
    STUCK = 4
    BEACHED = 5
    EXPIRED = 6
    REMOVED = 7  # by a behavior


@runtime_checkable
class PathRecord(Protocol):
    """Recorded paths as host arrays; what writers, pictures and analysis read.

    Times rise, or fall where particles were tracked backward. `alive` is False where a
    slot holds no particle, and `generation` counts the particles that used it before.
    `metadata["period"]` holds the lengths of wrapping axes.
    """

    positions: Float[np.ndarray, "frames particles 3"]
    times: Float[np.ndarray, " frames"]
    velocities: Float[np.ndarray, "frames particles 3"] | None
    alive: Bool[np.ndarray, "frames particles"]
    generation: Int[np.ndarray, "frames particles"]
    metadata: dict[str, Any]


@runtime_checkable
class ExitRecord(PathRecord, Protocol):
    """Recorded paths that also know when each particle left, NaN while it is inside.

    `release_time` is when it entered, None where all did at the first frame.
    """

    exit_time: Float[np.ndarray, " particles"]
    release_time: Float[np.ndarray, " particles"] | None
