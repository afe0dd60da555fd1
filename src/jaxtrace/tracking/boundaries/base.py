"""What a boundary is: a rule for particles at the end of every step."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxtrace.fields.base import AbstractField, as_positions
from jaxtrace.tracking.noise import Draw, dice_key
from jaxtrace.tracking.particles import Particles, seed_particles


class Passage(eqx.Module):
    """The step that has just been taken, as a boundary sees it."""

    before: Float[Array, "n 3"]
    start: Float[Array, ""]
    end: Float[Array, ""]
    draw: Draw
    field: AbstractField | None = None

    def instant(self, fraction: Float[Array, " n"]) -> Float[Array, " n"]:
        """When a particle that moved straight was so far along its step."""
        dtype = fraction.dtype
        start, end = self.start.astype(dtype), self.end.astype(dtype)
        return start + fraction * (end - start)


def reach(
    before: Float[Array, " n"], after: Float[Array, " n"], face: Float[Array, "*n"]
) -> Float[Array, " n"]:
    """How far along the way from before to after a face is met; 0 if it is not."""
    way = after - before
    still = way == 0
    part = (face - before) / jnp.where(still, jnp.ones_like(way), way)
    met = ~still & (part >= 0) & (part <= 1)
    return jnp.where(met, part, jnp.zeros_like(part))


class AbstractBoundary(eqx.Module):
    """A rule applied to particles after every step; called, it maps positions.

    `fill` is what is recorded for a particle that is gone.
    """

    @abc.abstractmethod
    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """The particles after the rule."""

    def wrap(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Stage points moved to where the field is sampled (repeating domains)."""
        return positions

    @property
    def period(self) -> tuple[float, float, float]:
        """The lengths after which the domain repeats; 0 along axes that do not."""
        return (0.0, 0.0, 0.0)

    @property
    def recycles(self) -> bool:
        """Whether slots are used again."""
        return False

    @property
    def fill(self) -> float:
        """What stands in the record for a particle that is gone."""
        return float("nan")

    def __call__(self, positions: Any) -> Float[Array, "n 3"]:
        """Positions (N, 3) after the rule, `fill` where a particle would be gone.

        A position that is nowhere (NaN) stays as it is.
        """
        return _bounded(self, as_positions(positions))


@compile_once(max_traces=None)
def _bounded(boundary: AbstractBoundary, points: Array) -> Array:
    """Positions after a step that went nowhere."""
    zero = jnp.zeros((), points.dtype)
    slots = jnp.arange(points.shape[0], dtype=np.int32)
    draw = Draw(dice_key(0), slots, jnp.zeros((), np.int32))
    passage = Passage(points, zero, zero, draw)
    after = boundary.apply(seed_particles(points, ()), passage)
    nowhere = jnp.any(jnp.isnan(points), 1, keepdims=True)
    gone = jnp.where(nowhere, points, jnp.asarray(boundary.fill, points.dtype))
    return jnp.where(after.alive[:, None], after.positions, gone)


class Open(AbstractBoundary):
    """No boundary at all."""

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """The particles as they are."""
        return particles
