"""Where particles start: every seeding function, and checks of what they give."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from jaxtrace.bounds import AXES, Box, box_bounds
from jaxtrace.tracking.seed_sampling import (
    custom_distribution_seeds,
    field_informed_seeds,
    stratified_seeds,
)
from jaxtrace.tracking.seed_shapes import (
    Seeds,
    as_seeds,
    boundary_seeds,
    circle_seeds,
    gaussian_cluster_seeds,
    line_seeds,
    random_seeds,
    rectangular_seeds,
    sphere_seeds,
    uniform_grid_seeds,
)

__all__ = [
    "boundary_seeds",
    "circle_seeds",
    "combine_seed_strategies",
    "custom_distribution_seeds",
    "field_informed_seeds",
    "gaussian_cluster_seeds",
    "line_seeds",
    "random_seeds",
    "rectangular_seeds",
    "seed_density_analysis",
    "sphere_seeds",
    "stratified_seeds",
    "uniform_grid_seeds",
    "validate_seeds",
]

STRATEGIES = {
    "random": random_seeds,
    "uniform_grid": uniform_grid_seeds,
    "line": line_seeds,
    "circle": circle_seeds,
    "sphere": sphere_seeds,
    "rectangular": rectangular_seeds,
    "boundary": boundary_seeds,
    "gaussian_cluster": gaussian_cluster_seeds,
    "stratified": stratified_seeds,
    "custom_distribution": custom_distribution_seeds,
    "field_informed": field_informed_seeds,
}
COUNTLESS = ("uniform_grid",)  # its resolution is its count
FIXED = ("uniform_grid", "line", "circle")  # nothing random in them


def combine_seed_strategies(
    strategies: Sequence[Mapping[str, Any]], rng_seed: int = 0, dtype: Any = None
) -> Seeds:
    """Seeds of several strategies after one another.

    Each is `{"type": ..., "n": ...}` with the arguments of the function of that name.
    One that names no `rng_seed` gets its own, so that no two repeat each other.
    """
    parts = [
        _apply(strategy, rng_seed + index) for index, strategy in enumerate(strategies)
    ]
    return as_seeds(np.concatenate([np.zeros((0, 3)), *parts]), dtype)


def _apply(strategy: Mapping[str, Any], rng_seed: int) -> Seeds:
    arguments = dict(strategy)
    kind = arguments.pop("type", None)
    if kind not in STRATEGIES:
        raise ValueError(f"type={kind!r} is not one of: {', '.join(STRATEGIES)}")
    if kind not in FIXED:
        arguments.setdefault("rng_seed", rng_seed)
    if kind not in COUNTLESS:
        name = "n_per_cluster" if kind == "gaussian_cluster" else "n"
        arguments[name] = arguments.pop("n", 0)
    return STRATEGIES[kind](**arguments, dtype=np.float64)


def validate_seeds(positions: Any, bounds: Any = None) -> dict[str, Any]:
    """Whether seeds can be tracked: `valid`, `errors`, `warnings` and `stats`.

    Seeds that are not finite are errors; seeds outside the bounds, and several in one
    place, are warnings.
    """
    rows = np.asarray(positions)
    found: dict[str, Any] = {"valid": True, "warnings": [], "errors": [], "stats": {}}
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        message = f"positions of shape {rows.shape} are not rows of 2 or 3 coordinates"
        return found | {"valid": False, "errors": [message]}
    broken = int((~np.isfinite(rows)).any(axis=1).sum())
    if broken:
        found["errors"].append(f"{broken} of {len(rows)} seeds are not finite")
    if len(rows) == 0:
        found["warnings"].append("there are no seeds")
    repeated = len(rows) - len(np.unique(rows, axis=0))
    if repeated:
        found["warnings"].append(f"{repeated} seeds are where another one is")
    outside = 0 if bounds is None else _outside(rows, box_bounds(bounds))
    if outside:
        found["warnings"].append(f"{outside} seeds are outside the bounds")
    found["valid"] = not found["errors"]
    if len(rows) and not broken:
        found["stats"] = _statistics(as_seeds(rows, np.float64), rows.nbytes)
    return found


def _outside(rows: np.ndarray, box: Box) -> int:
    """How many rows are beyond a bound of the box."""
    used = slice(0, rows.shape[1])
    # In the dtype of the rows: a bound may not exist in it exactly.
    lo, hi = box.lo[used].astype(rows.dtype), box.hi[used].astype(rows.dtype)
    beyond = ((rows < lo) | (rows > hi)) & box.active[used]
    return int(beyond.any(axis=1).sum())


def _statistics(rows: Seeds, size: int) -> dict[str, Any]:
    return {
        "num_seeds": len(rows),
        "bounds_min": rows.min(axis=0).tolist(),
        "bounds_max": rows.max(axis=0).tolist(),
        "mean": rows.mean(axis=0).tolist(),
        "std": rows.std(axis=0).tolist(),
        "memory_mb": size / 1024**2,
    }


def seed_density_analysis(positions: Any, bins: int = 50) -> dict[str, Any]:
    """How seeds are spread: density, histograms along the axes, nearest neighbors.

    The mean density is per volume of the box around the seeds, per area where they
    lie in a plane, per length where they lie on a line along an axis.
    """
    rows = as_seeds(positions, np.float64)
    if len(rows) == 0:
        return {"num_seeds": 0, "empty": True}
    lo, hi = rows.min(axis=0), rows.max(axis=0)
    extent = (hi - lo)[hi > lo]
    histograms = {
        axis: _histogram(rows[:, index], bins)
        for index, axis in enumerate(AXES)
        if hi[index] > lo[index]
    }
    return {
        "num_seeds": len(rows),
        "empty": False,
        "bounds": {"min": lo.tolist(), "max": hi.tolist()},
        "mean_density": float(len(rows) / np.prod(extent)) if extent.size else None,
        "densities_1d": histograms,
        "nearest_neighbor": _neighbors(rows),
    }


def _histogram(values: np.ndarray, bins: int) -> dict[str, Any]:
    counts, _ = np.histogram(values, bins=bins)
    return {"histogram": counts.tolist(), **_summary(counts, ("mean", "std", "max"))}


def _neighbors(rows: Seeds) -> dict[str, float] | None:
    """Distances to the nearest other seed; None for a single seed."""
    if len(rows) == 1:
        return None
    nearest = np.asarray(KDTree(rows).query(rows, k=2)[0])[:, 1]
    return _summary(nearest, ("mean", "std", "min", "max"))


def _summary(values: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    return {name: float(getattr(np, name)(values)) for name in names}
