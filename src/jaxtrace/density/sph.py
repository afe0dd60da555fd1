"""Smoothed particle density: every particle spread by a kernel of its own length."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.density.grids import (
    Domain,
    Particles,
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
from jaxtrace.density.kernels import get_kernel
from jaxtrace.density.lengths import adaptive_lengths, fixed_length
from jaxtrace.density.neighbors import check_cell_cap
from jaxtrace.density.sums import (
    DEFAULT_MEMORY_LIMIT_GB,
    DirectSum,
    NeighborSum,
    Sources,
    check_memory_limit,
    rescale,
)

DIMENSIONS = {"2d": 2, "3d": 3}
NEIGHBOR_SEARCHES = ("hashgrid", "bruteforce")


class SPHDensityEstimator:
    """rho(x) = sum m_j W(|x - x_j|, h_j), scaled as `normalize` says.

    "pdf" (or True) integrates to 1, "relative" is 1 where particles are even over the
    domain, "count" is particles per area or volume, False is the sum itself. The domain
    is `bounds`, or the box around the particles. `h` is the smoothing length, or one
    per particle when `adaptive`: 1.2 times the distance to the `n_neighbors`-th other
    particle. In two dimensions 3-D particles are those within `slab_thickness` / 2 of
    `position`, or all if there are none, seen in the plane.

    Both neighbor searches find every neighbor and need no cap. Limits of your own,
    `max_particles_for_adaptive`, `per_cell_cap` and `max_neighbors`, raise when there
    are more.
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
        max_particles_for_adaptive: int | None = None,
        neighbor_search: str = "hashgrid",
        per_cell_cap: int | None = None,
        max_neighbors: int | None = None,
        normalize: Any = True,
        resolution: int | Sequence[int] = 100,
        bounds: Any = None,
        *,
        memory_limit_gb: float = DEFAULT_MEMORY_LIMIT_GB,
    ):
        _check_choice("dimensions", dimensions, DIMENSIONS)
        _check_choice("neighbor_search", neighbor_search, NEIGHBOR_SEARCHES)
        self._dims, self._search = DIMENSIONS[dimensions], neighbor_search
        self._kernel = get_kernel(kernel_type)
        self._mode = check_normalization(normalize)
        self._slab = (plane, position, slab_thickness)
        self._masses = masses
        self._caps = (max_particles_for_adaptive, per_cell_cap, max_neighbors)
        self._resolution, self._bounds = resolution, bounds
        self._limit = check_memory_limit(memory_limit_gb)
        self.smoothing_length = smoothing_length
        self.adaptive, self.n_neighbors = adaptive, n_neighbors
        self.positions = positions

    @property
    def positions(self) -> Float[np.ndarray, "particles dims"]:
        """The particles in use; assigning others computes their lengths as well."""
        return self._sample.positions

    @positions.setter
    def positions(self, positions: Any) -> None:
        given = finite_particles(positions)
        own = given.positions.shape[1]
        if self._dims > own:
            raise ValueError(
                f'positions have {own} columns: use dimensions="2d" for these'
            )
        plane = self._slab[0]
        self._axes = plane_axes(plane, own) if self._dims == 2 else (0, 1, 2)
        sample = given if self._dims == 3 else slice_particles(given, *self._slab)
        if len(sample.positions) < 2:
            raise ValueError(
                "the slab holds one particle and a density needs at least 2: choose a "
                "larger slab_thickness"
            )
        self._sample = sample
        self._mass = _used_masses(self._masses, np.shape(positions)[0], sample)
        self.refresh_smoothing_lengths()

    def refresh_smoothing_lengths(self) -> None:
        """Compute `h` again, after a change to how it is chosen.

        That is `adaptive`, `n_neighbors` or `smoothing_length`.
        """
        self.h = self._smoothing_lengths()
        places = self._sample.positions
        self._center = (places.min(axis=0) + places.max(axis=0)) / 2
        self._unit = float(np.median(self.h))
        self._sources = self._scaled_sources()
        self._sum = self._summed(self._sources)
        per_cell_cap = self._caps[1]
        if per_cell_cap is not None and isinstance(self._sum, NeighborSum):
            check_cell_cap(self._sum.largest_cell, per_cell_cap)

    def _smoothing_lengths(self) -> float | Float[np.ndarray, " particles"]:
        positions = self._sample.positions
        if not self.adaptive:
            return fixed_length(self.smoothing_length, positions)
        most = self._caps[0]
        if most is not None and len(positions) > most:
            raise ValueError(
                f"{len(positions)} particles exceed max_particles_for_adaptive={most}: "
                "raise it or leave it out, adaptive lengths need no limit"
            )
        return adaptive_lengths(
            positions,
            self.n_neighbors,
            exhaustive=self._search == "bruteforce",
            limit_bytes=self._limit,
        )

    def _scaled_sources(self) -> Sources:
        """Particles around their center, lengths in units of the median length."""
        sample, unit = self._sample, self._unit
        count, dims = sample.positions.shape
        lengths = np.broadcast_to(np.asarray(self.h) / unit, count)
        arrays = (
            (sample.positions - self._center) / unit,
            self._mass / self._mass.sum() * count / lengths**dims,
            lengths,
        )
        return Sources(*(a.astype(sample.dtype) for a in arrays))

    def _summed(self, sources: Sources) -> DirectSum | NeighborSum:
        if self._search == "bruteforce":
            return DirectSum(sources)
        return NeighborSum(sources, self._kernel.support)

    def evaluate(self, points: Any) -> Float[np.ndarray, " points"]:
        """The density at points in rows, scaled as `normalize` says.

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
        self._check_neighbors(places)
        sums = self._sum(self._kernel.profile, places, self._limit)
        sums[np.isnan(places).any(axis=1)] = np.nan
        return rescale(sums, self._scale())

    def _check_neighbors(self, places: np.ndarray) -> None:
        most = self._caps[2]
        if most is None or len(places) == 0:
            return
        ones = np.ones_like(self._sources.weights)
        counted = self._summed(self._sources._replace(weights=ones))
        found = int(counted(self._kernel.inside, places, self._limit).max())
        if found > most:
            raise ValueError(
                f"a point has {found} neighbors, max_neighbors is {most}: raise it to "
                f"{found} or leave it out, nothing needs a cap"
            )

    def _scale(self) -> float:
        """From sums whose weights have mean 1, in units of length, to the density."""
        count, dims = self._sample.positions.shape
        number = self._kernel.constant(dims) / self._unit**dims
        if self._mode is None:
            return number * float(self._mass.sum()) / count
        return number / count * pdf_factor(self._mode, count, self._domain)

    def _domain(self) -> Domain:
        return make_domain(self._sample.positions, self._bounds, self._axes)

    def evaluate_2d(self) -> PlaneGrid:
        """X, Y and density on a grid of the plane, in the order of meshgrid "xy"."""
        if self._dims != 2:
            raise ValueError(
                'this is a 3-D density: use evaluate_3d or dimensions="2d"'
            )
        x, y, density = self._grid("xy")
        return x, y, density

    def evaluate_3d(self) -> SpaceGrid:
        """X, Y, Z and density on a grid of the domain, indexed [x, y, z]."""
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


def _check_choice(argument: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise ValueError(
            f"{argument} {value!r} is unknown: choose one of {list(choices)}"
        )


def _used_masses(masses: Any, given: int, sample: Particles) -> np.ndarray:
    """The masses of the particles in use; 1 each unless given."""
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
