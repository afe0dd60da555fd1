"""Pairs of particles that start close together, and how far apart they get."""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from jaxtrace import paths
from jaxtrace.types import PathRecord


def close_pairs(
    trajectory: PathRecord, radius: float, neighbors: int
) -> Int[np.ndarray, "pairs 2"]:
    """Particles closer than `radius` at frame 0 (but not at one point), lower first.

    Each particle is paired with its nearest `neighbors` at most, so that the number of
    pairs grows with the number of particles however dense the cloud is.
    """
    (present,) = np.nonzero(trajectory.alive[:1].all(axis=0))
    if present.size < 2 or not trajectory.alive.size or neighbors < 1:
        return np.zeros((0, 2), np.int64)
    points = trajectory.positions[0, present].astype(np.float64)
    period = paths.read_period(trajectory.metadata)
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
    """Vectors from first to second of each pair at frame 0, the short way round."""
    first, second = trajectory.positions[0].astype(np.float64)[pairs.T]
    return paths.minimum_image(second - first, paths.read_period(trajectory.metadata))


def _into_box(
    points: Float[np.ndarray, "points 3"], period: Float[np.ndarray, "3"]
) -> Float[np.ndarray, "points 3"]:
    """Points moved into `[0, period)` on the axes that wrap, as the tree asks."""
    length = np.where(period > 0, period, 1)
    folded = np.mod(points, length)
    return np.where(period > 0, np.where(folded < length, folded, 0), points)
