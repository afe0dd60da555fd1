"""What bounds the flow itself: the walls of its mesh, and the shore of its land.

Walls are a boundary that users choose; the rule at the shore belongs to the field.
"""

from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.locate import Crossing
from jaxtrace.sphere import TURN
from jaxtrace.tracking.boundaries.base import AbstractBoundary, StepContext
from jaxtrace.tracking.particles import Flags, Particles, Vectors, move, retire
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

    start: Vectors
    end: Vectors
    pending: Flags
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
            jnp.any(course.pending), lambda c: self._turn(field, c), lambda c: c, course
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


def _inside(crossing: Crossing, end: Vectors) -> Vectors:
    """Return crossing points, moved inside by a few roundings."""
    size = jnp.maximum(jnp.abs(crossing.point), jnp.abs(end - crossing.point))
    size = jax.lax.stop_gradient(size)
    room = ROUNDINGS * jnp.finfo(end.dtype).eps * jnp.max(size, 1, keepdims=True)
    return crossing.point + room * crossing.normal


def wall_boundary(condition: str = "reflect") -> WallBoundary:
    """Return the walls of the field's own mesh: reflect, slide, stick or absorb."""
    check_choice("condition", condition, get_args(Condition))
    return WallBoundary(cast(Condition, condition))


CHECKED = 0.5  # of a step: land wider than half of it is noticed
HALVINGS = 16  # of a step, to find where a mirror stands

Positions = Vectors


def reach_shore(
    field: AbstractField, particles: Particles, before: Positions, end: Array
) -> Particles:
    """Return the particles after the rule for land: who was beached stays there."""
    shore = field.shore
    if shore == "free" or field.on_land(particles.positions) is None:
        return particles
    # Settled: what follows would be fused into the step, and change its rounding.
    settled = jax.lax.optimization_barrier(particles.positions)
    particles = replace(particles, positions=settled)
    after, land = settled, _is_land(field, settled, particles.cell_hint)
    way = after - before
    if field.sphere is not None:
        way = way.at[:, 0].set(way[:, 0] - TURN * jnp.round(way[:, 0] / TURN))
    where = after
    # On a mesh each check would be a search: there a step is as long as a cell at most.
    if not jax.tree.leaves(particles.cell_hint):
        middle = before + CHECKED * way
        dry = _is_land(field, middle)
        land, where = land | dry, jnp.where(dry[:, None], middle, where)
    if shore == "absorb":
        return retire(particles, land, ParticleStatus.BEACHED, where, end)
    if shore == "beach":
        return _beach(particles, land, before, where, end)
    if shore == "slide":
        before = _slide(field, before, way)
    elif shore == "reflect":
        before = _reflect(field, before, way)
    return move(particles, jnp.where(land[:, None], before, after))


def _is_land(
    field: AbstractField, positions: Positions, cell_hint: Any = None
) -> Flags:
    found = field.on_land(positions, cell_hint)
    assert found is not None  # asked only of fields with land
    return found


def _beach(
    particles: Particles, land: Flags, before: Positions, where: Positions, end: Array
) -> Particles:
    code = jnp.asarray(ParticleStatus.BEACHED, np.int8)
    there = particles.status == code
    fresh = land & ~there & particles.alive
    stays = jnp.where(there[:, None], before, particles.positions)
    beached = replace(
        particles,
        status=jnp.where(fresh, code, particles.status),
        exit_time=jnp.where(fresh, end, particles.exit_time),
    )
    return move(beached, jnp.where(fresh[:, None], where, stays))


def _slide(field: AbstractField, before: Positions, way: Positions) -> Positions:
    """Return where particles get along the shore: over the bottom, or by one axis."""
    if field.sphere is not None:
        meters = jnp.abs(way) * field.sphere.scale(before)
    else:
        meters = jnp.abs(way)
    wider = meters[:, 0] >= meters[:, 1]
    east, north = (_only(before, way, axes) for axes in ((0,), (1,)))
    pick = wider[:, None]
    best = before
    tries = (
        jnp.where(pick, north, east),
        jnp.where(pick, east, north),
        _only(before, way, (0, 1)),
    )
    for place in tries:
        best = jnp.where(_is_land(field, place)[:, None], best, place)
    return best


def _only(before: Positions, way: Positions, axes: tuple[int, ...]) -> Positions:
    """Return where a step along some of the axes ends."""
    kept = np.isin(np.arange(3), axes)
    return jnp.where(kept[None], before + way, before)


def _reflect(field: AbstractField, before: Positions, way: Positions) -> Positions:
    """Return steps mirrored at the shore, axis by axis; none where that is land too."""
    there = before
    for axis in range(3):
        met = _is_land(field, _only(before, way, (axis,)))

        def halve(_: Any, ends: tuple[Array, Array], axis: int = axis):
            near, far = ends
            middle = (near + far) / 2
            dry = _is_land(field, _only(before, middle[:, None] * way, (axis,)))
            return jnp.where(dry, near, middle), jnp.where(dry, middle, far)

        ends = jnp.zeros_like(way[:, 0]), jnp.ones_like(way[:, 0])
        near, _ = jax.lax.fori_loop(0, HALVINGS, halve, ends)
        share = jnp.where(met, 2 * near - 1, 1)
        there = there.at[:, axis].add(share * way[:, axis])
    return jnp.where(_is_land(field, there)[:, None], before, there)
