"""Smoothing lengths: one for all particles, or one each from its neighbors."""

import math

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

_ADAPTIVE_FACTOR = 1.2  # of the distance to the n-th neighbor
_LARGEST_SHARE = 0.1  # of the mean extent, for the default smoothing length


def default_smoothing_length(positions: Float[np.ndarray, "particles dims"]) -> float:
    """2 L / N^(1/d), at most 0.1 L, with L the mean extent of the particles."""
    count, dims = positions.shape
    extent = float(np.ptp(positions, axis=0).mean())
    if not extent > 0:
        raise ValueError(
            f"all {count} particles are at one place: give a smoothing_length"
        )
    return extent * min(2 / count ** (1 / dims), _LARGEST_SHARE)


def fixed_length(length: float | None, positions: np.ndarray) -> float:
    """The given smoothing length, checked, or the default one."""
    if length is None:
        return default_smoothing_length(positions)
    if not 0 < length < math.inf:
        raise ValueError(f"smoothing_length is {length}: it must be positive")
    return float(length)


def adaptive_lengths(
    positions: Float[np.ndarray, "particles dims"],
    n: int,
    *,
    exhaustive: bool = False,
    limit_bytes: float = 1e9,
) -> Float[np.ndarray, " particles"]:
    """1.2 times the distance from each particle to its n-th nearest other one."""
    distances = nth_neighbor_distances(
        positions, n, exhaustive=exhaustive, limit_bytes=limit_bytes
    )
    if not distances.min() > 0:
        raise ValueError(
            f"more than n_neighbors={n} particles share one place, so that their "
            "smoothing length is 0: raise n_neighbors"
        )
    return _ADAPTIVE_FACTOR * distances


def nth_neighbor_distances(
    positions: Float[np.ndarray, "particles dims"],
    n: int,
    *,
    exhaustive: bool = False,
    limit_bytes: float = 1e9,
) -> Float[np.ndarray, " particles"]:
    """The distance from each particle to its n-th nearest other one.

    By a tree, or with `exhaustive` by looking at every pair.
    """
    count = len(positions)
    if not 1 <= n < count:
        raise ValueError(
            f"n_neighbors is {n}, and each of {count} particles has {count - 1} "
            f"others: choose 1 to {count - 1}"
        )
    row_bytes = count * 8 * (positions.shape[1] + 3) if exhaustive else (n + 1) * 32
    rows = max(1, int(limit_bytes / row_bytes))
    tree = None if exhaustive else KDTree(positions)
    parts = []
    for start in range(0, count, rows):
        some = positions[start : start + rows]
        if tree is None:
            distances = np.linalg.norm(some[:, None] - positions[None], axis=-1)
            parts.append(np.partition(distances, n, axis=1)[:, n])
        else:
            parts.append(np.asarray(tree.query(some, n + 1)[0])[:, n])
    return np.concatenate(parts)
