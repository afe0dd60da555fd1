"""Where particles gather: k-means clusters at the start, middle and end of a run."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from jaxtrace.types import PathRecord

RESTARTS = 10
MAX_ROUNDS = 300


def analyze_particle_clustering(
    trajectory: PathRecord, n_clusters: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Clusters of the alive particles at the first, middle and last frame with any.

    Under `initial`, `middle` and `final`: the `frame`, `n_clusters` (fewer where fewer
    distinct places are occupied), `cluster_labels` (-1 for absent particles),
    `cluster_centers`, `cluster_sizes`, `mean_intra_distance` and
    `cluster_size_variance`. `cluster_stability` is the largest part of the particles
    there at both ends that can be said to keep their cluster, however clusters are
    numbered. Recorded positions are used as they are; periods play no part.
    """
    if not 1 <= n_clusters <= trajectory.alive.shape[1]:
        raise ValueError(
            f"n_clusters is {n_clusters}: give 1 to {trajectory.alive.shape[1]}, the "
            "number of particles"
        )
    (occupied,) = np.nonzero(trajectory.alive.any(axis=1))
    if not occupied.size:
        raise ValueError("no particle is alive at any frame: there is nothing to group")
    frames = dict(
        initial=occupied[0], middle=occupied[len(occupied) // 2], final=occupied[-1]
    )
    results: dict[str, Any] = {
        name: _clusters_at(trajectory, int(frame), n_clusters, seed)
        for name, frame in frames.items()
    }
    results["cluster_stability"] = _stability(
        results["initial"]["cluster_labels"], results["final"]["cluster_labels"]
    )
    results["available"] = True
    return results


def cluster_points(
    points: Float[np.ndarray, "points 3"], n_clusters: int, seed: int = 0
) -> tuple[Float[np.ndarray, "clusters 3"], Int[np.ndarray, " points"]]:
    """Centers and labels of the best of several k-means runs from k-means++ starts.

    Lloyd's rounds run until no label changes, 300 at most. There are fewer clusters
    than asked for where there are fewer distinct points.
    """
    points = np.asarray(points, dtype=np.float64)
    count = min(n_clusters, len(np.unique(points, axis=0)))
    rng = np.random.default_rng(seed)
    runs = [_lloyd(points, _spread_start(points, count, rng)) for _ in range(RESTARTS)]
    _, centers, labels = min(runs, key=lambda run: run[0])
    return centers, labels


def _spread_start(
    points: Float[np.ndarray, "points 3"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "clusters 3"]:
    """k-means++: each next center drawn with weight distance^2 to the nearest one."""
    centers = [points[rng.integers(len(points))]]
    nearest = np.full(len(points), np.inf)
    while len(centers) < count:
        nearest = np.minimum(nearest, np.sum((points - centers[-1]) ** 2, axis=-1))
        centers.append(points[rng.choice(len(points), p=nearest / nearest.sum())])
    return np.stack(centers)


def _lloyd(
    points: Float[np.ndarray, "points 3"], centers: Float[np.ndarray, "clusters 3"]
) -> tuple[float, Float[np.ndarray, "clusters 3"], Int[np.ndarray, " points"]]:
    """Sum of squared distances, centers and labels once no point changes cluster."""
    total, labels = _nearest(points, centers)
    for _ in range(MAX_ROUNDS):
        centers = _means(points, labels, centers)
        total, moved = _nearest(points, centers)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return total, centers, labels


def _nearest(
    points: Float[np.ndarray, "points 3"], centers: Float[np.ndarray, "clusters 3"]
) -> tuple[float, Int[np.ndarray, " points"]]:
    """Sum of squared distances to the nearest centers, and which those are."""
    distance, labels = KDTree(centers).query(points)
    return float(np.sum(np.square(distance))), np.asarray(labels)


def _means(
    points: Float[np.ndarray, "points 3"],
    labels: Int[np.ndarray, " points"],
    centers: Float[np.ndarray, "clusters 3"],
) -> Float[np.ndarray, "clusters 3"]:
    """Mean of each cluster; one that lost all its points keeps its center."""
    size = np.bincount(labels, minlength=len(centers))[:, None]
    total = np.stack(
        [np.bincount(labels, axis, minlength=len(centers)) for axis in points.T], axis=1
    )
    return np.where(size > 0, total / np.maximum(size, 1), centers)


def _clusters_at(
    trajectory: PathRecord, frame: int, n_clusters: int, seed: int
) -> dict[str, Any]:
    alive = trajectory.alive[frame]
    points = trajectory.positions[frame, alive].astype(np.float64)
    centers, labels = cluster_points(points, n_clusters, seed)
    sizes = np.bincount(labels, minlength=len(centers))
    every = np.full(alive.shape, -1, np.int64)
    every[alive] = labels
    return {
        "frame": frame,
        "n_clusters": len(centers),
        "cluster_labels": every,
        "cluster_centers": centers,
        "cluster_sizes": sizes,
        "mean_intra_distance": float(
            np.linalg.norm(points - centers[labels], axis=-1).mean()
        ),
        "cluster_size_variance": float(sizes.var()),
    }


def _stability(
    before: Int[np.ndarray, " particles"], after: Int[np.ndarray, " particles"]
) -> float:
    both = (before >= 0) & (after >= 0)
    if not both.any():
        return np.nan
    shared = np.zeros((before.max() + 1, after.max() + 1))
    np.add.at(shared, (before[both], after[both]), 1)
    return float(shared[linear_sum_assignment(-shared)].sum() / both.sum())
