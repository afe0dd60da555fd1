"""Balls, cylinders and domains by signed distance, with a rule at the surface."""

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.bounds import AXES, axis_number
from jaxtrace.fields.box_tree import select
from jaxtrace.tracking.boundaries.base import (
    AbstractBoundary,
    StepContext,
    UserFunction,
    probe,
    reach,
)
from jaxtrace.tracking.boundaries.box import BoxBoundary, box_boundary, mirror_axis
from jaxtrace.tracking.particles import Flags, Particles, Scalars, Vectors, move, retire
from jaxtrace.types import ParticleStatus, check_choice

Condition = Literal["reflective", "absorbing", "clamping"]
ROUNDINGS = 4  # how many roundings of a coordinate a point on the surface may be off


class RoundBoundary(AbstractBoundary):
    """A ball, or a cylinder: round along some axes, between two planes along the rest.

    A mirror sends a particle back along the radius it left by, as far as it went
    beyond the surface. `half` is half the height of a cylinder; None if it has no ends.
    """

    center: Float[Array | np.ndarray, "3"]
    radius: Float[Array | np.ndarray, ""]
    half: Float[Array | np.ndarray, ""] | None
    axes: tuple[int, ...] = eqx.field(static=True)
    condition: Condition = eqx.field(static=True)

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Mirror, stop or absorb what is outside."""
        if self.condition == "absorbing":
            gone, point, fraction = self.crossing(context.before, particles.positions)
            when = context.time_at(fraction)
            return retire(particles, gone, ParticleStatus.ABSORBED, point, when)
        positions = particles.positions
        columns = [positions[:, axis] for axis in range(3)]
        out, share = self._shrink(positions)
        for axis in self.axes:
            center = jnp.asarray(self.center[axis], positions.dtype)
            inner = center + share * (columns[axis] - center)
            columns[axis] = jnp.where(out, inner, columns[axis])
        fold = mirror_axis if self.condition == "reflective" else jnp.clip
        for axis, (lo, hi) in self._planes(positions.dtype).items():
            columns[axis] = fold(columns[axis], lo, hi)
        return move(particles, jnp.stack(columns, 1))

    def crossing(self, before: Vectors, after: Vectors) -> tuple[Any, Any, Any]:
        """Return who left, where on the surface, and how far along the straight way."""
        gone = self._distance(after) > jnp.asarray(self.radius, after.dtype)
        fraction = jnp.where(gone, self._reach_round(before, after), 1)
        for axis, (lo, hi) in self._planes(after.dtype).items():
            x = after[:, axis]
            out = (x < lo) | (x > hi)
            part = reach(before[:, axis], x, jnp.where(x < lo, lo, hi))
            fraction = jnp.where(out, jnp.minimum(fraction, part), fraction)
            gone = gone | out
        return gone, before + fraction[:, None] * (after - before), fraction

    def _planes(self, dtype: Any) -> dict[int, tuple[Array, Array]]:
        """Return the ends of a cylinder, by axis."""
        if self.half is None:
            return {}
        axis = 3 - sum(self.axes)
        center = jnp.asarray(self.center[axis], dtype)
        half = jnp.asarray(self.half, dtype)
        return {axis: (center - half, center + half)}

    def _offsets(self, positions: Array) -> list[Scalars]:
        """Return coordinates along the round axes, from the center."""
        center = jnp.asarray(self.center, positions.dtype)
        return [positions[:, axis] - center[axis] for axis in self.axes]

    def _distance(self, positions: Array) -> Scalars:
        """Return distances from the center or the axis."""
        offsets = self._offsets(positions)
        square = _inner(offsets, offsets)
        # The root has no slope at the center, where nobody asks for it.
        at = square == 0
        root = jnp.sqrt(jnp.where(at, jnp.ones_like(square), square))
        return jnp.where(at, square, root)

    def _shrink(self, positions: Array) -> tuple[Flags, Array]:
        """Return who is outside, and the factor that takes their offsets inside."""
        dtype = positions.dtype
        distance, radius = self._distance(positions), jnp.asarray(self.radius, dtype)
        size = radius + jnp.max(jnp.abs(jnp.asarray(self.center, dtype)))
        # Rounding of the new position must not put it outside again.
        surface = jnp.maximum(radius - ROUNDINGS * jnp.finfo(dtype).eps * size, 0)
        out = distance > radius
        kept = surface
        if self.condition == "reflective":
            kept = jnp.clip(mirror_axis(distance, -radius, radius), -surface, surface)
        return out, kept / jnp.where(out, distance, jnp.ones_like(distance))

    def _reach_round(self, before: Array, after: Array) -> Scalars:
        """Return how far along the way the round surface is met; 0 from outside it.

        The outer root f of |start + f way| = 1, in units of the radius and in the form
        that cancels nothing.
        """
        radius = jnp.asarray(self.radius, after.dtype)
        start = [x / radius for x in self._offsets(before)]
        ends = [x / radius for x in self._offsets(after)]
        way = [y - x for x, y in zip(start, ends, strict=True)]
        square, slope = _inner(way, way), _inner(start, way)
        depth = _inner(start, start) - 1
        inside = (depth < 0) & (square > 0)
        one = jnp.ones_like(depth)
        square, depth = jnp.where(inside, square, one), jnp.where(inside, depth, -one)
        root = jnp.sqrt(slope * slope - square * depth)
        # The root of the quadratic that does not subtract nearly equal numbers.
        outward = slope > 0
        far = -depth / (jnp.where(outward, slope, 0) + root)
        near = (root - slope) / square
        fraction = jnp.clip(jnp.where(outward, far, near), 0, 1)
        return jnp.where(inside, fraction, jnp.zeros_like(fraction))


def _inner(first: list[Array], second: list[Array]) -> Array:
    products = [x * y for x, y in zip(first, second, strict=True)]
    return sum(products[1:], start=products[0])


def _positive(name: str, value: Any) -> Float[np.ndarray, ""]:
    """Return a length as an array, if it is one."""
    length = np.asarray(value, np.float64)
    if length.ndim or not (np.isfinite(length) and length > 0):
        raise ValueError(f"{name} {value!r}: give one positive number")
    return length


def spherical_boundary(
    center: Any, radius: float, condition: str = "reflective"
) -> RoundBoundary:
    """Return a ball whose surface is reflective, absorbing or clamping.

    A center of two coordinates lies at z = 0.
    """
    return _round(center, (0, 1), radius, None, (0, 1, 2), condition)


def cylindrical_boundary(
    axis: str | int = "z",
    center: Any = (0.0, 0.0),
    radius: float = 1.0,
    height: float | None = None,
    condition: str = "reflective",
) -> RoundBoundary:
    """Return a cylinder along an axis, reflective, absorbing or clamping.

    The center is two coordinates across the axis, in the order x, y, z, or all three.
    The ends are half the height to both sides of it; without a height there are none.
    """
    along = axis_number(axis)
    across = tuple(a for a in range(3) if a != along)
    half = None if height is None else np.asarray(_positive("height", height) / 2)
    return _round(center, across, radius, half, across, condition)


def _round(
    center: Any,
    across: tuple[int, ...],
    radius: float,
    half: np.ndarray | None,
    axes: tuple[int, ...],
    condition: str,
) -> RoundBoundary:
    """Return a round boundary; a center of two coordinates lies on two axes."""
    place, given = np.zeros(3), np.asarray(center, np.float64)
    if given.shape not in ((2,), (3,)):
        pair = " and ".join(AXES[axis] for axis in across)
        raise ValueError(
            f"center of shape {given.shape}: give 2 or 3 coordinates; two are those "
            f"along {pair}"
        )
    place[list(across) if given.size == 2 else slice(None)] = given
    check_choice("condition", condition, get_args(Condition))
    size, rule = _positive("radius", radius), cast(Condition, condition)
    return RoundBoundary(place, size, half, axes, rule)


Outside = Literal["absorbing", "reflective", "clamping", "periodic", "open"]


class DistanceBoundary(AbstractBoundary):
    """A domain where a signed distance is at most 0, in a box.

    Inside, the rule of the box holds at its faces. Outside, the rule is that of the
    surface (absorbing, mirroring, stopping), or periodic: the particle is wrapped into
    the box. A particle that a mirror or a stop leaves outside stays where it crossed.
    """

    box: BoxBoundary
    function: UserFunction
    outside: Outside = eqx.field(static=True)

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Return the inside rule for those inside, the outside rule for the others."""
        out = self.distance(particles.positions) > 0
        bounded = self.box.apply(particles, context)
        inner = select(out, particles, bounded)
        if self.outside == "open":
            return inner
        if self.outside == "periodic":
            wrapped = self.box.wrap(inner.positions)
            return move(inner, jnp.where(out[:, None], wrapped, inner.positions))
        there, fraction = jax.lax.cond(
            jnp.any(out & particles.alive),
            lambda before, after: self.crossing(before, after),
            lambda before, after: (after, jnp.ones_like(after[:, 0])),
            context.before,
            particles.positions,
        )
        if self.outside == "absorbing":
            when = context.time_at(fraction)
            return retire(inner, out, ParticleStatus.ABSORBED, there, when)
        moved = self._send_back(particles.positions, there)
        return move(inner, jnp.where(out[:, None], moved, inner.positions))

    def wrap(self, positions: Vectors) -> Vectors:
        """Return stage points of repeating axes, moved into the box."""
        return self.box.wrap(positions)

    @property
    def period(self) -> tuple[float, float, float]:
        """Return the widths of the repeating axes."""
        return self.box.period

    def distance(self, positions: Vectors) -> Scalars:
        """Return the signed distances the function answers."""
        return self.function(positions, positions.shape[:1])

    def crossing(self, before: Vectors, after: Vectors) -> tuple[Vectors, Scalars]:
        """Return the last point inside on the straight way, and how far along it is."""

        def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) / 2
            inside = self.distance(before + middle[:, None] * (after - before)) <= 0
            return jnp.where(inside, middle, low), jnp.where(inside, high, middle)

        zero = jnp.zeros_like(after[:, 0])
        # Bisection, one bit of the fraction each: it needs no gradient and cannot fail.
        halvings = jnp.finfo(after.dtype).nmant + 1
        fraction, _ = jax.lax.fori_loop(0, halvings, halve, (zero, zero + 1))
        return before + fraction[:, None] * (after - before), fraction

    def _send_back(self, positions: Array, there: Array) -> Array:
        """Mirror at the surface or stop on it; failing that, stay at the crossing."""
        distance, pull = jax.vjp(self.distance, positions)
        (gradient,) = pull(jnp.ones_like(distance))
        square = jnp.sum(gradient * gradient, 1)
        share = distance / jnp.where(square > 0, square, jnp.ones_like(square))
        times = 2 if self.outside == "reflective" else 1
        moved = positions - times * share[:, None] * gradient
        inside = self.distance(moved) <= 0
        return jnp.where(inside[:, None], moved, there)


def distance_based_boundary(
    bounds: Any,
    distance_func: Callable[[Any], Any],
    inside_condition: str = "periodic",
    outside_condition: str = "absorbing",
) -> DistanceBoundary:
    """Return a domain where `distance_func(positions) -> (N,)` is at most 0, in a box.

    Inside, `inside_condition` holds at the faces of the box (any rule of
    `mixed_boundary`). Outside, `outside_condition` holds at the surface: absorbing,
    reflective or clamping, or periodic, which wraps the particle into the box.
    """
    box = box_boundary(bounds, inside_condition)
    check_choice("outside_condition", outside_condition, get_args(Outside))
    function, shape = probe(distance_func)
    if shape not in ((2,), (2, 1)):
        raise ValueError(
            f"distance_func returned shape {shape} for positions (2, 3): return one "
            "signed distance per position, (N,)"
        )
    if function.on_host and outside_condition in ("reflective", "clamping"):
        raise TypeError(
            f"outside_condition {outside_condition!r} needs the gradient of "
            "distance_func: write it with jax.numpy"
        )
    return DistanceBoundary(box, function, cast(Outside, outside_condition))
