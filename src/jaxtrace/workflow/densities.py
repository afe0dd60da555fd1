"""Where particles are at the end of a case: densities over planes and in slabs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxrig.atomic import atomic_write
from jaxtrace.analysis.density import (
    KDEEstimator,
    cell_areas,
    density_per_area,
    scott_bandwidth,
)
from jaxtrace.analysis.sph import SPHDensityEstimator
from jaxtrace.bounds import PLANES, Box
from jaxtrace.workflow.tables import Density

SLICE_PLACE = 0.7  # of the domain along x, where the case says nothing
SLAB_SHARE = 0.1  # of the domain along its normal, how thick a slab is by default


@dataclass(frozen=True, eq=False)
class DensityMap:
    """A density over a plane, in the order of meshgrid "xy", and what it is made of."""

    method: str
    plane: str
    x: Float[np.ndarray, "up across"]
    y: Float[np.ndarray, "up across"]
    values: Float[np.ndarray, "up across"]
    particles: int
    length: float
    place: float | None = None  # along the normal of the plane, of the particles seen

    def facts(self) -> dict[str, Any]:
        """Return what a report says of it."""
        return {
            "plane": self.plane,
            "particles": self.particles,
            "length": self.length,
            "lowest": float(self.values.min()),
            "highest": float(self.values.max()),
        }


def estimate(
    table: Density,
    positions: Float[np.ndarray, "particles 3"],
    domain: Box,
    plane: str,
    slab: tuple[float, float] | None = None,
    radius: float | None = None,
) -> tuple[list[DensityMap], list[str]]:
    """Return a map for each method, and the reason for each one missing.

    `slab` is a place and a thickness along the normal of the plane; without it all
    particles are seen in the plane. With the `radius` of a sphere densities of its
    surface are per square meter, by kernels that know it.
    """
    axes = PLANES[plane]
    chosen = positions[np.isfinite(positions).all(axis=1)]
    if slab is not None:
        normal = chosen[:, 3 - sum(axes)]
        chosen = chosen[np.abs(normal - slab[0]) <= slab[1] / 2]
    points = chosen[:, list(axes)]
    ends = [(float(domain.lo[a]), float(domain.hi[a])) for a in axes]
    reason = _why_not(points, ends)
    if reason:
        where = "" if slab is None else f" at {slab[0]:.4g}"
        return [], [f"no density in the {plane} plane{where}: {reason}"]
    bounds = np.array(ends)
    methods, notes = list(table.methods), []
    few = table.sph_adaptive and len(points) <= table.sph_n_neighbors
    if "sph" in methods and few:
        methods.remove("sph")
        notes = [
            f"no sph density in the {plane} plane: {len(points)} particles have no "
            f"{table.sph_n_neighbors} neighbors each, lower sph_n_neighbors"
        ]
    place = None if slab is None else slab[0]
    if radius is not None and plane == "xy":
        return _map_sphere(table, chosen, ends, place, radius)
    return [_map(table, m, points, bounds, plane, place) for m in methods], notes


def _why_not(points: np.ndarray, ends: list[tuple[float, float]]) -> str:
    if any(low == high for low, high in ends):
        return "the domain is flat there"
    if len(points) < 2:
        return f"{len(points)} particles are left"
    if (np.ptp(points, axis=0) == 0).any():
        return "all particles lie on a line"
    return ""


def _map(
    table: Density,
    method: str,
    points: np.ndarray,
    bounds: np.ndarray,
    plane: str,
    place: float | None,
) -> DensityMap:
    grid: dict[str, Any] = {"resolution": table.resolution, "bounds": bounds}
    if method == "kde":
        estimator: Any = KDEEstimator(
            points,
            table.kde_bandwidth,
            table.kde_bandwidth_rule,
            table.kde_normalize,
            **grid,
        )
    else:
        estimator = SPHDensityEstimator(
            points,
            smoothing_length=table.sph_smoothing_length,
            kernel_type=table.sph_kernel_type,
            adaptive=table.sph_adaptive,
            n_neighbors=table.sph_n_neighbors,
            normalize=table.sph_normalize,
            **grid,
        )
    x, y, found = estimator.evaluate_2d()
    length = float(np.median(estimator.h))
    return DensityMap(method, plane, x, y, found, len(points), length, place)


def _map_sphere(
    table: Density,
    positions: np.ndarray,
    ends: list[tuple[float, float]],
    place: float | None,
    radius: float,
) -> tuple[list[DensityMap], list[str]]:
    """Return the kernel density per square meter: of particles, or of their share."""
    notes, count = [], len(positions)
    if "sph" in table.methods:
        notes = ["sph densities are for flat space: on the sphere kde is per area"]
    if "kde" not in table.methods:
        return [], notes
    width = table.kde_bandwidth
    width = scott_bandwidth(positions, radius) if width is None else width
    x, y = np.meshgrid(*(np.linspace(*end, table.resolution) for end in ends))
    points = np.stack([x.ravel(), y.ravel()], -1)
    found = density_per_area(positions, points, width, radius).reshape(x.shape)
    if table.kde_normalize in (True, "pdf"):
        found /= count
    elif table.kde_normalize == "relative":
        found *= float(cell_areas(ends[0], ends[1], radius).sum()) / count
    return [DensityMap("kde", "xy", x, y, found, count, width, place)], notes


def plane_slab(table: Density, domain: Box) -> tuple[float, float] | None:
    """Return the slab of a table of densities: its place and its thickness."""
    if table.slab_position is None:
        return None
    normal = 3 - sum(PLANES[table.plane])
    share = SLAB_SHARE * float(domain.size[normal])
    return table.slab_position, table.slab_thickness or share


def flow_slab(
    table: Density, x0: float | None, domain: Box
) -> tuple[float, float] | None:
    """Return the slab across x; None where the domain has no length along x."""
    length = float(domain.size[0])
    if not length:
        return None
    place = float(domain.lo[0]) + SLICE_PLACE * length if x0 is None else x0
    return place, table.slab_thickness or SLAB_SHARE * length


def save_maps(maps: list[DensityMap], path: Path) -> Path:
    """Write maps as arrays `<method>_<plane>_x`, `_y` and `_density` of one .npz."""
    arrays = {}
    for one in maps:
        name = f"{one.method}_{one.plane}"
        parts = zip(("x", "y", "density"), (one.x, one.y, one.values), strict=True)
        arrays |= {f"{name}_{kind}": values for kind, values in parts}
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)
    return path
