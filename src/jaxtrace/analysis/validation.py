"""Whether recorded paths make sense, in words."""

from typing import Any

import numpy as np

from jaxtrace.types import PathRecord


def validate_trajectory_data(
    trajectory: PathRecord, strict: bool = False
) -> dict[str, Any]:
    """Faults of a record: `valid`, `warnings` and `errors`, the last two sentences.

    Absorbed particles are no fault; with `strict` a warning makes the record invalid.
    """
    errors, warnings = _find_errors(trajectory), _find_warnings(trajectory)
    valid = not errors and not (strict and warnings)
    return {"valid": valid, "warnings": warnings, "errors": errors}


def _find_errors(trajectory: PathRecord) -> list[str]:
    times, alive = trajectory.times, trajectory.alive
    steps = np.diff(times) if np.isfinite(times).all() else np.zeros(0)
    return [
        sentence
        for faulty, sentence in (
            (
                _unbounded(trajectory.positions, alive),
                "alive particles have positions that are not finite",
            ),
            (
                trajectory.velocities is not None
                and _unbounded(trajectory.velocities, alive),
                "alive particles have velocities that are not finite",
            ),
            (not np.isfinite(times).all(), "times are not finite"),
            (
                bool((steps < 0).any() and (steps > 0).any()),
                "times run both forward and backward",
            ),
            (
                bool((np.diff(trajectory.generation, axis=0) < 0).any()),
                "generations go down",
            ),
        )
        if faulty
    ]


def _find_warnings(trajectory: PathRecord) -> list[str]:
    found = []
    repeated = int(np.sum(np.diff(trajectory.times) == 0))
    if repeated:
        found.append(f"{repeated} frame intervals take no time")
    if not trajectory.alive.any():
        found.append("no particle is alive at any frame")
    return found


def _unbounded(vectors: np.ndarray, alive: np.ndarray) -> bool:
    return not np.isfinite(vectors).all(where=alive[..., None])
