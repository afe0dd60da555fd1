"""Statistics of a run: distances and speeds, faults, mixing, pairs and residence."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from jaxtrace import paths
from jaxtrace.analysis.density import unit_vectors
from jaxtrace.sphere import mean_position
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ExitRecord, PathRecord


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
    return _about_middle(trajectory, cloud).std(axis=0)


def _about_middle(trajectory: PathRecord, cloud: np.ndarray) -> np.ndarray:
    """Return a cloud as it is, or on a sphere in meters from its mean position."""
    radius, cloud = paths.read_radius(trajectory.metadata), cloud.astype(np.float64)
    if radius is None:
        return cloud
    return paths.ways(np.broadcast_to(mean_position(cloud), cloud.shape), cloud, radius)


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


def close_pairs(
    trajectory: PathRecord, radius: float, neighbors: int
) -> Int[np.ndarray, "pairs 2"]:
    """Return pairs closer than `radius` at frame 0, but apart; lower first.

    Each particle is paired with its nearest `neighbors` at most, so that the number of
    pairs grows with the number of particles however dense the cloud is. On a sphere the
    radius is one of meters, along straight lines.
    """
    (present,) = np.nonzero(trajectory.alive[:1].all(axis=0))
    if present.size < 2 or not trajectory.alive.size or neighbors < 1:
        return np.zeros((0, 2), np.int64)
    points = trajectory.positions[0, present].astype(np.float64)
    period = paths.read_period(trajectory.metadata)
    globe = paths.read_radius(trajectory.metadata)
    if globe is not None:
        points, period = unit_vectors(points) * (globe + points[:, 2:]), np.zeros(3)
    tree = KDTree(_into_box(points, period), boxsize=period)
    distance, found = tree.query(
        tree.data, k=neighbors + 1, distance_upper_bound=radius
    )
    distance, found = np.asarray(distance), np.asarray(found)
    apart = np.isfinite(distance) & (distance > 0)
    one = np.broadcast_to(np.arange(present.size)[:, None], found.shape)[apart]
    both = np.sort(np.stack([one, found[apart]], axis=1), axis=1)
    return present[np.unique(both, axis=0)]


def start_separations(
    trajectory: PathRecord, pairs: Int[np.ndarray, "pairs 2"]
) -> Float[np.ndarray, "pairs 3"]:
    """Return each pair's separation at frame 0, by the nearest image or in meters."""
    return _shortest_ways(trajectory, *trajectory.positions[0][pairs.T])


def _shortest_ways(
    trajectory: PathRecord, start: np.ndarray, end: np.ndarray
) -> Float[np.ndarray, "points 3"]:
    """Return ways that do not count periods; on a sphere in meters."""
    start, end = start.astype(np.float64), end.astype(np.float64)
    radius = paths.read_radius(trajectory.metadata)
    if radius is not None:
        return paths.ways(start, end, radius)
    return paths.minimum_image(end - start, paths.read_period(trajectory.metadata))


def _into_box(
    points: Float[np.ndarray, "points 3"], period: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "points 3"]:
    """Wrap points into `[0, period)` on periodic axes, as the tree asks."""
    length = np.where(period > 0, period, 1)
    folded = np.mod(points, length)
    return np.where(period > 0, np.where(folded < length, folded, 0), points)


# A particle has returned when it ends within this part of the mean initial spread.
RETURN_FRACTION = 0.1


def compute_mixing_metrics(
    trajectory: Trajectory, pair_fraction: float = 0.1, neighbors: int = 8
) -> dict[str, float]:
    """Return measures of mixing; only the variances depend on the unit of length.

    On a sphere that is the meter. They speak of the particles there at frame 0.
    `variance_growth_rate` and `final_variance` (summed over axes, unwrapped) are of
    those left at the last frame that has any. `poincare_return_ratio` is the part of
    all that ends within a tenth of the mean initial spread of where it began, whole
    periods apart or not. `lyapunov_approximation` is the mean over close pairs of
    log(end / start distance) per unit of time, up to the last frame both are there; a
    pair is closer at frame 0 than `pair_fraction` of the mean initial spread, among its
    `neighbors` nearest. `mixing_efficiency` is the summed displacement per unit of time
    and particle.
    A measure of nothing is NaN.
    """
    metrics = {
        "variance_growth_rate": np.nan,
        "final_variance": np.nan,
        "poincare_return_ratio": np.nan,
        "lyapunov_approximation": np.nan,
        "mixing_efficiency": mixing_efficiency(trajectory),
    }
    if not trajectory.alive[:1].any():
        return metrics
    # The last frame of each particle seen at frame 0; -1 for others.
    last = paths.seeded_frames(trajectory).sum(axis=0) - 1
    size = float(cloud_spread(trajectory, 0).mean())
    metrics |= _variance_growth(trajectory, last)
    metrics["poincare_return_ratio"] = _return_ratio(trajectory, last, size)
    rates = _parting_rates(trajectory, last, pair_fraction * size, neighbors)
    if rates.size:
        metrics["lyapunov_approximation"] = float(rates.mean())
    return metrics


def _variance_growth(trajectory: PathRecord, last: np.ndarray) -> dict[str, float]:
    (left,) = np.nonzero(last == last.max())
    start = trajectory.positions[0, left]
    end = paths.unwrapped_at(trajectory, left, last[left])
    before, after = (
        float(_about_middle(trajectory, cloud).var(axis=0).sum())
        for cloud in (start, end)
    )
    elapsed = abs(float(trajectory.times[last.max()] - trajectory.times[0]))
    growth = (after - before) / elapsed if elapsed else np.nan
    return {"variance_growth_rate": growth, "final_variance": after}


def _return_ratio(trajectory: PathRecord, last: np.ndarray, size: float) -> float:
    seeded = last >= 0
    (left,) = np.nonzero(seeded & (last == len(trajectory.times) - 1))
    moved = _shortest_ways(trajectory, *trajectory.positions[[0, -1]][:, left])
    away = np.linalg.norm(moved, axis=-1)
    return float(np.sum(away < RETURN_FRACTION * size) / seeded.sum())


def _parting_rates(
    trajectory: PathRecord, last: np.ndarray, radius: float, neighbors: int
) -> Float[np.ndarray, " pairs"]:
    pairs = close_pairs(trajectory, radius, neighbors)
    common = last[pairs].min(axis=1)
    pairs, common = pairs[common > 0], common[common > 0]
    start = start_separations(trajectory, pairs)
    ends = [paths.unwrapped_at(trajectory, side, common) for side in pairs.T]
    begun = trajectory.positions[0][pairs.T]
    before = np.linalg.norm(start, axis=-1)
    after = np.linalg.norm(_separations(trajectory, start, begun, ends), axis=-1)
    apart = after > 0
    elapsed = np.abs(trajectory.times[common] - trajectory.times[0])[apart]
    return np.log(after[apart] / before[apart]) / elapsed


def mean_squared_displacement(trajectory: PathRecord) -> Float[np.ndarray, " frames"]:
    """Return the mean of |x(t) - x(0)|^2 over particles that are still there.

    Paths are unwrapped; a frame at which none of those particles is left gives NaN. On
    a sphere distances are meters along great circles.
    """
    radius = paths.read_radius(trajectory.metadata)

    def moved(block: slice) -> tuple[np.ndarray, np.ndarray]:
        present = paths.seeded_frames(trajectory, block)
        reached = paths.unwrap(trajectory, block).astype(np.float64)
        return present, paths.ways(reached[:1], reached, radius)

    frames, particles = trajectory.alive.shape
    return _mean_square(frames, particles, moved)


def dispersion(
    trajectory: PathRecord, pairs: Int[np.ndarray, "pairs 2"] | None = None
) -> Float[np.ndarray, " frames"]:
    """Return mean squared separation of pairs of particles while both are there.

    Without `pairs`, each particle is paired with the one nearest to it at frame 0.
    """
    if pairs is None:
        pairs = close_pairs(trajectory, radius=np.inf, neighbors=1)

    def apart(block: slice) -> tuple[np.ndarray, np.ndarray]:
        sides = pairs[block].T
        both = [paths.seeded_frames(trajectory, side) for side in sides]
        there = [paths.unwrap(trajectory, side) for side in sides]
        start = start_separations(trajectory, pairs[block])
        begun = [side[:1] for side in there]
        return np.logical_and(*both), _separations(trajectory, start, begun, there)

    return _mean_square(len(trajectory.times), len(pairs), apart)


def _separations(
    trajectory: PathRecord, start: np.ndarray, begun: Any, there: Any
) -> Float[np.ndarray, "*points 3"]:
    """Return separations of pairs that were `start` apart where they had begun."""
    one, other = (side.astype(np.float64) for side in there)
    radius = paths.read_radius(trajectory.metadata)
    if radius is not None:
        return paths.ways(one, other, radius)
    return start + (other - begun[1]) - (one - begun[0])


def _mean_square(
    frames: int, columns: int, look: Callable[[slice], tuple[np.ndarray, np.ndarray]]
) -> Float[np.ndarray, " frames"]:
    """Return mean squares of vectors; `look` gives those of a block, and who counts."""
    total, count = np.zeros(frames), np.zeros(frames, np.int64)
    for block in paths.column_blocks(frames, columns):
        with np.errstate(invalid="ignore"):
            present, vectors = look(block)
            squares = np.sum(vectors**2, axis=-1)
        total += squares.sum(axis=1, where=present)
        count += present.sum(axis=1)
    return total / np.where(count > 0, count, np.nan)


def completed_residence_times(trajectory: ExitRecord) -> Float[np.ndarray, " stays"]:
    """Return durations of every stay that ended, recycled particles included."""
    entered, left = paths.life_times(trajectory, paths.find_lives(trajectory))
    stays = np.abs(left - entered)
    return stays[np.isfinite(stays)]
