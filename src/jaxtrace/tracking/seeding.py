"""Seeds: grids, lines, circles, spheres, clusters and given densities.

Every function returns NumPy rows of three coordinates in the working dtype; no row
where the count is zero or less.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64

from jaxrig import compile_once
from jaxtrace.bounds import AXES, PLANES, Box, box_bounds, coarse_axes
from jaxtrace.config import working_dtype
from jaxtrace.fields.base import AbstractField
from jaxtrace.sphere import GEOMETRIES
from jaxtrace.types import check_choice

Seeds = Float[np.ndarray, "seeds 3"]


def as_seeds(rows: Any, dtype: Any = None) -> Seeds:
    """Return rows of two or three coordinates as seeds (N, 3); z is 0 in 2-D."""
    positions = np.asarray(rows, np.float64)
    if positions.ndim == 1 and positions.size:
        positions = positions[None]
    if positions.size == 0:
        positions = np.zeros((0, 3))
    if positions.ndim != 2 or positions.shape[1] not in (2, 3):
        raise ValueError(
            f"positions of shape {positions.shape} are not rows of 2 or 3 coordinates"
        )
    padded = np.zeros((len(positions), 3), working_dtype() if dtype is None else dtype)
    padded[:, : positions.shape[1]] = positions
    return padded


def random_seeds(
    n: int, bounds: Any, rng_seed: int = 0, dtype: Any = None, geometry: str = "flat"
) -> Seeds:
    """Return seeds spread at random over a box, the same for the same `rng_seed`.

    With geometry="sphere" the box is one of longitudes and latitudes, and seeds are
    even per area: uniform in the sine of the latitude.
    """
    check_choice("geometry", geometry, GEOMETRIES)
    box = box_bounds(bounds)
    rows = uniform_rows(np.random.default_rng(rng_seed), n, box)
    if geometry == "sphere" and box.size[1] > 0:
        low, high = np.sin(np.radians([box.lo[1], box.hi[1]]))
        share = (rows[:, 1] - box.lo[1]) / box.size[1]
        rows[:, 1] = np.degrees(np.arcsin(low + share * (high - low)))
    return as_seeds(rows, dtype)


HIGH = "above the highest level"
EDGE = 1e-5  # of the extent of the data: seeds on its edge may be rounded beyond it


def warn_of_seeds(
    field: AbstractField,
    seeds: Float[Array, "n 3"],
    wrap: Callable[[Array], Array] = lambda x: x,
) -> None:
    """Say how many particles start outside the data, on land or nowhere.

    `wrap` is the boundary's. Within the box of a mesh the run finds who is outside.
    """
    # On an accelerator only the answer crosses the bus: a million seeds take as long
    # as fifty steps.
    on_host = all(device.platform == "cpu" for device in seeds.devices())
    there, found = np.asarray(seeds) if on_host else seeds, {}
    box, rule = np.stack(field.bounds()), getattr(field, "outside", "periodic")
    known = field.sphere is not None or rule == "periodic"
    room = _room(box, seeds.dtype)
    most = np.finfo(seeds.dtype).max  # infinite seeds are never in their place
    ends = (
        np.broadcast_to([[-most], [most]], (2, 3)) if known else room.clip(-most, most)
    )
    if bool((_strays if on_host else _strays_there)(there, ends.astype(seeds.dtype))):
        found["not finite"] = ~np.isfinite(np.asarray(seeds)).all(1)
        if not known:
            wrapped = np.asarray(wrap(seeds))
            beyond = (wrapped < room[0]) | (wrapped > room[1])
            found["outside the data"] = beyond.any(axis=1)
    if field.sphere is None:
        _warn_of_rounding(box, seeds.dtype)
    elif not field.searches:
        outside, dry = map(np.asarray, _unplaced(field, seeds))
        found |= {"outside the data": outside, "on land": dry}
    if field.sphere is not None and np.isfinite(field.sphere.top):
        found[HIGH] = np.asarray(there[:, 2] > float(field.sphere.top))
    low, high = (", ".join(f"{float(x):g}" for x in end) for end in box)
    for place, rows in found.items():
        if rows.any():
            first = np.asarray(seeds)[np.argmax(rows)].tolist()
            count = f"{int(rows.sum()):,} of {len(seeds):,} seeds"
            fate = "do not move; leave them out, or correct them"
            fate = "go there, for a depth is -z" if place == HIGH else fate
            if place == "outside the data" and field.sphere is None:
                fate = f"move as outside={rule!r} says beyond ({low}) to ({high})"
            warnings.warn(
                f"{count} are {place}, the first at {first}: they {fate}", stacklevel=3
            )


def _warn_of_rounding(box: Float[np.ndarray, "2 3"], dtype: Any) -> None:
    """Say if positions are so coarse that short steps may round to nothing."""
    unit = np.abs(box).max(0) * np.finfo(dtype).eps
    for axis in coarse_axes(box, dtype)[:1]:
        warnings.warn(
            f"{AXES[axis]} from {box[0][axis]:g} to {box[1][axis]:g} is rounded to "
            f"{unit[axis]:.2g} in {dtype}, and particles stop where steps are shorter: "
            'subtract an origin, or use dtype="float64" (jt.configure, or [tracking])',
            stacklevel=4,
        )


def _room(box: Float[np.ndarray, "2 3"], dtype: Any) -> Float[np.ndarray, "2 3"]:
    """Return a box that is larger by rounding; a flat axis holds all."""
    slack = np.where(box[1] > box[0], EDGE * (box[1] - box[0]), np.inf)
    return (box + np.stack([-slack, slack])).astype(dtype)


def _strays(seeds: Any, ends: Any) -> Any:
    """Return whether any seed is not between two ends, or not a number."""
    return ~((seeds >= ends[:1]) & (seeds <= ends[1:])).all()


_strays_there = compile_once(_strays, max_traces=None)  # for any number of seeds


# No budget: any field may be seeded with any number of particles.
@compile_once(max_traces=None)
def _unplaced(
    field: AbstractField, seeds: Float[Array, "n 3"]
) -> tuple[Bool[Array, " n"], Bool[Array, " n"]]:
    """Return who is outside the data and who on land; NaN, said apart, is neither."""
    finite = jnp.isfinite(seeds).all(axis=1)
    outside = ~field.inside(seeds, ()) & finite
    land = field.on_land(seeds)
    dry = jnp.zeros_like(outside) if land is None else land & ~outside & finite
    return outside, dry


def uniform_rows(
    generator: np.random.Generator, n: int, box: Box
) -> Float64[np.ndarray, "seeds 3"]:
    """Return points spread at random over a box."""
    return box.lo + generator.random((max(n, 0), 3)) * box.size


def uniform_grid_seeds(
    resolution: int | Sequence[int], bounds: Any, include_boundaries: bool = True
) -> Seeds:
    """Return seeds on a regular grid over a box, x slowest and z fastest.

    One number is the count along every axis that the bounds leave open, two or three
    are the counts along x, y and z. With boundaries the first and last layer lie on
    the faces, without them all are inside. A single layer of z lies at its lower end.
    """
    box = box_bounds(bounds)
    counts = axis_counts(resolution, box)
    for axis, count, active in zip(AXES, counts, box.active, strict=True):
        if count > 1 and not active:
            warnings.warn(
                f"the box has zero length along {axis}, so its {count} layers of "
                "seeds coincide; use a count of 1 there",
                UserWarning,
                stacklevel=2,
            )

    def layers(axis: int, count: int) -> np.ndarray:
        lo, hi = box.lo[axis], box.hi[axis]
        if include_boundaries or (AXES[axis] == "z" and count == 1):
            return np.linspace(lo, hi, max(count, 0))
        return np.linspace(lo, hi, max(count, 0) + 2)[1:-1]

    grid = np.meshgrid(*map(layers, range(3), counts), indexing="ij")
    return as_seeds(np.stack([axis.ravel() for axis in grid], axis=1))


def axis_counts(resolution: int | Sequence[int], box: Box) -> tuple[int, int, int]:
    """Return counts along x, y and z: one number counts for every active axis."""
    if isinstance(resolution, int | np.integer):
        nx, ny, nz = (int(resolution) if active else 1 for active in box.active)
        return nx, ny, nz
    given = np.asarray(resolution)
    if given.shape not in ((2,), (3,)) or (given != np.trunc(given)).any():
        raise ValueError(
            f"resolution={resolution}: give one, two or three whole numbers, the "
            "counts along x, y and z"
        )
    counts = [int(count) for count in given]
    return counts[0], counts[1], (counts[2] if len(counts) == 3 else 1)


def line_seeds(start: Any, end: Any, n: int) -> Seeds:
    """Return seeds at equal distances along a line, both ends included."""
    return as_seeds(np.linspace(_point(start), _point(end), max(n, 0)))


def circle_seeds(
    center: Any, radius: float, n: int, plane: str = "xy", start_angle: float = 0.0
) -> Seeds:
    """Return seeds at equal angles on a circle in the plane "xy", "xz" or "yz"."""
    check_choice("plane", plane, PLANES)
    _check_radius(radius)
    count = max(n, 0)
    angles = start_angle + 2 * np.pi * np.arange(count) / max(count, 1)
    rows = np.tile(_point(center), (count, 1))
    first, second = PLANES[plane]
    rows[:, first] += radius * np.cos(angles)
    rows[:, second] += radius * np.sin(angles)
    return as_seeds(rows)


def sphere_seeds(
    center: Any,
    radius: float,
    n: int,
    distribution: str = "uniform",
    rng_seed: int = 0,
) -> Seeds:
    """Return random seeds in a ball ("uniform") or on it ("surface")."""
    check_choice("distribution", distribution, ("uniform", "surface"))
    _check_radius(radius)
    generator = np.random.default_rng(rng_seed)
    directions = generator.normal(size=(max(n, 0), 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radii = np.full((len(directions), 1), float(radius))
    if distribution == "uniform":
        radii *= np.cbrt(generator.random(radii.shape))
    return as_seeds(_point(center) + radii * directions)


def _surface_rows(generator: np.random.Generator, n: int, box: Box) -> np.ndarray:
    """Return points spread evenly over the faces of a box, the edges of a flat one."""
    rows = uniform_rows(generator, n, box)
    axes = np.flatnonzero(box.active)
    if len(axes) == 0:
        return rows
    # Divided by the longest side: products of very small lengths would vanish.
    sides = box.size[axes] / box.size.max()
    areas = np.array([np.prod(np.delete(sides, i)) for i in range(len(axes))])
    across = axes[generator.choice(len(axes), n, p=areas / areas.sum())]
    upper = generator.random(n) < 0.5
    rows[np.arange(n), across] = np.where(upper, box.hi[across], box.lo[across])
    return rows


def boundary_seeds(geometry: Any, n: int, rng_seed: int = 0) -> Seeds:
    """Spread seeds evenly on the surface of a box, a sphere or a field's domain.

    `geometry` is bounds, `{"center": ..., "radius": ...}`, or anything with
    `get_spatial_bounds()`.
    """
    if isinstance(geometry, dict):
        if set(geometry) != {"center", "radius"}:
            raise ValueError(
                f"a geometry of {sorted(geometry)} is unknown: a sphere has 'center' "
                "and 'radius', a box is given by its bounds"
            )
        center, radius = geometry["center"], geometry["radius"]
        return sphere_seeds(center, radius, n, "surface", rng_seed)
    if hasattr(geometry, "get_spatial_bounds"):
        lo, hi = geometry.get_spatial_bounds()
        geometry = np.stack([np.asarray(lo), np.asarray(hi)])
    generator = np.random.default_rng(rng_seed)
    return as_seeds(_surface_rows(generator, max(n, 0), box_bounds(geometry)))


def gaussian_cluster_seeds(
    centers: Any, std: Any, n_per_cluster: int, rng_seed: int = 0
) -> Seeds:
    """Return normal clouds of seeds around centers, cluster after cluster.

    `std` is one number, one per cluster, or one per cluster and axis. Clusters given
    in two dimensions stay in their plane.
    """
    rows = np.atleast_2d(np.asarray(centers, np.float64))
    middles = as_seeds(rows, np.float64)
    spread = np.asarray(std, np.float64)
    if spread.shape not in ((), (len(rows),), rows.shape):
        raise ValueError(
            f"std of shape {spread.shape} for {len(rows)} centers: give one number, "
            "one per center, or one per center and axis"
        )
    if not (spread >= 0).all():
        raise ValueError(f"std={spread.tolist()} must not be negative")
    spread = spread[:, None] if spread.ndim == 1 else spread
    spread = as_seeds(np.broadcast_to(spread, rows.shape), np.float64)
    shape = (len(middles), max(n_per_cluster, 0), 3)
    noise = np.random.default_rng(rng_seed).normal(size=shape)
    return as_seeds((middles[:, None] + spread[:, None] * noise).reshape(-1, 3))


def _point(value: Any) -> Float64[np.ndarray, "3"]:
    point = np.asarray(value, np.float64)
    if point.shape not in ((2,), (3,)):
        raise ValueError(f"a point has 2 or 3 coordinates, not shape {point.shape}")
    return as_seeds(point, np.float64)[0]


def _check_radius(radius: float) -> None:
    if not radius >= 0:
        raise ValueError(f"radius={radius} must not be negative")


PROBES = 1000  # points at which the highest density is looked for first
HEADROOM = 1.1  # over the highest density seen


def custom_distribution_seeds(
    bounds: Any,
    n: int,
    pdf_func: Callable[[Any], Any],
    max_iterations: int = 1000,
    rng_seed: int = 0,
) -> Seeds:
    """Return seeds with a density proportional to `pdf_func(positions) -> (rows,)`.

    Rejection sampling: the highest density is estimated from probes, and where a
    higher one turns up later, the seeds taken so far are thinned to match.
    """
    box, generator = box_bounds(bounds), np.random.default_rng(rng_seed)
    kept = np.zeros((0, 3))
    if n <= 0:
        return as_seeds(kept)
    ceiling = HEADROOM * _density(pdf_func, uniform_rows(generator, PROBES, box)).max()
    for _ in range(max_iterations):
        proposed = uniform_rows(generator, max(n, PROBES), box)
        density = _density(pdf_func, proposed)
        if density.max() > ceiling:
            higher = HEADROOM * density.max()
            kept = kept[generator.random(len(kept)) * higher < ceiling]
            ceiling = higher
        accepted = generator.random(len(proposed)) * ceiling < density
        kept = np.concatenate([kept, proposed[accepted]])
        if len(kept) >= n:
            return as_seeds(kept[:n])
    raise ValueError(
        f"only {len(kept)} of {n} seeds were accepted in {max_iterations} rounds: "
        "narrow the bounds to where the density is, or raise max_iterations"
    )


def _density(pdf_func: Callable[[Any], Any], positions: np.ndarray) -> np.ndarray:
    density = np.asarray(pdf_func(positions), np.float64)
    if density.shape != (len(positions),):
        raise ValueError(
            f"pdf_func gave shape {density.shape} for {len(positions)} positions: it "
            "gives one density per row"
        )
    if not (np.isfinite(density) & (density >= 0)).all():
        raise ValueError("pdf_func must give finite densities that are not negative")
    return density
