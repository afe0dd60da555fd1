"""Densities of particles on a sphere per square meter: counts in cells and kernels."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxtrace.analysis.density import KDEEstimator
from jaxtrace.sphere import EARTH_RADIUS, TURN, course, mean_position

Degrees = Float[np.ndarray, " _"]


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
    chords = KDEEstimator(_vectors(known), 1 / math.sqrt(sharpness))
    flat = (2 * math.pi / sharpness) ** 1.5  # what that estimator divides by
    whole = sharpness / (2 * math.pi * radius**2 * -math.expm1(-2 * sharpness))
    found = chords.evaluate(_vectors(wanted)).astype(np.float64)
    return len(known) * whole * flat * found


def scott_bandwidth(places: Float[np.ndarray, "n 3"], radius: float) -> float:
    """Return the bandwidth in meters by Scott's rule for two directions."""
    middle = np.broadcast_to(mean_position(places), places.shape)
    spread = np.sqrt(np.mean(np.square(course(middle, places, radius))))
    return float(spread) * len(places) ** (-1 / 6)


def _edges(edges: Any, most: float, name: str) -> Degrees:
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


def _vectors(places: Float[np.ndarray, "n _"]) -> Float[np.ndarray, "n 3"]:
    lon, lat = np.radians(places[:, :2]).T
    east, north = np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon)
    return np.stack([east, north, np.sin(lat)], 1)
