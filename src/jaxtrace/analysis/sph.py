"""Densities of particles by kernels of one length, or of a length for each particle."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from jaxtrace.analysis.density import Cloud, DensityEstimator, Places, as_points
from jaxtrace.config import memory_budget_bytes, working_cores
from jaxtrace.types import check_choice

DIMENSIONS = {"2d": 2, "3d": 3}
# Beyond it exp(-q^2) holds less than 1e-17 of the kernel, under float64 rounding.
GAUSSIAN_SUPPORT = 6.5


def cubic_spline(q: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """1 - 1.5 q^2 + 0.75 q^3 for q < 1, 0.25 (2 - q)^3 for q < 2, else 0."""
    return 0.25 * np.maximum(2 - q, 0) ** 3 - np.maximum(1 - q, 0) ** 3


def wendland(q: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the Wendland C2 kernel, (1 - q/2)^4 (1 + 2 q) for q < 2."""
    return np.maximum(1 - q / 2, 0) ** 4 * (1 + 2 * q)


def gaussian(q: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """exp(-q^2), cut where what is left of it is lost in rounding."""
    return np.where(q < GAUSSIAN_SUPPORT, np.exp(-q * q), 0.0)


@dataclass(frozen=True)
class Kernel:
    """W(r, h) = constant / h^d * profile(r / h), zero from `support` * h on."""

    profile: Callable[[np.ndarray], np.ndarray]
    constants: dict[int, float]  # by the number of dimensions
    support: float


KERNELS = {
    "cubic_spline": Kernel(cubic_spline, {2: 10 / (7 * math.pi), 3: 1 / math.pi}, 2.0),
    "wendland": Kernel(wendland, {2: 7 / (4 * math.pi), 3: 21 / (16 * math.pi)}, 2.0),
    "gaussian": Kernel(gaussian, {2: 1 / math.pi, 3: math.pi**-1.5}, GAUSSIAN_SUPPORT),
}
_ADAPTIVE_FACTOR = 1.2  # of the distance to the n-th neighbor
_LARGEST_SHARE = 0.1  # of the mean extent, for the default smoothing length
POINTS = 2048  # looked at by one thread at a time
_PAIR_BYTES = 64  # of a pair of a point and a particle, with its temporaries


def smoothing_length_of(length: float | None, positions: Places) -> float:
    """Return a smoothing length, by default 2 L / N^(1/d) and at most 0.1 L.

    L is the mean extent of the particles.
    """
    if length is not None:
        if not 0 < length < math.inf:
            raise ValueError(f"smoothing_length is {length}: it must be positive")
        return float(length)
    count, dims = positions.shape
    extent = float(np.ptp(positions, axis=0).mean())
    if not extent > 0:
        raise ValueError(
            f"all {count} particles are at one place: give a smoothing_length"
        )
    return extent * min(2 / count ** (1 / dims), _LARGEST_SHARE)


def adaptive_lengths(positions: Places, n: int) -> Float[np.ndarray, " particles"]:
    """Return 1.2 times the distance from each particle to its n-th neighbor."""
    count = len(positions)
    if not 1 <= n < count:
        raise ValueError(
            f"n_neighbors is {n}, and each of {count} particles has {count - 1} "
            f"others: choose 1 to {count - 1}"
        )
    # The nearest neighbor of a particle is the particle itself, so the n-th other one
    # is the (n + 1)-th.
    distances = np.asarray(KDTree(positions).query(positions, n + 1)[0])[:, n]
    if not distances.min() > 0:
        raise ValueError(
            f"more than n_neighbors={n} particles have the same position, so their "
            "smoothing length is 0: increase n_neighbors"
        )
    return _ADAPTIVE_FACTOR * distances


class SPHDensityEstimator(DensityEstimator):
    """rho(x) = sum m_j W(|x - x_j|, h_j), scaled as `normalize` says.

    "pdf" (or True) integrates to 1, "relative" is 1 where particles are even over the
    domain, "count" is particles per area or volume, False is the sum itself. The domain
    is `bounds`, or the box around the particles. `h` is the smoothing length, or one
    per particle when `adaptive`: 1.2 times the distance to the `n_neighbors`-th other
    particle. In two dimensions 3-D particles are those within `slab_thickness` / 2 of
    `position`, or all if there are none, seen in the plane.

    Every neighbor is found; nothing is capped.
    """

    def __init__(
        self,
        positions: Any,
        dimensions: str = "2d",
        plane: str = "xy",
        position: float = 0.0,
        slab_thickness: float = 0.1,
        smoothing_length: float | None = None,
        kernel_type: str = "cubic_spline",
        adaptive: bool = False,
        n_neighbors: int = 32,
        masses: Any = None,
        normalize: Any = True,
        resolution: int | Sequence[int] = 100,
        bounds: Any = None,
    ):
        check_choice("dimensions", dimensions, DIMENSIONS)
        check_choice("kernel_type", kernel_type, KERNELS)
        self._dims, self._kernel = DIMENSIONS[dimensions], KERNELS[kernel_type]
        slab = (plane, position, slab_thickness)
        super().__init__(positions, slab, normalize, resolution, bounds)
        own = len(self._cloud.axes)
        if self._dims > own:
            raise ValueError(
                f'positions have {own} columns: use dimensions="2d" for these'
            )
        self._used = self._cloud if self._dims == 3 else self._slice()
        if len(self.positions) < 2:
            raise ValueError(
                "the slab holds one particle and a density needs at least 2: choose a "
                "larger slab_thickness"
            )
        self._mass = _used_masses(masses, np.shape(positions)[0], self._used)
        self.h: float | Float[np.ndarray, " particles"] = (
            adaptive_lengths(self.positions, n_neighbors)
            if adaptive
            else smoothing_length_of(smoothing_length, self.positions)
        )
        lengths = np.broadcast_to(self.h, len(self.positions))
        self._unit = float(np.median(lengths))
        self._levels = _by_length(
            (self.positions - self._used.center) / self._unit,
            self._mass / self._mass.sum() / (lengths / self._unit) ** self._dims,
            lengths / self._unit,
        )

    @property
    def positions(self) -> Places:
        """Return the particles in use."""
        return self._used.positions

    def evaluate(self, points: Any) -> Float[np.ndarray, " points"]:
        """Return the density at points in rows, scaled as `normalize` says.

        Where the estimate is of a plane, points with three columns are projected.
        """
        queries = as_points(points).astype(np.float64)
        if queries.shape[1] < self._dims:
            raise ValueError(
                f"points have {queries.shape[1]} columns, a 3-D density needs 3"
            )
        if queries.shape[1] > self._dims:
            queries = queries[:, list(self._used.axes)]
        places = (queries - self._used.center) / self._unit
        known = np.isfinite(places).all(axis=1)
        sums = np.where(np.isnan(places).any(axis=1), np.nan, 0.0)
        for level in self._levels:
            sums[known] += _sum_near(self._kernel, *level, places[known])
        scale = self._kernel.constants[self._dims] / self._unit**self._dims
        if self._mode is None:
            scale *= float(self._mass.sum())
        else:
            scale *= self._pdf_factor(self._used)
        return self._rescaled(sums, scale)

    def _grid(self, dims: int) -> tuple[np.ndarray, ...]:
        if dims != self._dims:
            raise ValueError(
                f"this is a {self._dims}-D density: use evaluate_{self._dims}d or "
                f'dimensions="{dims}d"'
            )
        axes = self._grid_axes(self._used)
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        density = self.evaluate(mesh.reshape(-1, len(axes)))
        return self._laid_out(axes, density.reshape(mesh.shape[:-1]))


_Level = tuple[KDTree, np.ndarray, np.ndarray]


def _by_length(
    places: Places, weights: np.ndarray, lengths: np.ndarray
) -> list[_Level]:
    """Return particles in levels of lengths within a factor of two.

    Each has a tree of its own: a few long ones do not make the search wide for all.
    """
    level_of = np.floor(np.log2(lengths / lengths.min()))
    members = (level_of == level for level in np.unique(level_of))
    return [(KDTree(places[own]), weights[own], lengths[own]) for own in members]


def _sum_near(
    kernel: Kernel,
    tree: KDTree,
    weights: Float[np.ndarray, " particles"],
    lengths: Float[np.ndarray, " particles"],
    points: Float[np.ndarray, "points dims"],
) -> Float[np.ndarray, " points"]:
    """Return weight * profile(distance / length), summed over neighbors of points."""
    reach = kernel.support * float(lengths.max())
    pairs = int(KDTree(points).count_neighbors(tree, reach)) if len(points) else 0
    parts = 1 + pairs * _PAIR_BYTES // memory_budget_bytes()
    # Never by the number of cores: the last bit of a sum may depend on the parts.
    parts = max(parts, math.ceil(len(points) / POINTS))

    def add(some: np.ndarray) -> np.ndarray:
        near = KDTree(some).sparse_distance_matrix(tree, reach, output_type="ndarray")
        own = near["j"]
        values = weights[own] * kernel.profile(near["v"] / lengths[own])
        return np.bincount(near["i"], values, len(some))

    with ThreadPoolExecutor(working_cores()) as pool:
        return np.concatenate([*pool.map(add, np.array_split(points, parts))])


def _used_masses(masses: Any, given: int, cloud: Cloud) -> np.ndarray:
    """Return the masses of the particles in use; 1 each unless given."""
    if masses is None:
        return np.ones(len(cloud.positions))
    values = np.asarray(masses, dtype=np.float64)
    if values.shape != (given,):
        raise ValueError(
            f"masses have shape {values.shape}, positions {given} rows: give one each"
        )
    used = values[cloud.kept]
    if not (np.isfinite(used).all() and (used >= 0).all() and used.sum() > 0):
        raise ValueError("masses must be finite, not negative and not all zero")
    return used
