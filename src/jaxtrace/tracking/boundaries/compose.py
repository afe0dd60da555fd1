"""Several boundaries as one: one after the other, or one for each axis."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxtrace.bounds import AXES
from jaxtrace.tracking.boundaries.base import AbstractBoundary, Passage
from jaxtrace.tracking.boundaries.function import as_boundary
from jaxtrace.tracking.particles import Particles


class Sequence(AbstractBoundary):
    """Boundaries applied from left to right."""

    parts: tuple[AbstractBoundary, ...]

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """Each rule on what the one before it left."""
        for part in self.parts:
            after = part.apply(particles, passage)
            passage = _carry_on(part, passage, particles, after)
            particles = after
        return particles

    def wrap(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Stage points of every repeating axis, moved into its range."""
        for part in self.parts:
            positions = part.wrap(positions)
        return positions

    @property
    def period(self) -> tuple[float, float, float]:
        """The lengths of the repeating axes of all parts."""
        return _longest(self.parts)

    @property
    def recycles(self) -> bool:
        """Whether any part uses slots again."""
        return any(part.recycles for part in self.parts)

    @property
    def fill(self) -> float:
        """The value of the first part that has one."""
        return _first_fill(self.parts)


def _carry_on(
    part: AbstractBoundary, passage: Passage, particles: Particles, after: Particles
) -> Passage:
    """The step as the next boundary sees it: where the straight way began."""
    before = passage.before
    wrapped = part.wrap(particles.positions)
    if wrapped is not particles.positions:
        before = before + (wrapped - particles.positions)
    if part.recycles:
        fresh = after.generation != particles.generation
        before = jnp.where(fresh[:, None], after.positions, before)
    return eqx.tree_at(lambda p: p.before, passage, before)


class CompositeBoundaryCondition(AbstractBoundary):
    """One boundary for each axis; each moves particles along its own axis only.

    Boundaries, functions of positions, or None. A particle is gone if any of the three
    takes it, the first of them saying how.
    """

    x_condition: AbstractBoundary = eqx.field(converter=as_boundary, default=None)
    y_condition: AbstractBoundary = eqx.field(converter=as_boundary, default=None)
    z_condition: AbstractBoundary = eqx.field(converter=as_boundary, default=None)

    def __check_init__(self):
        for axis, part in zip(AXES, self._parts(), strict=True):
            if part.recycles:
                raise ValueError(
                    f"{axis}_condition starts new particles, which takes all three "
                    "axes: use compose_boundary_conditions"
                )

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """The coordinates each boundary answers for its own axis."""
        found = [part.apply(particles, passage) for part in self._parts()]
        columns = [one.positions[:, axis] for axis, one in enumerate(found)]
        alive, status, when = found[-1].alive, found[-1].status, found[-1].exit_time
        for one in found[-2::-1]:
            alive = alive & one.alive
            left = one.alive != particles.alive
            status = jnp.where(left, one.status, status)
            when = jnp.where(left, one.exit_time, when)
        return eqx.tree_at(
            lambda p: (p.positions, p.alive, p.status, p.exit_time),
            particles,
            (jnp.stack(columns, 1), alive, status, when),
        )

    def wrap(self, positions: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """Stage points, each coordinate moved by the boundary of its axis."""
        wrapped = [part.wrap(positions) for part in self._parts()]
        if all(one is positions for one in wrapped):
            return positions
        return jnp.stack([one[:, axis] for axis, one in enumerate(wrapped)], 1)

    @property
    def period(self) -> tuple[float, float, float]:
        """The lengths of the repeating axes."""
        x, y, z = (part.period[axis] for axis, part in enumerate(self._parts()))
        return x, y, z

    @property
    def fill(self) -> float:
        """The value of the first part that has one."""
        return _first_fill(self._parts())

    def _parts(self) -> tuple[AbstractBoundary, ...]:
        return self.x_condition, self.y_condition, self.z_condition


def compose_boundary_conditions(*boundaries: Any) -> Sequence:
    """Boundaries one after the other, from boundaries, functions or None."""
    return Sequence(tuple(as_boundary(boundary) for boundary in boundaries))


def _longest(parts: tuple[AbstractBoundary, ...]) -> tuple[float, float, float]:
    periods = [part.period for part in parts] or [(0.0, 0.0, 0.0)]
    x, y, z = (max(lengths) for lengths in zip(*periods, strict=True))
    return x, y, z


def _first_fill(parts: tuple[AbstractBoundary, ...]) -> float:
    fills = [part.fill for part in parts]
    return next((fill for fill in fills if fill == fill), float("nan"))
