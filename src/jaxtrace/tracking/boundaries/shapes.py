"""Balls and cylinders whose surfaces mirror, absorb or stop particles."""

from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.bounds import AXES
from jaxtrace.tracking.boundaries.base import AbstractBoundary, Passage, reach
from jaxtrace.tracking.boundaries.box import mirror_axis
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus

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

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """Mirror, stop or absorb what is outside."""
        if self.condition == "absorbing":
            gone, point, fraction = self.crossing(passage.before, particles.positions)
            when = passage.instant(fraction)
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

    def crossing(
        self, before: Float[Array, "n 3"], after: Float[Array, "n 3"]
    ) -> tuple[Any, Any, Any]:
        """Who left, where on the surface, and how far along the straight way."""
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
        """The ends of a cylinder, by axis."""
        if self.half is None:
            return {}
        axis = 3 - sum(self.axes)
        center = jnp.asarray(self.center[axis], dtype)
        half = jnp.asarray(self.half, dtype)
        return {axis: (center - half, center + half)}

    def _offsets(self, positions: Array) -> list[Float[Array, " n"]]:
        """Coordinates along the round axes, from the center."""
        center = jnp.asarray(self.center, positions.dtype)
        return [positions[:, axis] - center[axis] for axis in self.axes]

    def _distance(self, positions: Array) -> Float[Array, " n"]:
        """Distances from the center or the axis."""
        offsets = self._offsets(positions)
        square = _inner(offsets, offsets)
        # The root has no slope at the center, where nobody asks for it.
        at = square == 0
        root = jnp.sqrt(jnp.where(at, jnp.ones_like(square), square))
        return jnp.where(at, square, root)

    def _shrink(self, positions: Array) -> tuple[Bool[Array, " n"], Array]:
        """Who is outside, and the factor that takes their offsets inside."""
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

    def _reach_round(self, before: Array, after: Array) -> Float[Array, " n"]:
        """How far along the way the round surface is met; 0 from outside it.

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
        outward = slope > 0
        far = -depth / (jnp.where(outward, slope, 0) + root)
        near = (root - slope) / square
        fraction = jnp.clip(jnp.where(outward, far, near), 0, 1)
        return jnp.where(inside, fraction, jnp.zeros_like(fraction))


def _inner(first: list[Array], second: list[Array]) -> Array:
    products = [x * y for x, y in zip(first, second, strict=True)]
    return sum(products[1:], start=products[0])


def check_condition(condition: str) -> Condition:
    """A rule of a surface by its name."""
    if condition not in get_args(Condition):
        known = ", ".join(get_args(Condition))
        raise ValueError(f"condition {condition!r}: choose one of {known}")
    return cast(Condition, condition)


def positive(name: str, value: Any) -> Float[np.ndarray, ""]:
    """A length as an array, if it is one."""
    length = np.asarray(value, np.float64)
    if length.ndim or not (np.isfinite(length) and length > 0):
        raise ValueError(f"{name} {value!r}: give one positive number")
    return length


def ball(center: Any, radius: Any, condition: str) -> RoundBoundary:
    """A ball; a center of two coordinates lies at z = 0."""
    place = np.zeros(3)
    given = np.asarray(center, np.float64)
    if given.shape not in ((2,), (3,)):
        raise ValueError(f"center of shape {given.shape}: give 2 or 3 coordinates")
    place[: given.size] = given
    rule = check_condition(condition)
    return RoundBoundary(place, positive("radius", radius), None, (0, 1, 2), rule)


def cylinder(
    axis: int, center: Any, radius: Any, height: Any, condition: str
) -> RoundBoundary:
    """A cylinder along an axis.

    The center is two coordinates across the axis, in the order x, y, z, or all three.
    """
    across = tuple(a for a in range(3) if a != axis)
    place = np.zeros(3)
    given = np.asarray(center, np.float64)
    if given.shape == (2,):
        place[list(across)] = given
    elif given.shape == (3,):
        place[:] = given
    else:
        raise ValueError(
            f"center of shape {given.shape}: give the two coordinates across "
            f"{AXES[axis]}, or three"
        )
    half = None if height is None else np.asarray(positive("height", height) / 2)
    rule = check_condition(condition)
    return RoundBoundary(place, positive("radius", radius), half, across, rule)
