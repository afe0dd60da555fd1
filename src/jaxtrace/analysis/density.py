"""Shared by both density estimators: kernels, particles, slabs, grids and scales."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxtrace.bounds import AXES, PLANES, box_bounds
from jaxtrace.types import check_choice

NORMALIZATIONS = ("pdf", "relative", "count")

# Coordinates and density at every node of a grid, in a plane or in space.
_Plane = Float[np.ndarray, "ny nx"]
_Space = Float[np.ndarray, "nx ny nz"]
PlaneGrid = tuple[_Plane, _Plane, _Plane]
SpaceGrid = tuple[_Space, _Space, _Space, _Space]


class ParticleSample(NamedTuple):
    """Finite particles on the host, which of those given they are, and their dtype."""

    positions: Float[np.ndarray, "particles dims"]  # float64
    kept: Int[np.ndarray, " particles"]
    dtype: np.dtype

    def take(self, rows: np.ndarray, axes: Sequence[int]) -> "ParticleSample":
        """Return some of the particles, seen along some of the axes."""
        return ParticleSample(
            self.positions[rows][:, list(axes)], self.kept[rows], self.dtype
        )


def working_dtype(array: np.ndarray) -> np.dtype:
    """Return the float dtype JAX computes in: float64 only with x64 on."""
    wide = np.float32 if array.dtype.itemsize <= 4 else np.float64
    wide = np.float64 if array.dtype.kind in "biu" else wide
    return np.dtype(jax.dtypes.canonicalize_dtype(wide))


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


def finite_particles(positions: Any) -> ParticleSample:
    """Return the particles that are still there: rows with a NaN were absorbed."""
    array = as_points(positions, "positions")
    wide = array.astype(np.float64)
    if np.isinf(wide).any():
        raise ValueError("positions hold an infinite value: mark lost particles by NaN")
    kept = np.flatnonzero(~np.isnan(wide).any(axis=1))
    if len(kept) < 2:
        raise ValueError(
            f"{len(kept)} of {len(wide)} particles are not NaN: a density needs "
            "at least 2"
        )
    return ParticleSample(wide[kept], kept, working_dtype(array))


def plane_axes(plane: str, dims: int) -> tuple[int, int]:
    """Return the two axes of a plane; particles with two coordinates have only "xy"."""
    check_choice("plane", plane, PLANES)
    if max(PLANES[plane]) >= dims:
        raise ValueError(f"plane {plane!r} needs 3-D positions; these have {dims} axes")
    return PLANES[plane]


def slice_particles(
    particles: ParticleSample, plane: str, position: float, thickness: float
) -> ParticleSample:
    """Return the particles of a slab in its plane; all if the slab is empty.

    The slab is `thickness` wide around `position` on the axis normal to the plane.
    Particles with two coordinates are already in the plane.
    """
    dims = particles.positions.shape[1]
    axes = plane_axes(plane, dims)
    if not thickness > 0:
        raise ValueError(f"slab_thickness is {thickness}: it must be positive")
    rows = np.arange(len(particles.positions))
    if dims == 3:
        normal = particles.positions[:, 3 - sum(axes)]
        inside = np.flatnonzero(np.abs(normal - position) <= thickness / 2)
        rows = inside if len(inside) else rows
    return particles.take(rows, axes)


@dataclass(frozen=True)
class Domain:
    """The box a density is spread over, and the axes of space it spans."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        for axis, lo, hi in zip(self.axes, self.lower, self.upper, strict=True):
            if not lo < hi:
                raise ValueError(
                    f"the domain runs from {lo} to {hi} on axis {AXES[axis]}: give "
                    "bounds with lower < upper there, or evaluate in a plane"
                )

    @property
    def measure(self) -> float:
        """Return its area or volume."""
        return math.prod(np.subtract(self.upper, self.lower).tolist())

    def grid_axes(self, resolution: int | Sequence[int]) -> list[np.ndarray]:
        """Return the coordinates of a grid on each axis, both ends included."""
        counts = grid_counts(resolution, self.axes)
        ends = zip(self.lower, self.upper, counts, strict=True)
        return [np.linspace(lo, hi, count) for lo, hi, count in ends]


def make_domain(
    positions: Float[np.ndarray, "particles dims"],
    bounds: Any,
    axes: tuple[int, ...],
) -> Domain:
    """Return the given bounds on these axes, or the box around the particles."""
    if bounds is None:
        lower, upper = positions.min(axis=0), positions.max(axis=0)
    else:
        box = box_bounds(bounds)
        lower, upper = box.lo[list(axes)], box.hi[list(axes)]
    return Domain(tuple(lower.tolist()), tuple(upper.tolist()), axes)


def grid_counts(
    resolution: int | Sequence[int], axes: tuple[int, ...]
) -> tuple[int, ...]:
    """Return points per axis: one number for all, or one per axis.

    A plane of 3-D space picks its two entries from a resolution of three.
    """
    if isinstance(resolution, int | np.integer):
        counts = (int(resolution),) * len(axes)
    else:
        counts = tuple(int(n) for n in resolution)
        if len(counts) == 3 and len(axes) == 2:
            counts = tuple(counts[axis] for axis in axes)
    if len(counts) != len(axes) or min(counts) < 1:
        raise ValueError(
            f"resolution {resolution!r} does not give {len(axes)} positive counts: "
            "pass an integer or one integer per axis"
        )
    return counts


def check_normalization(normalize: Any) -> str | None:
    """Return the name of a normalization: True is "pdf", False is None, the raw sum."""
    if isinstance(normalize, bool | np.bool_):
        return "pdf" if normalize else None
    if normalize not in NORMALIZATIONS:
        raise ValueError(
            f"normalize is {normalize!r}: use one of {list(NORMALIZATIONS)}, True for "
            "pdf or False for the raw sum"
        )
    return normalize


def pdf_factor(mode: str, count: int, domain: Callable[[], Domain]) -> float:
    """Return what turns a pdf into this density.

    "relative" is 1 where particles are as dense as if even over the domain, "count"
    is particles per area or volume. Only the former looks at the domain.
    """
    if mode == "relative":
        return domain().measure
    return float(count) if mode == "count" else 1.0


# Beyond it exp(-q^2) holds less than 1e-17 of the kernel, under float64 rounding.
GAUSSIAN_SUPPORT = 6.5


def cubic_spline(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """1 - 1.5 q^2 + 0.75 q^3 for q < 1, 0.25 (2 - q)^3 for q < 2, else 0."""
    outer = jnp.maximum(2.0 - q, 0.0)
    inner = jnp.maximum(1.0 - q, 0.0)
    return 0.25 * outer * outer * outer - inner * inner * inner


def wendland(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return the Wendland C2 kernel, (1 - q/2)^4 (1 + 2 q) for q < 2."""
    q = jnp.minimum(q, 2.0)  # infinitely far is 0, not 0 times infinity
    square = jnp.square(1.0 - 0.5 * q)
    return square * square * (1.0 + 2.0 * q)


def gaussian(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """exp(-q^2), cut where what is left of it is lost in rounding."""
    return jnp.where(q < GAUSSIAN_SUPPORT, jnp.exp(-q * q), 0.0)


def normal(q: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """exp(-q^2 / 2), the profile of the KDE; never cut."""
    return jnp.exp(-0.5 * q * q)


@dataclass(frozen=True)
class Kernel:
    """W(r, h) = constant / h^d * profile(r / h), zero from `support` * h on."""

    profile: Callable[..., Float[Array, "*shape"]]
    constants: tuple[float, float]  # in two and in three dimensions
    support: float

    def constant(self, dimensions: int) -> float:
        """Return the factor that normalizes the kernel in 2 or 3 dimensions."""
        return {2: self.constants[0], 3: self.constants[1]}[dimensions]


KERNELS = {
    "cubic_spline": Kernel(cubic_spline, (10 / (7 * math.pi), 1 / math.pi), 2.0),
    "wendland": Kernel(wendland, (7 / (4 * math.pi), 21 / (16 * math.pi)), 2.0),
    "gaussian": Kernel(gaussian, (1 / math.pi, math.pi**-1.5), GAUSSIAN_SUPPORT),
}
NORMAL = Kernel(normal, (1 / (2 * math.pi), (2 * math.pi) ** -1.5), math.inf)
