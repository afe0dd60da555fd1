"""Walls of the field's own mesh: particles reflect, slide, stick or are absorbed."""

from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.fields.locate import Crossing
from jaxtrace.tracking.boundaries.base import AbstractBoundary, StepContext
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus, check_choice

Condition = Literal["reflect", "slide", "stick", "absorb"]
BOUNCES = 8  # walls a particle may meet in one step before it stays at the last
ROUNDINGS = 16  # how far inside a wall a particle is put, in roundings of its place


@runtime_checkable
class Traced(Protocol):
    """A field that knows where straight ways leave its mesh."""

    def first_exit(self, start: Any, end: Any, cell_hint: Any) -> Crossing:
        """Return the first exit of each way."""
        ...


class _Course(NamedTuple):
    """What is left of each particle's way, and whether it is still to be looked at."""

    start: Float[Array, "n 3"]
    end: Float[Array, "n 3"]
    pending: Bool[Array, " n"]
    cell_hint: Any


class WallBoundary(AbstractBoundary):
    """What happens to particles whose straight way leaves the mesh.

    The rest of a mirrored or sliding way may meet the next wall. Particles that stick
    stay in the record, alive and with the status STUCK, and move no more.
    """

    condition: Condition = eqx.field(static=True)

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Follow every particle to the first wall on its way and apply the rule."""
        field = context.field
        if not isinstance(field, Traced):
            kind = "no field" if field is None else type(field).__name__
            raise ValueError(
                f"wall_boundary needs a field on a mesh, and there is {kind}: bound "
                "the particles by a box or a shape"
            )
        if self.condition == "absorb":
            return _absorb(field, particles, context)
        if self.condition == "stick":
            return _stick(field, particles, context)
        course = _Course(
            context.before, particles.positions, particles.alive, particles.cell_hint
        )
        # A fixed number of bounces keeps the reverse mode possible.
        course, _ = jax.lax.scan(
            lambda c, _: (self._meet(field, c), None), course, length=BOUNCES
        )
        moved = move(
            particles, jnp.where(course.pending[:, None], course.start, course.end)
        )
        return replace(moved, cell_hint=course.cell_hint)

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
        crossing = field.first_exit(start, course.end, course.cell_hint)
        rest = course.end - crossing.point
        into = jnp.sum(rest * crossing.normal, 1, keepdims=True) * crossing.normal
        onward = rest - (2 if self.condition == "reflect" else 1) * into
        hit = crossing.hit & course.pending
        inner = _inside(crossing, course.end)
        return _Course(
            jnp.where(hit[:, None], inner, course.start),
            jnp.where(hit[:, None], inner + onward, course.end),
            hit,
            crossing.cell_hint,
        )


def _absorb(field: Traced, particles: Particles, context: StepContext) -> Particles:
    crossing = field.first_exit(
        context.before, particles.positions, particles.cell_hint
    )
    when = context.time_at(crossing.fraction)
    status = ParticleStatus.ABSORBED
    return retire(particles, crossing.hit, status, crossing.point, when)


def _stick(field: Traced, particles: Particles, context: StepContext) -> Particles:
    glue = jnp.asarray(ParticleStatus.STUCK, np.int8)
    stuck = particles.status == glue
    end = jnp.where(stuck[:, None], context.before, particles.positions)
    crossing = field.first_exit(context.before, end, particles.cell_hint)
    caught = crossing.hit & ~stuck & particles.alive
    held = move(particles, jnp.where(caught[:, None], _inside(crossing, end), end))
    status = jnp.where(caught, glue, particles.status)
    return replace(held, status=status, cell_hint=crossing.cell_hint)


def _inside(crossing: Crossing, end: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """Return crossing points, moved inside by a few roundings."""
    size = jnp.maximum(jnp.abs(crossing.point), jnp.abs(end - crossing.point))
    size = jax.lax.stop_gradient(size)
    room = ROUNDINGS * jnp.finfo(end.dtype).eps * jnp.max(size, 1, keepdims=True)
    return crossing.point + room * crossing.normal


def wall_boundary(condition: str = "reflect") -> WallBoundary:
    """Return the walls of the field's own mesh: reflect, slide, stick or absorb."""
    check_choice("condition", condition, get_args(Condition))
    return WallBoundary(cast(Condition, condition))
