"""Kernel density estimate of particles: a Gaussian of one bandwidth around each."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.analysis.density import (
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
