"""Domains given by a signed distance: one rule inside them, another outside."""

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.tracking.boundaries.base import AbstractBoundary, Passage
from jaxtrace.tracking.boundaries.box import BoxBoundary
from jaxtrace.tracking.boundaries.function import probe
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus

Outside = Literal["absorbing", "reflective", "clamping", "periodic", "open"]


class DistanceBoundary(AbstractBoundary):
    """A domain where a signed distance is at most 0, in a box.

    Inside, the rule of the box holds at its faces. Outside, the rule is that of the
    surface (absorbing, mirroring, stopping), or periodic: the particle is wrapped into
    the box. A particle that a mirror or a stop leaves outside stays where it crossed.
    """

    box: BoxBoundary
    function: Callable[[Any], Any]
    outside: Outside = eqx.field(static=True)
    on_host: bool = eqx.field(static=True)

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """The inside rule for those inside, the outside rule for the others."""
        out = self.distance(particles.positions) > 0
        bounded = self.box.apply(particles, passage)
        inner = jax.tree.map(
            lambda new, old: jnp.where(_column(out, new), old, new), bounded, particles
        )
        if self.outside == "open":
            return inner
        if self.outside == "periodic":
            wrapped = self.box.wrap(inner.positions)
            return move(inner, jnp.where(out[:, None], wrapped, inner.positions))
        there, fraction = jax.lax.cond(
            jnp.any(out & particles.alive),
            lambda before, after: self.crossing(before, after),
            lambda before, after: (after, jnp.ones_like(after[:, 0])),
            passage.before,
            particles.positions,
        )
        if self.outside == "absorbing":
            when = passage.instant(fraction)
            return retire(inner, out, ParticleStatus.ABSORBED, there, when)
        moved = self._send_back(particles.positions, there)
        return move(inner, jnp.where(out[:, None], moved, inner.positions))

    def wrap(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Stage points of repeating axes, moved into the box."""
        return self.box.wrap(positions)

    @property
    def period(self) -> tuple[float, float, float]:
        """The widths of the repeating axes."""
        return self.box.period

    def distance(self, positions: Float[Array, "n 3"]) -> Float[Array, " n"]:
        """The signed distances the function answers."""
        shape = jax.ShapeDtypeStruct(positions.shape[:1], positions.dtype)
        if not self.on_host:
            found = jnp.asarray(self.function(positions), positions.dtype)
            return found.reshape(shape.shape)

        def call(points: Any) -> np.ndarray:
            found = np.asarray(self.function(np.array(points)), positions.dtype)
            return found.reshape(shape.shape)

        return jax.pure_callback(call, shape, positions)

    def crossing(
        self, before: Float[Array, "n 3"], after: Float[Array, "n 3"]
    ) -> tuple[Float[Array, "n 3"], Float[Array, " n"]]:
        """The last point inside on the straight way, and how far along it is."""

        def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) / 2
            inside = self.distance(before + middle[:, None] * (after - before)) <= 0
            return jnp.where(inside, middle, low), jnp.where(inside, high, middle)

        zero = jnp.zeros_like(after[:, 0])
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


def _column(mask: Array, like: Array) -> Array:
    return mask.reshape(-1, *[1] * (like.ndim - 1))


def distance_domain(
    box: BoxBoundary, function: Callable[[Any], Any], outside: str
) -> DistanceBoundary:
    """A domain by its signed distance; a NumPy function is called on the host."""
    if outside not in get_args(Outside):
        known = ", ".join(get_args(Outside))
        raise ValueError(f"outside_condition {outside!r}: choose one of {known}")
    on_host, shape = probe(function)
    if shape not in ((2,), (2, 1)):
        raise ValueError(
            f"distance_func answered shape {shape} for positions (2, 3): return one "
            "signed distance per position, (N,)"
        )
    if on_host and outside in ("reflective", "clamping"):
        raise TypeError(
            f"outside_condition {outside!r} needs the gradient of distance_func: write "
            "it with jax.numpy"
        )
    return DistanceBoundary(box, function, cast(Outside, outside), on_host)
