"""Positions on a sphere: longitude and latitude in degrees, displacements in meters.

A step is taken in the frame of its particle - meters east, north and up of where it
starts - so that poles and the date line are places like any other, and what is small
stays exact in single precision.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.types import check_choice

EARTH_RADIUS = 6_371_008.8  # meters, the mean radius (2a + b) / 3 of WGS84
GEOMETRIES = ("flat", "sphere")
SPHERICAL = "spherical"  # the coordinate system in the metadata of recorded paths
RADIAN = 180 / math.pi
TURN = 360.0

Columns = Float[Array, " n"]


class Sphere(eqx.Module):
    """A sphere, the meridian its longitudes begin at, and a height nothing passes."""

    radius: Float[Array | np.ndarray, ""]
    west: Float[Array | np.ndarray, ""]
    top: Float[Array | np.ndarray, ""]

    def wrap(self, longitudes: Columns) -> Columns:
        """Return longitudes within one turn from the western meridian."""
        west = jnp.asarray(self.west, longitudes.dtype)
        return longitudes - TURN * jnp.floor((longitudes - west) / TURN)

    def frame(
        self, positions: Float[Array, "n 3"], remainder: Float[Array, "n 3"] | None
    ) -> "Frame":
        """Return the directions east, north and up at every position."""
        latitude = positions[:, 1]
        # The cosine as the sine of what is left to the pole: exact at the pole, and
        # with the digits beside it that the latitude itself has no room for.
        left = 90 - jnp.abs(latitude)
        if remainder is not None:
            left = left - jnp.sign(latitude) * remainder[:, 1]
        sin, cos = jax.lax.optimization_barrier((sine(latitude), sine(left)))
        return Frame(self, positions, remainder, sin, cos)

    def scale(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Return meters per unit of each coordinate: degrees, degrees, meters."""
        degree = jnp.asarray(self.radius, positions.dtype) / RADIAN
        north = jnp.broadcast_to(degree, positions[:, 0].shape)
        east = degree * sine(90 - jnp.abs(positions[:, 1]))
        return jnp.stack([east, north, jnp.ones_like(north)], 1)

    def start(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Return positions with their longitudes in range."""
        return positions.at[:, 0].set(self.wrap(positions[:, 0]))


class Place(NamedTuple):
    """A point near the origin of a frame, as Cartesian parts of its unit vector.

    `x` points to the origin's meridian in the plane of the equator, `y` east of it,
    `z` to the north pole; `h` is the distance from the axis.
    """

    x: Columns
    y: Columns
    z: Columns
    h: Columns
    longitude: Columns  # degrees east of the origin
    latitude: Columns  # degrees north of the origin


class Frame(eqx.Module):
    """East, north and up at some positions; offsets from them are in meters.

    An offset is the orthographic projection of a point onto the tangent plane. That is
    a smooth chart of the hemisphere around the position, so that a Runge-Kutta method
    keeps its order in it, and the velocity of an offset is the velocity of the point
    along the two directions (no curvature terms).
    """

    sphere: Sphere
    positions: Float[Array, "n 3"]
    remainder: Float[Array, "n 3"] | None
    sin: Columns
    cos: Columns

    def locate(self, offset: Float[Array, "n 3"]) -> Place:
        """Return the points at offsets."""
        inverse = 1 / jnp.asarray(self.sphere.radius, offset.dtype)
        east, north = offset[:, 0] * inverse, offset[:, 1] * inverse
        if jax.default_backend() != "cpu":
            return jax.lax.optimization_barrier(self._locate(east, north))
        # A branch that is always taken: XLA compiles it apart from the step, into loops
        # that a CPU runs in a third of the time.
        nowhere = lambda *_: Place(*[jnp.full_like(east, np.nan)] * 6)
        found = lambda *at: self._locate(*at)
        place = jax.lax.cond(jnp.isfinite(inverse), found, nowhere, east, north)
        return jax.lax.optimization_barrier(place)

    def _locate(self, east: Columns, north: Columns) -> Place:
        """Return the points at offsets over the radius."""
        square = east * east + north * north
        fall = square / (1 + jnp.sqrt(jnp.maximum(1 - square, 0)))
        x = self.cos - (self.cos * fall + self.sin * north)
        z = self.sin - (self.sin * fall - self.cos * north)
        radial = x * x + east * east
        away = radial > 0
        h = jnp.where(away, jnp.sqrt(jnp.where(away, radial, 1)), 0)
        # sin of the change of latitude, z cos - h sin, without its cancellation; over
        # the pole (x < 0) there is none.
        near = x > 0
        gap = jnp.where(near, h + x, 1)
        rise = north - self.sin * east * east / gap
        rise = jnp.where(near, rise, z * self.cos - h * self.sin)
        along = h * self.cos + z * self.sin
        return Place(x, east, z, h, angle(east, x), angle(rise, along))

    def places(self, place: Place, up: Columns) -> Float[Array, "n 3"]:
        """Return positions of points, rounded: for looking up what is there."""
        longitude = self.positions[:, 0] + place.longitude
        latitude = self.positions[:, 1] + place.latitude
        return jnp.stack([longitude, latitude, self.positions[:, 2] + up], 1)

    def turn(self, place: Place, velocity: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Return a velocity east, north and up of a point in the frame's directions."""
        u, v, w = (velocity[:, c] for c in range(3))
        away = place.h > 0
        inverse = 1 / jnp.where(away, place.h, 1)
        cos = jnp.where(away, place.x * inverse, 1)
        sin = place.y * inverse
        east = u * cos - v * place.z * sin
        north = self.sin * (u * sin + v * place.z * cos) + v * self.cos * place.h
        return jnp.stack([east, north, w], 1)

    def arrive(
        self, offset: Float[Array, "n 3"]
    ) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"] | None]:
        """Return positions at offsets, longitudes in range, and what rounding left."""
        place = self.locate(offset)
        top = jnp.asarray(self.sphere.top, offset.dtype)
        # Column by column: stacked rows would keep XLA from vectorizing the sums.
        lon, lon_rest = self._add(0, place.longitude)
        lat, lat_rest = self._add(1, place.latitude)
        up, up_rest = self._add(2, offset[:, 2])
        turned = self.sphere.wrap(lon)
        # Rounding may end on the eastern meridian, which is the western one.
        west = jnp.asarray(self.sphere.west, lon.dtype)
        inside = jnp.where(turned >= west + TURN, turned - TURN, turned)
        within = jnp.stack([inside, lat, jnp.minimum(up, top)], 1)
        if self.remainder is None:
            return within, None
        whole = TURN * jnp.round((inside - lon) / TURN)
        lon_rest = lon_rest + _lost(lon, whole, inside)
        up_rest = jnp.where(up > top, 0, up_rest)
        return within, jnp.stack([lon_rest, lat_rest, up_rest], 1)

    def _add(self, column: int, change: Columns) -> tuple[Columns, Columns]:
        """Return a coordinate after a change, and what rounding left of it."""
        before = self.positions[:, column]
        if self.remainder is not None:
            change = change + self.remainder[:, column]
        after = before + change
        return jax.lax.optimization_barrier((after, _lost(before, change, after)))


def _lost(a: Array, b: Array, total: Array) -> Array:
    """Return what the rounded sum of two numbers left out, exactly (Knuth's TwoSum)."""
    part = total - a
    return (a - (total - part)) + (b - part)


def make_sphere(
    radius: Any = None, west: float = -180.0, top: float = np.inf
) -> Sphere:
    """Return a sphere, the Earth's mean one without a radius in meters."""
    radius = EARTH_RADIUS if radius is None else float(radius)
    if not (math.isfinite(radius) and radius > 0):
        raise ValueError(f"radius={radius}: give the radius of the sphere in meters")
    return Sphere(np.asarray(radius), np.asarray(float(west)), np.asarray(float(top)))


def chosen_radius(geometry: str | None, radius: Any) -> float | None:
    """Return the radius that a geometry by name has; None if it is flat."""
    check_choice("geometry", geometry or "flat", GEOMETRIES)
    if geometry != "sphere":
        if radius is not None:
            raise ValueError(f"radius={radius} needs geometry='sphere'")
        return None
    return float(make_sphere(radius).radius)


class Longitudes(NamedTuple):
    """An axis of longitudes as a sphere sees it."""

    nodes: Float[np.ndarray, " nodes"]
    closed: bool  # the first node follows the last, and is there again
    west: float


def close_longitudes(nodes: Float[np.ndarray, " nodes"]) -> Longitudes:
    """Return increasing longitudes, closed by the first one where they go round.

    The range of a region is centered on it, so that leaving is never taken for a turn.
    """
    if nodes.size > 1:
        gap = (nodes[-1] - nodes[-2] + nodes[1] - nodes[0]) / 2
        span = nodes[-1] - nodes[0]
        if abs(span + gap - TURN) <= CLOSES * gap:
            return Longitudes(np.append(nodes, nodes[0] + TURN), True, nodes[0])
        if span > TURN + CLOSES * gap:
            raise ValueError(
                f"longitudes run from {nodes[0]:g} to {nodes[-1]:g}, more than one "
                "turn: leave out the columns that repeat"
            )
        if span >= TURN - CLOSES * gap:
            return Longitudes(nodes, True, nodes[0])
    return Longitudes(nodes, False, (nodes[0] + nodes[-1]) / 2 - TURN / 2)


CLOSES = 1e-2  # of a spacing, how far a turn of longitudes may be from 360 degrees


def reach_poles(nodes: Float[np.ndarray, " nodes"]) -> tuple[float, float]:
    """Return where increasing latitudes end: at a pole less than a row away from it."""
    if np.abs(nodes).max(initial=0) > 90 + 1e-6:
        raise ValueError(
            f"latitudes run from {nodes[0]:g} to {nodes[-1]:g}: they lie between -90 "
            "and 90 degrees"
        )
    low, high = float(nodes[0]), float(nodes[-1])
    if nodes.size > 1:
        room = 1 + CLOSES
        low = -90.0 if low + 90 <= room * (nodes[1] - nodes[0]) else low
        high = 90.0 if 90 - high <= room * (nodes[-1] - nodes[-2]) else high
    return low, high


def great_circle(one: Any, other: Any, radius: float = EARTH_RADIUS) -> Any:
    """Return the distance along a sphere between positions (..., 2 or 3) in degrees.

    >>> round(float(great_circle([179.0, 0.0], [-179.0, 0.0])), 3)
    222390.16
    """
    return np.linalg.norm(course(one, other, radius), axis=-1)


def course(one: Any, other: Any, radius: float = EARTH_RADIUS) -> np.ndarray:
    """Return meters east and north to set out by, as far as the great circle goes."""
    a, b = (np.asarray(p, np.float64) for p in (one, other))
    south, north = np.radians(a[..., 1]), np.radians(b[..., 1])
    turn = np.radians(b[..., 0] - a[..., 0])
    # Haversines keep short distances exact, where acos would lose half the digits.
    half = np.sin((north - south) / 2) ** 2
    half = half + np.cos(south) * np.cos(north) * np.sin(turn / 2) ** 2
    distance = 2 * radius * np.arctan2(np.sqrt(half), np.sqrt(np.maximum(1 - half, 0)))
    x = np.cos(north) * np.sin(turn)
    y = np.sin(north - south) + 2 * np.sin(south) * np.cos(north) * (
        np.sin(turn / 2) ** 2
    )
    bearing = np.arctan2(x, y)
    return np.stack([distance * np.sin(bearing), distance * np.cos(bearing)], -1)


def mean_position(positions: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "3"]:
    """Return the position in the direction of the mean unit vector, at the mean z."""
    lon, lat = np.radians(np.asarray(positions[:, :2], np.float64)).T
    x, y = np.mean(np.cos(lat) * np.cos(lon)), np.mean(np.cos(lat) * np.sin(lon))
    z, up = np.mean(np.sin(lat)), float(np.mean(positions[:, 2], dtype=np.float64))
    middle = np.degrees([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])
    return np.append(middle, up)


# XLA calls the C library for each angle on a CPU; these polynomials are vectorized with
# the rest of a step and take a fortieth of the time. Both are x + x^3 q(x^2), which
# keeps all digits of what is small.
def _fit(
    function: Callable[[np.ndarray], np.ndarray], top: float, degree: int
) -> tuple[float, ...]:
    rest = lambda s: (function(np.sqrt(s)) / np.sqrt(s) - 1) / s
    fitted = np.polynomial.Chebyshev.interpolate(rest, degree, [0.0, top])
    return tuple(fitted.convert(kind=np.polynomial.Polynomial).coef.tolist())


_EIGHTH = math.tan(math.pi / 8)
_DEGREES = {"float32": (5, 5), "float64": (12, 10)}
_ARCTANGENT = {k: _fit(np.arctan, _EIGHTH**2, d) for k, (d, _) in _DEGREES.items()}
_SINE = {k: _fit(np.sin, math.pi**2 / 4, d) for k, (_, d) in _DEGREES.items()}


def _odd(x: Array, table: dict[str, tuple[float, ...]]) -> Array:
    coefficients = table[x.dtype.name]
    square = x * x
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * square + coefficient
    return x + x * (square * total)


def sine(degrees: Columns) -> Columns:
    """Return the sine of angles from -90 to 90 degrees."""
    return _odd(degrees * (math.pi / 180), _SINE)


def angle(y: Columns, x: Columns) -> Columns:
    """Return the angle of a vector in degrees, that of nothing being 0."""
    wide, tall = jnp.abs(x), jnp.abs(y)
    low, high = jnp.minimum(wide, tall), jnp.maximum(wide, tall)
    # arctan a = pi/4 + arctan((a - 1) / (a + 1)): what is left is below pi/8.
    middle = low > _EIGHTH * high
    above = jnp.where(middle, low - high, low)
    below = jnp.where(middle, low + high, high)
    part = _odd(above / jnp.where(below > 0, below, 1), _ARCTANGENT) * RADIAN
    part = jnp.where(middle, 45 + part, part)
    part = jnp.where(tall > wide, 90 - part, part)
    part = jnp.where(x < 0, 180 - part, part)
    return jnp.where(y < 0, -part, part)


def repeats_first(longitudes: Float[np.ndarray, " n"]) -> bool:
    """Return whether the last column is the first again, a turn later."""
    if longitudes.size < 3:
        return False
    off = abs(abs(longitudes[-1] - longitudes[0]) - TURN)
    return bool(off <= CLOSES * abs(longitudes[1] - longitudes[0]))
