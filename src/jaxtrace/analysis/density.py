"""Densities of particles: what estimators share, Gaussians of one bandwidth, spheres.

Positions are taken around their center and in units of one smoothing length, so that
no sum has a scale or loses digits to a far origin.
"""

import abc
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxrig import compile_once
from jaxrig.batching import call_together, pad_axis
from jaxtrace.bounds import AXES, PLANES, box_bounds
from jaxtrace.config import working_cores
from jaxtrace.sphere import EARTH_RADIUS, TURN, course, mean_position
from jaxtrace.types import check_choice

NORMALIZATIONS = ("pdf", "relative", "count")
BANDWIDTH_RULES = ("scott", "silverman")

# Coordinates and density at every node of a grid, in a plane or in space.
_Plane = Float[np.ndarray, "ny nx"]
_Space = Float[np.ndarray, "nx ny nz"]
PlaneGrid = tuple[_Plane, _Plane, _Plane]
SpaceGrid = tuple[_Space, _Space, _Space, _Space]
Places = Float[np.ndarray, "particles dims"]


def as_points(points: Any, name: str = "points") -> np.ndarray:
    """Return points in rows as float or integer; one point becomes a row."""
    array = np.asarray(points)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} has dtype {array.dtype}: real numbers are needed")
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise ValueError(
            f"{name} has shape {np.shape(points)}: expected (n, 2) or (n, 3)"
        )
    return array


def plane_axes(plane: str, dims: int) -> tuple[int, int]:
    """Return the two axes of a plane; particles with two coordinates have only "xy"."""
    check_choice("plane", plane, PLANES)
    if max(PLANES[plane]) >= dims:
        raise ValueError(f"plane {plane!r} needs 3-D positions; these have {dims} axes")
    return PLANES[plane]


class Cloud(NamedTuple):
    """Particles on some axes of space, and which of those given they are."""

    positions: Places  # float64
    kept: Int[np.ndarray, " particles"]
    axes: tuple[int, ...]

    @property
    def center(self) -> Float[np.ndarray, " dims"]:
        """Return the middle of the box around the particles."""
        return (self.positions.min(axis=0) + self.positions.max(axis=0)) / 2


class DensityEstimator(abc.ABC):
    """The particles that are there, the slab of a plane among them, and grids."""

    def __init__(
        self,
        positions: Any,
        slab: tuple[str, float, float],
        normalize: Any,
        resolution: int | Sequence[int],
        bounds: Any,
    ):
        if isinstance(normalize, bool | np.bool_):
            normalize = "pdf" if normalize else None
        elif normalize not in NORMALIZATIONS:
            raise ValueError(
                f"normalize is {normalize!r}: use one of {list(NORMALIZATIONS)}, True "
                "for pdf or False for the raw sum"
            )
        given = as_points(positions, "positions")
        wide = given.astype(np.float64)
        if np.isinf(wide).any():
            raise ValueError(
                "positions hold an infinite value: mark lost particles by NaN"
            )
        kept = np.flatnonzero(~np.isnan(wide).any(axis=1))
        if len(kept) < 2:
            raise ValueError(
                f"{len(kept)} of {len(wide)} particles are not NaN: a density needs "
                "at least 2"
            )
        self._cloud = Cloud(wide[kept], kept, tuple(range(wide.shape[1])))
        # float64 only with x64 on, as all of JAX.
        wanted = np.result_type(given.dtype, np.float32)
        self._dtype = np.dtype(jax.dtypes.canonicalize_dtype(wanted))
        self._plane_axes = plane_axes(slab[0], wide.shape[1])
        self._slab, self._mode = slab, normalize
        self._resolution, self._bounds = resolution, bounds

    def evaluate_2d(self) -> PlaneGrid:
        """Return X, Y and density on a plane grid, in meshgrid "xy" order."""
        x, y, density = self._grid(2)
        return x, y, density

    def evaluate_3d(self) -> SpaceGrid:
        """Return X, Y, Z and density on a grid of the domain, indexed [x, y, z]."""
        x, y, z, density = self._grid(3)
        return x, y, z, density

    @abc.abstractmethod
    def _grid(self, dims: int) -> tuple[np.ndarray, ...]:
        """Return grid coordinates and the density there."""

    def _slice(self) -> Cloud:
        """Return the particles of the slab in its plane; all if the slab is empty."""
        _, position, thickness = self._slab
        if not thickness > 0:
            raise ValueError(f"slab_thickness is {thickness}: it must be positive")
        positions, kept, axes = self._cloud
        if len(axes) == 3:
            normal = positions[:, 3 - sum(self._plane_axes)]
            inside = np.abs(normal - position) <= thickness / 2
            rows = inside if inside.any() else slice(None)
            positions, kept = positions[rows], kept[rows]
        return Cloud(positions[:, self._plane_axes], kept, self._plane_axes)

    def _domain(self, cloud: Cloud) -> list[tuple[float, float]]:
        """Return the ends of the given bounds, or of the box around the particles."""
        if self._bounds is None:
            ends = cloud.positions.min(axis=0), cloud.positions.max(axis=0)
        else:
            box, rows = box_bounds(self._bounds), list(cloud.axes)
            ends = box.lo[rows], box.hi[rows]
        pairs = list(zip(*(end.tolist() for end in ends), strict=True))
        for axis, (lo, hi) in zip(cloud.axes, pairs, strict=True):
            if not lo < hi:
                raise ValueError(
                    f"the domain runs from {lo} to {hi} on axis {AXES[axis]}: give "
                    "bounds with lower < upper there, or evaluate in a plane"
                )
        return pairs

    def _grid_axes(self, cloud: Cloud) -> list[np.ndarray]:
        """Return the coordinates of the grid on each axis, both ends included.

        A plane of 3-D space picks its two entries from a resolution of three.
        """
        given, axes = self._resolution, cloud.axes
        if isinstance(given, int | np.integer):
            counts = [int(given)] * len(axes)
        else:
            counts = [int(n) for n in given]
            if len(counts) == 3 and len(axes) == 2:
                counts = [counts[axis] for axis in axes]
        if len(counts) != len(axes) or min(counts) < 1:
            raise ValueError(
                f"resolution {given!r} does not give {len(axes)} positive counts: "
                "pass an integer or one integer per axis"
            )
        ends = zip(self._domain(cloud), counts, strict=True)
        return [np.linspace(*pair, count) for pair, count in ends]

    def _pdf_factor(self, cloud: Cloud) -> float:
        """Return what turns a pdf into the density asked for."""
        if self._mode == "relative":
            return math.prod(hi - lo for lo, hi in self._domain(cloud))
        return float(len(cloud.positions)) if self._mode == "count" else 1.0

    def _laid_out(
        self, axes: list[np.ndarray], density: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return grid coordinates with a density indexed by them; "xy" in a plane."""
        if len(axes) == 2:
            density = density.T
        mesh = np.meshgrid(*axes, indexing="xy" if len(axes) == 2 else "ij")
        return *(axis.astype(self._dtype) for axis in mesh), density

    def _rescaled(self, sums: np.ndarray, scale: float) -> np.ndarray:
        """Return sums times a factor that may be beyond the range of float32."""
        return np.multiply(sums, scale, dtype=np.float64).astype(self._dtype)


def rule_bandwidth(positions: Places, rule: str = "scott") -> float:
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


class KDEEstimator(DensityEstimator):
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
        slab = (plane, slab_position, slab_thickness)
        super().__init__(positions, slab, normalize, resolution, bounds)
        self._bandwidth, self._rule = bandwidth, bandwidth_rule
        self.h = self._bandwidth_of(self._cloud)

    @property
    def positions(self) -> Places:
        """Return the particles in use."""
        return self._cloud.positions

    def _bandwidth_of(self, cloud: Cloud) -> float:
        if self._bandwidth is not None:
            return float(self._bandwidth)
        return rule_bandwidth(cloud.positions, self._rule)

    def _sample(self, dims: int) -> tuple[Cloud, float, float]:
        """Return the particles of a density, their bandwidth, and the pdf's scale."""
        own = len(self._cloud.axes)
        if dims > own:
            raise ValueError(
                f"a {dims}-D density was requested for {own}-D positions: pass points "
                f"with {own} columns"
            )
        cloud = self._cloud if dims == 3 else self._slice()
        h = self._bandwidth_of(cloud)
        volume = (math.sqrt(2 * math.pi) * h) ** dims
        return cloud, h, 1 / (len(cloud.positions) * volume)

    def evaluate(self, points: Any) -> Float[np.ndarray, " points"]:
        """Return the pdf at points in rows; 2 columns mean the plane."""
        queries = as_points(points).astype(np.float64)
        cloud, h, scale = self._sample(queries.shape[1])
        places = ((queries - cloud.center) / h).astype(self._dtype)
        blocks = _in_blocks((cloud.positions - cloud.center) / h, self._dtype)
        cores = working_cores()
        length = bucket(math.ceil(len(places) / cores))
        shares = (
            np.split(pad_axis(places, cores * length), cores) if len(places) else []
        )
        sums = call_together(lambda some: _sum_at(some, blocks), shares)
        whole = np.concatenate([places[:0, 0], *map(np.asarray, sums)])
        return self._rescaled(whole[: len(places)], scale)

    def _grid(self, dims: int) -> tuple[np.ndarray, ...]:
        cloud, h, scale = self._sample(dims)
        axes = self._grid_axes(cloud)
        blocks = _in_blocks((cloud.positions - cloud.center) / h, self._dtype)
        ends = zip(axes, cloud.center, strict=True)
        scaled = [((axis - c) / h).astype(self._dtype) for axis, c in ends]
        sums = np.asarray(_sum_on_grid(scaled, blocks))
        if self._mode is None:
            scale = (2 * math.pi) ** (-dims / 2)
        else:
            scale *= self._pdf_factor(cloud)
        return self._laid_out(axes, self._rescaled(sums, scale))


BLOCK = 1024  # particles looked at together, which bounds the working set
ROWS = 256  # points that a block is compared with at a time
FAR = 1e15  # bandwidths away, where particles that only fill up a block are put


def bucket(count: int) -> int:
    """Round up to one of eight sizes per octave: few shapes to compile."""
    # Sizes an eighth of an octave apart waste at most 12.5 % of the work.
    step = 2 ** max(0, count.bit_length() - 4)
    return math.ceil(count / step) * step


def _in_blocks(places: Places, dtype: np.dtype) -> Array:
    """Return particles in units of a bandwidth as blocks (blocks, dims, BLOCK)."""
    count, dims = places.shape
    blocks = bucket(math.ceil(count / BLOCK))
    filled = np.full((blocks * BLOCK, dims), FAR, dtype)
    filled[:count] = places
    return jnp.asarray(filled.reshape(blocks, BLOCK, dims).transpose(0, 2, 1))


# No budget: any number of particles, in few sizes of blocks.
@compile_once(max_traces=None)
def _sum_at(
    points: Float[Array, "n dims"], blocks: Float[Array, "blocks dims block"]
) -> Float[Array, " n"]:
    """Return the sum of unit Gaussians of all particles at each point."""

    def at(point: Array) -> Array:
        def add(total: Array, block: Array) -> tuple[Array, None]:
            square = jnp.sum(jnp.square(point[:, None] - block), 0)
            return total + jnp.sum(jnp.exp(-0.5 * square)), None

        return jax.lax.scan(add, jnp.zeros((), points.dtype), blocks)[0]

    return jax.lax.map(at, points, batch_size=ROWS)


@compile_once(max_traces=None)
def _sum_on_grid(
    axes: list[Float[Array, " _"]], blocks: Float[Array, "blocks dims block"]
) -> Float[Array, "..."]:
    """Return the same on a whole grid: exact, by matrix products.

    exp(-|x - y|^2 / 2) is a product over the axes, so that a grid of n^d points takes
    d n exponentials per particle instead of n^d.
    """

    def add(total: Array, block: Array) -> tuple[Array, None]:
        first, *between, last = (
            jnp.exp(-0.5 * jnp.square(axis[:, None] - places[None]))
            for axis, places in zip(axes, block, strict=True)
        )
        for other in between:
            first = first[:, None] * other[None]
        return total + jnp.dot(first, last.T, precision="highest"), None

    zero = jnp.zeros([len(axis) for axis in axes], blocks.dtype)
    return jax.lax.scan(add, zero, blocks)[0]


def cell_areas(
    lon_edges: Any, lat_edges: Any, radius: float = EARTH_RADIUS
) -> Float[np.ndarray, "columns rows"]:
    """Return the areas of cells between meridians and parallels: R^2 dlon d(sin lat).

    >>> total = cell_areas([0, 180, 360], [-90, 0, 90], radius=1.0).sum()
    >>> round(float(total / np.pi), 12)
    4.0
    """
    lon, lat = _edges(lon_edges, 360.0, "lon"), _edges(lat_edges, 180.0, "lat")
    widths, heights = np.diff(np.radians(lon)), np.diff(np.sin(np.radians(lat)))
    return radius**2 * widths[:, None] * heights[None]


def count_per_area(
    positions: Any, lon_edges: Any, lat_edges: Any, radius: float = EARTH_RADIUS
) -> Float[np.ndarray, "columns rows"]:
    """Return particles per square meter in cells; those gone (NaN) do not count."""
    areas = cell_areas(lon_edges, lat_edges, radius)
    lon_edges, lat_edges = (np.asarray(e, np.float64) for e in (lon_edges, lat_edges))
    known = _known(positions)
    lon = lon_edges[0] + np.mod(known[:, 0] - lon_edges[0], TURN)
    counts, _, _ = np.histogram2d(lon, known[:, 1], [lon_edges, lat_edges])
    return counts / areas


def density_per_area(
    positions: Any,
    points: Any,
    bandwidth: float | None = None,
    radius: float = EARTH_RADIUS,
) -> Float[np.ndarray, " points"]:
    """Return particles per square meter at points (lon, lat), by a kernel estimate.

    The kernel is that of von Mises and Fisher, k / (2 pi R^2 (1 - exp(-2 k)))
    exp(k (cos(angle) - 1)) with k = (R / bandwidth)^2: it integrates to 1 over the
    sphere, over the poles and the date line too, and is the Gaussian of the bandwidth,
    in meters, where that is short. Without one the rule is Scott's, for the distances
    from the middle of the particles.
    """
    known, wanted = _known(positions), np.atleast_2d(np.asarray(points, np.float64))
    width = scott_bandwidth(known, radius) if bandwidth is None else float(bandwidth)
    if not 0 < width < math.inf:
        raise ValueError(f"bandwidth is {width}: give meters above 0")
    sharpness = (radius / width) ** 2
    # cos(angle) - 1 is minus half the square of the chord: in space the kernel is a
    # Gaussian of the chord, whose sum the flat estimator has.
    chords = KDEEstimator(unit_vectors(known), 1 / math.sqrt(sharpness))
    flat = (2 * math.pi / sharpness) ** 1.5  # what that estimator divides by
    whole = sharpness / (2 * math.pi * radius**2 * -math.expm1(-2 * sharpness))
    found = chords.evaluate(unit_vectors(wanted)).astype(np.float64)
    return len(known) * whole * flat * found


def scott_bandwidth(places: Float[np.ndarray, "n 3"], radius: float) -> float:
    """Return the bandwidth in meters by Scott's rule for two directions."""
    middle = np.broadcast_to(mean_position(places), places.shape)
    spread = np.sqrt(np.mean(np.square(course(middle, places, radius))))
    return float(spread) * len(places) ** (-1 / 6)


def _edges(edges: Any, most: float, name: str) -> Float[np.ndarray, " _"]:
    array = np.asarray(edges, np.float64)
    rises = array.ndim == 1 and len(array) > 1 and (np.diff(array) > 0).all()
    if not rises or array[-1] - array[0] > most:
        raise ValueError(f"{name}_edges must rise, over {most:g} degrees at most")
    return array


def _known(positions: Any) -> Float[np.ndarray, "known 3"]:
    """Return the positions of particles that are there, with a height."""
    rows = np.atleast_2d(np.asarray(positions, np.float64))
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        raise ValueError(f"positions have shape {rows.shape}: give (n, 2) or (n, 3)")
    rows = np.pad(rows, ((0, 0), (0, 3 - rows.shape[1])))
    return rows[np.isfinite(rows).all(axis=1)]


def unit_vectors(places: Float[np.ndarray, "n _"]) -> Float[np.ndarray, "n 3"]:
    """Return the directions of longitudes and latitudes from the middle of a sphere."""
    lon, lat = np.radians(places[:, :2]).T
    east, north = np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon)
    return np.stack([east, north, np.sin(lat)], 1)
