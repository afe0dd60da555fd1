"""The walls of the mesh that a field lives on: mirrors, slides, glue or sinks."""

from typing import Any, Literal, NamedTuple, Protocol, cast, get_args, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.fields.crossing import Crossing
from jaxtrace.tracking.boundaries.base import AbstractBoundary, Passage
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus

Condition = Literal["reflect", "slide", "stick", "absorb"]
BOUNCES = 8  # walls a particle may meet in one step before it stays at the last
ROUNDINGS = 16  # how far inside a wall a particle is put, in roundings of its place


@runtime_checkable
class Traced(Protocol):
    """A field that knows where straight ways leave its mesh."""

    def trace(self, start: Any, end: Any, memory: Any) -> Crossing:
        """The first exit of each way."""
        ...


class _Course(NamedTuple):
    """What is left of each particle's way, and whether it is still to be looked at."""

    start: Float[Array, "n 3"]
    end: Float[Array, "n 3"]
    pending: Bool[Array, " n"]
    memory: Any


class WallBoundary(AbstractBoundary):
    """What happens to particles whose straight way leaves the mesh.

    The rest of a mirrored or sliding way may meet the next wall. Particles that stick
    stay in the record, alive and with the status STUCK, and move no more.
    """

    condition: Condition = eqx.field(static=True)

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """Follow every particle to the first wall on its way and apply the rule."""
        field = passage.field
        if not isinstance(field, Traced):
            kind = "no field" if field is None else type(field).__name__
            raise ValueError(
                f"wall_boundary needs a field on a mesh, and there is {kind}: bound "
                "the particles by a box or a shape"
            )
        if self.condition == "absorb":
            return _absorb(field, particles, passage)
        if self.condition == "stick":
            return _stick(field, particles, passage)
        course = _Course(
            passage.before, particles.positions, particles.alive, particles.memory
        )
        course, _ = jax.lax.scan(
            lambda c, _: (self._meet(field, c), None), course, length=BOUNCES
        )
        moved = move(
            particles, jnp.where(course.pending[:, None], course.start, course.end)
        )
        return eqx.tree_at(lambda p: p.memory, moved, course.memory)

    def _meet(self, field: Traced, course: _Course) -> _Course:
        """Turn those who meet a wall; most steps meet none, which costs one look."""
        return jax.lax.cond(
            jnp.any(course.pending),
            lambda c: self._turn(field, c),
            lambda c: c,
            course,
        )

    def _turn(self, field: Traced, course: _Course) -> _Course:
        pending = course.pending[:, None]
        start = jnp.where(pending, course.start, course.end)
        crossing = field.trace(start, course.end, course.memory)
        rest = course.end - crossing.point
        into = jnp.sum(rest * crossing.normal, 1, keepdims=True) * crossing.normal
        onward = rest - (2 if self.condition == "reflect" else 1) * into
        hit = crossing.hit & course.pending
        inner = _inside(crossing, course.end)
        return _Course(
            jnp.where(hit[:, None], inner, course.start),
            jnp.where(hit[:, None], inner + onward, course.end),
            hit,
            crossing.memory,
        )


def _absorb(field: Traced, particles: Particles, passage: Passage) -> Particles:
    crossing = field.trace(passage.before, particles.positions, particles.memory)
    when = passage.instant(crossing.fraction)
    status = ParticleStatus.ABSORBED
    return retire(particles, crossing.hit, status, crossing.point, when)


def _stick(field: Traced, particles: Particles, passage: Passage) -> Particles:
    glue = jnp.asarray(ParticleStatus.STUCK, np.int8)
    stuck = particles.status == glue
    end = jnp.where(stuck[:, None], passage.before, particles.positions)
    crossing = field.trace(passage.before, end, particles.memory)
    caught = crossing.hit & ~stuck & particles.alive
    held = move(particles, jnp.where(caught[:, None], _inside(crossing, end), end))
    status = jnp.where(caught, glue, particles.status)
    both = (status, crossing.memory)
    return eqx.tree_at(lambda p: (p.status, p.memory), held, both)


def _inside(crossing: Crossing, end: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """Crossing points, moved into the mesh by a few roundings of the coordinates."""
    size = jnp.maximum(jnp.abs(crossing.point), jnp.abs(end - crossing.point))
    size = jax.lax.stop_gradient(size)
    room = ROUNDINGS * jnp.finfo(end.dtype).eps * jnp.max(size, 1, keepdims=True)
    return crossing.point + room * crossing.normal


def wall_boundary(condition: str = "reflect") -> WallBoundary:
    """The walls of the field's own mesh: reflect, slide, stick or absorb."""
    if condition not in get_args(Condition):
        known = ", ".join(get_args(Condition))
        raise ValueError(f"condition {condition!r}: choose one of {known}")
    return WallBoundary(cast(Condition, condition))
