"""How well a flow mixes: variance growth, returns and the parting of neighbors."""

import numpy as np
from jaxtyping import Float

from jaxtrace import paths
from jaxtrace.analysis.pairs import close_pairs, start_separations
from jaxtrace.analysis.statistics import cloud_spread, mixing_efficiency
from jaxtrace.types import PathRecord

# A particle has returned when it ends within this part of the mean initial spread.
RETURN_FRACTION = 0.1


def compute_mixing_metrics(
    trajectory: PathRecord, pair_fraction: float = 0.1, neighbors: int = 8
) -> dict[str, float]:
    """Measures of mixing; all but the variances do not depend on the unit of length.

    They speak of the particles there at frame 0. `variance_growth_rate` and
    `final_variance` (summed over axes, unwrapped) are of those left at the last frame
    that has any. `poincare_return_ratio` is the part of all that ends within a tenth of
    the mean initial spread of where it began, whole periods apart or not.
    `lyapunov_approximation` is the mean over close pairs of log(end / start distance)
    per unit of time, up to the last frame both are there; a pair is closer at frame 0
    than `pair_fraction` of the mean initial spread, among its `neighbors` nearest.
    `mixing_efficiency` is the summed displacement per unit of time and particle.
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
    last = _last_seeded_frames(trajectory)
    size = float(cloud_spread(trajectory, 0).mean())
    metrics |= _variance_growth(trajectory, last)
    metrics["poincare_return_ratio"] = _return_ratio(trajectory, last, size)
    rates = _parting_rates(trajectory, last, pair_fraction * size, neighbors)
    if rates.size:
        metrics["lyapunov_approximation"] = float(rates.mean())
    return metrics


def _last_seeded_frames(trajectory: PathRecord) -> np.ndarray:
    """Last frame of each particle that was there at frame 0, -1 for the others."""
    return paths.seeded_frames(trajectory).sum(axis=0) - 1


def _variance_growth(trajectory: PathRecord, last: np.ndarray) -> dict[str, float]:
    (left,) = np.nonzero(last == last.max())
    start = trajectory.positions[0, left]
    end = paths.unwrapped_at(trajectory, left, last[left])
    before, after = (
        float(cloud.var(axis=0, dtype=np.float64).sum()) for cloud in (start, end)
    )
    elapsed = abs(float(trajectory.times[last.max()] - trajectory.times[0]))
    growth = (after - before) / elapsed if elapsed else np.nan
    return {"variance_growth_rate": growth, "final_variance": after}


def _return_ratio(trajectory: PathRecord, last: np.ndarray, size: float) -> float:
    seeded = last >= 0
    (left,) = np.nonzero(seeded & (last == len(trajectory.times) - 1))
    period = paths.read_period(trajectory.metadata)
    moved = trajectory.positions[-1, left] - trajectory.positions[0, left]
    away = np.linalg.norm(paths.minimum_image(moved, period), axis=-1)
    return float(np.sum(away < RETURN_FRACTION * size) / seeded.sum())


def _parting_rates(
    trajectory: PathRecord, last: np.ndarray, radius: float, neighbors: int
) -> Float[np.ndarray, " pairs"]:
    pairs = close_pairs(trajectory, radius, neighbors)
    common = last[pairs].min(axis=1)
    pairs, common = pairs[common > 0], common[common > 0]
    moved = [
        paths.unwrapped_at(trajectory, side, common).astype(np.float64)
        - trajectory.positions[0, side]
        for side in pairs.T
    ]
    start = start_separations(trajectory, pairs)
    before = np.linalg.norm(start, axis=-1)
    after = np.linalg.norm(start + moved[1] - moved[0], axis=-1)
    apart = after > 0
    elapsed = np.abs(trajectory.times[common] - trajectory.times[0])[apart]
    return np.log(after[apart] / before[apart]) / elapsed
