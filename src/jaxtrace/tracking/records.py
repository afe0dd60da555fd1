"""Trajectories made from plain arrays or from other trajectories."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from jaxtrace import paths
from jaxtrace.tracking.shapes import as_paths
from jaxtrace.tracking.trajectory import Trajectory
from jaxtrace.types import ParticleStatus

MERGE_AXES = ("time", "particles")
# Clocks agree when they differ by less than this part of a frame interval.
CLOCK_AGREEMENT = 1e-3


def create_trajectory_from_positions(
    positions: ArrayLike,
    times: ArrayLike | None = None,
    velocities: ArrayLike | None = None,
    **metadata: Any,
) -> Trajectory:
    """A trajectory of given positions, at times 0, 1, 2, ... unless given."""
    points = as_paths(positions, "positions")
    if times is None:
        times = np.arange(len(points), dtype=points.dtype)
    return Trajectory(points, times, velocities, metadata)


def create_single_particle_trajectory(
    positions: ArrayLike,
    times: ArrayLike | None = None,
    velocities: ArrayLike | None = None,
    **metadata: Any,
) -> Trajectory:
    """The trajectory of one particle from its positions, (T, 2) or (T, 3)."""
    if np.ndim(positions) != 2:
        raise ValueError(
            f"positions have shape {np.shape(positions)}: one particle has (T, 2) or "
            "(T, 3); use create_trajectory_from_positions for several"
        )
    metadata["particle_type"] = "single"
    return create_trajectory_from_positions(positions, times, velocities, **metadata)


def create_empty_trajectory(num_particles: int, num_timesteps: int) -> Trajectory:
    """A record of the given size with no particle alive yet, at times 0, 1, 2, ..."""
    shape = (num_timesteps, num_particles)
    return Trajectory(
        np.zeros((*shape, 3), np.float32),
        np.arange(num_timesteps, dtype=np.float32),
        metadata={"status": "empty"},
        alive=np.zeros(shape, bool),
        status=np.full(num_particles, ParticleStatus.ACTIVE),
    )


def merge_trajectories(
    trajectories: Sequence[Trajectory], axis: str = "time"
) -> Trajectory:
    """One trajectory out of several, one after another or side by side.

    Along time, a part that begins with the very frame at which the one before it ended
    (a restarted run) contributes that frame once. Velocities are kept when every part
    has them; metadata is the first part's.
    """
    if axis not in MERGE_AXES:
        raise ValueError(f"axis is {axis!r}: choose one of {', '.join(MERGE_AXES)}")
    if not trajectories:
        raise ValueError("there is nothing to merge: give at least one trajectory")
    for other in trajectories[1:]:
        _require_same_period(trajectories[0], other)
    join = _join_frames if axis == "time" else _join_particles
    merged = join(trajectories)
    merged.metadata |= {"merged_axis": axis, "merged_count": len(trajectories)}
    return merged


def _require_same_period(first: Trajectory, other: Trajectory) -> None:
    one, two = (paths.read_period(part.metadata) for part in (first, other))
    if not np.array_equal(one, two):
        raise ValueError(
            f"periods {one} and {two} differ: paths of different domains do not merge"
        )


def _join_frames(parts: Sequence[Trajectory]) -> Trajectory:
    counts = [part.N for part in parts]
    if len(set(counts)) > 1:
        raise ValueError(
            f"the parts have {counts} particles: parts merged along time must have the "
            "same number"
        )
    first = parts[0]
    kept, generations, count = [first], [first.generation], first.generation
    status, exit_time = first.status, first.exit_time
    for before, after in pairwise(parts):
        repeated = int(_begins_where_ended(before, after))
        kept.append(after[repeated:])
        count = _continued_count(count, after.generation)
        generations.append(count[repeated:])
        status = np.where(after.alive.any(axis=0), after.status, status)
        exit_time = np.where(np.isnan(after.exit_time), exit_time, after.exit_time)
    return Trajectory(
        np.concatenate([part.positions for part in kept]),
        np.concatenate([part.times for part in kept]),
        _joined_velocities(kept, axis=0),
        first.metadata,
        np.concatenate([part.alive for part in kept]),
        np.concatenate(generations),
        status,
        exit_time,
    )


def _begins_where_ended(before: Trajectory, after: Trajectory) -> bool:
    if not before.T or not after.T or after.times[0] != before.times[-1]:
        return False
    return np.array_equal(before.positions[-1], after.positions[0], equal_nan=True)


def _continued_count(
    before: Int[np.ndarray, "earlier particles"],
    after: Int[np.ndarray, "later particles"],
) -> Int[np.ndarray, "later particles"]:
    """Generations of a later part, counted on where it began to count anew."""
    if not len(before) or not len(after):
        return after
    return after + np.maximum(before[-1] - after[0], 0)


def _same_clock(one: Trajectory, other: Trajectory) -> bool:
    allowed = CLOCK_AGREEMENT * abs(one.dt_mean)
    return bool(np.all(np.abs(one.times - other.times) <= allowed))


def _joined_velocities(
    parts: Sequence[Trajectory], axis: int
) -> Float[np.ndarray, "frames particles 3"] | None:
    known = [part.velocities for part in parts if part.velocities is not None]
    return np.concatenate(known, axis=axis) if len(known) == len(parts) else None


def _join_particles(parts: Sequence[Trajectory]) -> Trajectory:
    first = parts[0]
    for part in parts[1:]:
        if part.T != first.T or not _same_clock(first, part):
            raise ValueError(
                f"the parts have {first.T} and {part.T} frames or different times: "
                "parts merged along particles must share their frames"
            )
    beside = lambda arrays: np.concatenate(list(arrays), axis=1)
    return Trajectory(
        beside(part.positions for part in parts),
        first.times,
        _joined_velocities(parts, axis=1),
        first.metadata,
        beside(part.alive for part in parts),
        beside(part.generation for part in parts),
        np.concatenate([part.status for part in parts]),
        np.concatenate([part.exit_time for part in parts]),
    )
