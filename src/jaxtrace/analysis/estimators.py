"""Densities of particles: Gaussians of one bandwidth, or kernels of own lengths."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree

from jaxtrace.analysis.density import (
    KERNELS,
    NORMAL,
    Domain,
    ParticleSample,
    PlaneGrid,
    SpaceGrid,
    as_points,
    check_normalization,
    finite_particles,
    make_domain,
    pdf_factor,
    plane_axes,
    slice_particles,
)
from jaxtrace.analysis.kernel_sums import (
    DirectSum,
    NeighborSum,
    Sources,
    rescale,
    separable_sum,
)
from jaxtrace.config import memory_budget_bytes
from jaxtrace.types import check_choice

BANDWIDTH_RULES = ("scott", "silverman")


def rule_bandwidth(
    positions: Float[np.ndarray, "particles dims"], rule: str = "scott"
) -> float:
    """s n^(-1/(d+4)) for Scott, times (4/(d+2))^(1/(d+4)) for Silverman.

    s is the mean over the axes of the standard deviation (ddof = 1).
    """
    count, dims = positions.shape
    check_choice("bandwidth_rule", rule, BANDWIDTH_RULES)
    if count < 2:
        raise ValueError(
            "one particle has no spread: give a bandwidth, or a slab_thickness that "
            "holds more particles"
        )
    spread = float(positions.std(axis=0, ddof=1).mean())
    if not spread > 0:
        raise ValueError(
            f"all {count} particles have the same position, so there is no spread: "
            "pass a bandwidth"
        )
    factor = 1.0 if rule == "scott" else (4 / (dims + 2)) ** (1 / (dims + 4))
    return spread * factor * count ** (-1 / (dims + 4))


class KDEEstimator:
    """p(x) = 1/(N h^d) sum K((x - x_i)/h), K the standard normal density in d axes.

    `h` is the bandwidth. Particles with a NaN are left out. `evaluate` is always a
    pdf; the grids follow `normalize`: "pdf" (or True), "relative" (1 where even over
    the domain), "count" (particles per area or volume) or False (the sum of K alone).
    The domain is `bounds`, or the box around the particles. A plane of 3-D particles
    shows those within `slab_thickness` / 2 of `slab_position`, or all if there are
    none, with a bandwidth of its own. Sums are exact: no kernel is cut.
    """

    def __init__(
        self,
        positions: Any,
        bandwidth: float | None = None,
        bandwidth_rule: str = "scott",
        normalize: Any = True,
        plane: str = "xy",
        slab_position: float = 0.0,
        slab_thickness: float = 0.1,
        resolution: int | Sequence[int] = 100,
        bounds: Any = None,
    ):
        if bandwidth is not None and not 0 < bandwidth < math.inf:
            raise ValueError(f"bandwidth is {bandwidth}: it must be positive")
        self._particles = finite_particles(positions)
        self._bandwidth = bandwidth
        self._rule = bandwidth_rule
        self._mode = check_normalization(normalize)
        self._plane_axes = plane_axes(plane, self._particles.positions.shape[1])
        self._slab = (plane, slab_position, slab_thickness)
        self._resolution = resolution
        self._bounds = bounds
        self.h = self._bandwidth_of(self._particles)

    @property
    def positions(self) -> Float[np.ndarray, "particles dims"]:
        """Return the particles in use."""
        return self._particles.positions

    def _bandwidth_of(self, particles: ParticleSample) -> float:
        if self._bandwidth is not None:
            return float(self._bandwidth)
        return rule_bandwidth(particles.positions, self._rule)

    def _sample(self, dims: int) -> ParticleSample:
        """Return the particles a density of so many dimensions is made of."""
        own = self._particles.positions.shape[1]
        if dims > own:
            raise ValueError(
                f"a {dims}-D density was requested for {own}-D positions: pass points "
                f"with {own} columns"
            )
        return (
            self._particles
            if dims == 3
            else slice_particles(self._particles, *self._slab)
        )

    def evaluate(self, points: Any) -> Float[np.ndarray, " points"]:
        """Return the pdf at points in rows; 2 columns mean the plane."""
        queries = as_points(points).astype(np.float64)
        sample = self._sample(queries.shape[1])
        h = self._bandwidth_of(sample)
        center, sources = _scaled(sample, h)
        places = ((queries - center) / h).astype(sample.dtype)
        sums = DirectSum(sources)(NORMAL.profile, places, memory_budget_bytes())
        return rescale(sums, _pdf_scale(sample, h))

    def evaluate_2d(self) -> PlaneGrid:
        """Return X, Y and density on a plane grid, in meshgrid "xy" order."""
        axes, density, dtype = self._grid(self._plane_axes)
        x, y = np.meshgrid(*axes)
        return x.astype(dtype), y.astype(dtype), density.T

    def evaluate_3d(self) -> SpaceGrid:
        """Return X, Y, Z and density on a grid of the domain, indexed [x, y, z]."""
        axes, density, dtype = self._grid((0, 1, 2))
        x, y, z = (a.astype(dtype) for a in np.meshgrid(*axes, indexing="ij"))
        return x, y, z, density

    def _grid(
        self, space_axes: tuple[int, ...]
    ) -> tuple[list[np.ndarray], np.ndarray, np.dtype]:
        sample = self._sample(len(space_axes))
        h = self._bandwidth_of(sample)
        domain = make_domain(sample.positions, self._bounds, space_axes)
        axes = domain.grid_axes(self._resolution)
        center, sources = _scaled(sample, h)
        scaled = [
            ((axis - c) / h).astype(sample.dtype)
            for axis, c in zip(axes, center, strict=True)
        ]
        sums = separable_sum(sources, scaled, memory_budget_bytes())
        density = rescale(sums, self._grid_scale(sample, h, domain))
        return axes, density, sample.dtype

    def _grid_scale(self, sample: ParticleSample, h: float, domain: Domain) -> float:
        count, dims = sample.positions.shape
        if self._mode is None:
            return NORMAL.constant(dims)
        return _pdf_scale(sample, h) * pdf_factor(self._mode, count, lambda: domain)


def _scaled(sample: ParticleSample, h: float) -> tuple[np.ndarray, Sources]:
    """Return the particles around their center in bandwidths, and that center."""
    positions = sample.positions
    center = (positions.min(axis=0) + positions.max(axis=0)) / 2
    ones = np.ones(len(positions), sample.dtype)
    places = ((positions - center) / h).astype(sample.dtype)
    return center, Sources(places, ones, ones)


def _pdf_scale(sample: ParticleSample, h: float) -> float:
    count, dims = sample.positions.shape
    return NORMAL.constant(dims) / (count * h**dims)


_ADAPTIVE_FACTOR = 1.2  # of the distance to the n-th neighbor
_LARGEST_SHARE = 0.1  # of the mean extent, for the default smoothing length


def smoothing_length_of(length: float | None, positions: np.ndarray) -> float:
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


def adaptive_lengths(
    positions: Float[np.ndarray, "particles dims"], n: int
) -> Float[np.ndarray, " particles"]:
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


DIMENSIONS = {"2d": 2, "3d": 3}


class SPHDensityEstimator:
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
        self._dims = DIMENSIONS[dimensions]
        self._kernel = KERNELS[kernel_type]
        self._mode = check_normalization(normalize)
        self._resolution, self._bounds = resolution, bounds
        given = finite_particles(positions)
        own = given.positions.shape[1]
        if self._dims > own:
            raise ValueError(
                f'positions have {own} columns: use dimensions="2d" for these'
            )
        self._axes, self._sample = (0, 1, 2), given
        if self._dims == 2:
            self._axes = plane_axes(plane, own)
            self._sample = slice_particles(given, plane, position, slab_thickness)
        if len(self.positions) < 2:
            raise ValueError(
                "the slab holds one particle and a density needs at least 2: choose a "
                "larger slab_thickness"
            )
        self._mass = _used_masses(masses, np.shape(positions)[0], self._sample)
        self.h: float | Float[np.ndarray, " particles"] = (
            adaptive_lengths(self.positions, n_neighbors)
            if adaptive
            else smoothing_length_of(smoothing_length, self.positions)
        )
        places = self.positions
        self._center = (places.min(axis=0) + places.max(axis=0)) / 2
        self._unit = float(np.median(self.h))
        self._sum = NeighborSum(self._scaled_sources(), self._kernel.support)

    @property
    def positions(self) -> Float[np.ndarray, "particles dims"]:
        """Return the particles in use."""
        return self._sample.positions

    def _scaled_sources(self) -> Sources:
        """Center the particles; lengths in units of their median."""
        sample, unit = self._sample, self._unit
        count, dims = sample.positions.shape
        lengths = np.broadcast_to(np.asarray(self.h) / unit, count)
        arrays = (
            (sample.positions - self._center) / unit,
            self._mass / self._mass.sum() * count / lengths**dims,
            lengths,
        )
        return Sources(*(a.astype(sample.dtype) for a in arrays))

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
            queries = queries[:, list(self._axes)]
        places = ((queries - self._center) / self._unit).astype(self._sample.dtype)
        sums = self._sum(self._kernel.profile, places, memory_budget_bytes())
        sums[np.isnan(places).any(axis=1)] = np.nan
        return rescale(sums, self._scale())

    def _scale(self) -> float:
        """Return the factor from unit-mean weighted sums to the density."""
        count, dims = self._sample.positions.shape
        number = self._kernel.constant(dims) / self._unit**dims
        if self._mode is None:
            return number * float(self._mass.sum()) / count
        return number / count * pdf_factor(self._mode, count, self._domain)

    def _domain(self) -> Domain:
        return make_domain(self._sample.positions, self._bounds, self._axes)

    def evaluate_2d(self) -> PlaneGrid:
        """Return X, Y and density on a plane grid, in meshgrid "xy" order."""
        if self._dims != 2:
            raise ValueError(
                'this is a 3-D density: use evaluate_3d or dimensions="2d"'
            )
        x, y, density = self._grid("xy")
        return x, y, density

    def evaluate_3d(self) -> SpaceGrid:
        """Return X, Y, Z and density on a grid of the domain, indexed [x, y, z]."""
        if self._dims != 3:
            raise ValueError(
                'this is a 2-D density: use evaluate_2d or dimensions="3d"'
            )
        x, y, z, density = self._grid("ij")
        return x, y, z, density

    def _grid(self, indexing: Any) -> list[np.ndarray]:
        axes = self._domain().grid_axes(self._resolution)
        mesh = np.meshgrid(*axes, indexing=indexing)
        points = np.stack([axis.ravel() for axis in mesh], axis=1)
        density = self.evaluate(points).reshape(mesh[0].shape)
        return [*(axis.astype(density.dtype) for axis in mesh), density]


def _used_masses(masses: Any, given: int, sample: ParticleSample) -> np.ndarray:
    """Return the masses of the particles in use; 1 each unless given."""
    if masses is None:
        return np.ones(len(sample.positions))
    values = np.asarray(masses, dtype=np.float64)
    if values.shape != (given,):
        raise ValueError(
            f"masses have shape {values.shape}, positions {given} rows: give one each"
        )
    used = values[sample.kept]
    if not (np.isfinite(used).all() and (used >= 0).all() and used.sum() > 0):
        raise ValueError("masses must be finite, not negative and not all zero")
    return used
