"""Statistics of a run: distances, lengths, speeds, bounds, spread, and faults."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace import paths
from jaxtrace.sphere import mean_position
from jaxtrace.trajectory import Trajectory


def validate_trajectory_data(trajectory: Trajectory) -> dict[str, Any]:
    """Return faults of a record: `valid`, and sentences in `warnings`, `errors`.

    Absorbed particles are no fault.
    """
    times, alive = trajectory.times, trajectory.alive
    known = bool(np.isfinite(times).all())
    steps = np.diff(times) if known else np.zeros(0)
    velocities = trajectory.velocities
    faults = {
        "alive particles have positions that are not finite": _unbounded(
            trajectory.positions, alive
        ),
        "alive particles have velocities that are not finite": velocities is not None
        and _unbounded(velocities, alive),
        "times are not finite": not known,
        "times run both forward and backward": (steps < 0).any() and (steps > 0).any(),
        "generations go down": (np.diff(trajectory.generation, axis=0) < 0).any(),
    }
    errors = [sentence for sentence, faulty in faults.items() if faulty]
    repeated = int(np.sum(np.diff(times) == 0))
    oddities = {
        f"{repeated} frame intervals take no time": repeated > 0,
        "no particle is alive at any frame": not alive.any(),
    }
    warnings = [sentence for sentence, odd in oddities.items() if odd]
    return {"valid": not errors, "warnings": warnings, "errors": errors}


def _unbounded(vectors: np.ndarray, alive: np.ndarray) -> bool:
    return not np.isfinite(vectors).all(where=alive[..., None])


def compute_trajectory_statistics(trajectory: Trajectory) -> dict[str, Any]:
    """Return size of the record, and mean, deviation and extremes of what was traveled.

    Sections `basic`, `displacement`, `path_length`, `speed` and `bounds`; particles
    that were never alive count nowhere, and figures of nothing are NaN.
    """
    lowest, highest = paths.bounds(trajectory)
    return {
        "basic": {
            "num_particles": trajectory.N,
            "num_timesteps": trajectory.T,
            "duration": trajectory.duration,
            "dt_mean": trajectory.dt_mean,
            "memory_mb": paths.memory_mb(trajectory),
            "num_alive": int(trajectory.alive[-1:].sum()),
            "num_recycled": int(
                np.sum(trajectory.generation[-1:] - trajectory.generation[:1])
            ),
        },
        "displacement": paths.summarize(paths.displacements(trajectory)),
        "path_length": paths.summarize(paths.path_lengths(trajectory)),
        "speed": paths.summarize(paths.speeds(trajectory)),
        "bounds": {
            "min": lowest.tolist(),
            "max": highest.tolist(),
            "extent": (highest - lowest).tolist(),
        },
    }


def analyze_trajectory_results(
    trajectory: Trajectory, strategy_info: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return statistics with a `spatial` section, and the validation of the record.

    `spatial` holds the standard deviation of the alive cloud per axis at its first and
    last frame, the change in percent and `mixing_efficiency`. `strategy_info` is kept
    under `strategy`.
    """
    statistics = compute_trajectory_statistics(trajectory)
    statistics["spatial"] = _spatial_figures(trajectory)
    if strategy_info is not None:
        statistics["strategy"] = dict(strategy_info)
    return statistics, validate_trajectory_data(trajectory)


def mixing_efficiency(trajectory: Trajectory) -> float:
    """Return displacement per unit of time and particle; NaN in no time."""
    moved = paths.displacements(trajectory)
    effort = abs(trajectory.duration) * moved.size
    return float(np.nansum(moved, dtype=np.float64)) / effort if effort else np.nan


def cloud_spread(trajectory: Trajectory, frame: int) -> Float[np.ndarray, "3"]:
    """Return the spread per axis of unwrapped alive particles at a frame.

    On a sphere it is in meters east, north and up of their mean position.
    """
    (present,) = np.nonzero(trajectory.alive[frame])
    if not present.size:
        return np.full(3, np.nan)
    frames = np.full(present.size, frame % len(trajectory.times))
    cloud = paths.unwrapped_at(trajectory, present, frames)
    radius = paths.read_radius(trajectory.metadata)
    if radius is not None:  # meters around the middle of the cloud
        middle = np.broadcast_to(mean_position(cloud), cloud.shape)
        cloud = paths.ways(middle, cloud.astype(np.float64), radius)
    return cloud.std(axis=0, dtype=np.float64)


def _spatial_figures(trajectory: Trajectory) -> dict[str, Any]:
    (occupied,) = np.nonzero(trajectory.alive.any(axis=1))
    before = after = np.full(3, np.nan)
    if occupied.size:
        before = cloud_spread(trajectory, int(occupied[0]))
        after = cloud_spread(trajectory, int(occupied[-1]))
    change = np.where(after == before, 0.0, np.inf)
    np.divide(after - before, before, out=change, where=before != 0)
    return {
        "initial_spread": before,
        "final_spread": after,
        "spread_change_percent": 100 * change,
        "mixing_efficiency": mixing_efficiency(trajectory),
    }
