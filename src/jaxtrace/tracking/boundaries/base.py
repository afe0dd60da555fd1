"""The interface of a boundary: a rule for particles at the end of every step."""

import abc
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig import compile_once
from jaxrig.compile_guard import TRACING_ERRORS
from jaxtrace.fields.analytic import HostField
from jaxtrace.fields.base import AbstractField, as_positions
from jaxtrace.tracking.particles import (
    Draw,
    Particles,
    Scalars,
    Vectors,
    move,
    noise_key,
    retire,
    seed_particles,
)
from jaxtrace.types import ParticleStatus


class StepContext(eqx.Module):
    """The step that has just been taken, as a boundary sees it."""

    before: Vectors
    start: Float[Array, ""]
    end: Float[Array, ""]
    draw: Draw
    field: AbstractField | None = None

    def time_at(self, fraction: Scalars) -> Scalars:
        """Return when a particle that moved straight was so far along its step."""
        dtype = fraction.dtype
        start, end = self.start.astype(dtype), self.end.astype(dtype)
        return start + fraction * (end - start)


def reach(before: Scalars, after: Scalars, face: Float[Array, "*n"]) -> Scalars:
    """Return the fraction of the way at which a face is met; 0 if it is not."""
    way = after - before
    still = way == 0
    part = (face - before) / jnp.where(still, jnp.ones_like(way), way)
    met = ~still & (part >= 0) & (part <= 1)
    return jnp.where(met, part, jnp.zeros_like(part))


class AbstractBoundary(eqx.Module):
    """A rule applied to particles after every step; called, it maps positions.

    `fill` is what is recorded for a particle that is gone.
    """

    # By identity: arrays have no hash, which `jax.jit(boundary)` asks for.
    __hash__ = object.__hash__

    @abc.abstractmethod
    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Return the particles after the rule."""

    def wrap(self, positions: Vectors) -> Vectors:
        """Map stage points into a repeating domain."""
        return positions

    @property
    def period(self) -> tuple[float, float, float]:
        """Return the periods of the domain; 0 along axes without one."""
        return (0.0, 0.0, 0.0)

    @property
    def recycles(self) -> bool:
        """Return whether slots are used again."""
        return False

    @property
    def fill(self) -> float:
        """Return what stands in the record for a particle that is gone."""
        return float("nan")

    def __call__(self, positions: Any) -> Vectors:
        """Apply the rule to positions (N, 3); those gone become `fill`.

        A position that is nowhere (NaN) stays as it is.
        """
        return _bounded(self, as_positions(positions))


# No budget: any boundary may be called with any number of positions.
@compile_once(max_traces=None)
def _bounded(boundary: AbstractBoundary, points: Array) -> Array:
    """Return positions after a step that went nowhere."""
    zero = jnp.zeros((), points.dtype)
    slots = jnp.arange(points.shape[0], dtype=np.int32)
    draw = Draw(noise_key(0), slots, jnp.zeros((), np.int32))
    context = StepContext(points, zero, zero, draw)
    after = boundary.apply(seed_particles(points), context)
    nowhere = jnp.any(jnp.isnan(points), 1, keepdims=True)
    gone = jnp.where(nowhere, points, jnp.asarray(boundary.fill, points.dtype))
    return jnp.where(after.alive[:, None], after.positions, gone)


class Open(AbstractBoundary):
    """No boundary at all."""

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Return the particles as they are."""
        return particles


def no_boundary() -> Open:
    """Return a boundary that leaves every particle alone."""
    return Open()


class UserFunction(eqx.Module):
    """A user's function of rows (n, 3), called on the host if it needs NumPy arrays."""

    function: Callable[[Any], Any]
    on_host: bool = eqx.field(static=True, default=False)

    def __call__(self, rows: Vectors, shape: tuple[int, ...]) -> Array:
        """Return its answer in this shape and in the dtype of the rows."""
        dtype = rows.dtype
        if not self.on_host:
            return jnp.asarray(self.function(rows), dtype).reshape(shape)

        def call(given: Any) -> np.ndarray:
            given = np.array(given)  # a copy: the function may write into it
            return np.asarray(self.function(given), dtype).reshape(shape)

        return jax.pure_callback(call, jax.ShapeDtypeStruct(shape, dtype), rows)


def calls_host(tree: Any) -> bool:
    """Return whether any function in a tree is called on the host."""
    found = lambda x: isinstance(x, HostField) or getattr(x, "on_host", False)
    return any(map(found, jax.tree.leaves(tree, is_leaf=found)))


class FunctionBoundary(AbstractBoundary):
    """A user's map of positions; a position it makes NaN is absorbed."""

    function: UserFunction

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Return the positions the function answers."""
        positions = particles.positions
        mapped = self.function(positions, positions.shape)
        gone = ~jnp.all(jnp.isfinite(mapped), 1)
        particles = retire(
            particles, gone, ParticleStatus.ABSORBED, positions, context.end
        )
        return move(particles, jnp.where(gone[:, None], positions, mapped))


def as_boundary(boundary: Any) -> AbstractBoundary:
    """Return a boundary from one of ours, None, or a function."""
    if boundary is None:
        return Open()
    if isinstance(boundary, AbstractBoundary):
        return boundary
    if not callable(boundary):
        raise ValueError(
            f"{boundary!r} is not a boundary: pass one of "
            "jaxtrace.tracking.boundary, None, or a function of positions (N, 3)"
        )
    return FunctionBoundary(probe(boundary)[0])


def probe(function: Callable[[Any], Any]) -> tuple[UserFunction, tuple[int, ...]]:
    """Return a function ready to be called, and what shape it makes of rows (2, 3).

    One that does is called on the host, which a warning says.
    """
    points = jax.ShapeDtypeStruct((2, 3), np.float32)
    try:
        return UserFunction(function), jax.eval_shape(function, points).shape
    except (*TRACING_ERRORS, TypeError):  # a TypeError: writing into the argument
        found = np.shape(function(np.zeros(points.shape, points.dtype)))
    name = getattr(function, "__qualname__", type(function).__name__)
    warnings.warn(
        f"{name} needs NumPy arrays and is called on the host after every step, which "
        "is slow; write it with jax.numpy to compile it",
        stacklevel=4,
    )
    return UserFunction(function, on_host=True), tuple(found)


class Composed(AbstractBoundary):
    """Boundaries applied from left to right."""

    parts: tuple[AbstractBoundary, ...]

    def apply(self, particles: Particles, context: StepContext) -> Particles:
        """Return each rule on what the one before it left."""
        for part in self.parts:
            after = part.apply(particles, context)
            context = _carry_on(part, context, particles, after)
            particles = after
        return particles

    def wrap(self, positions: Vectors) -> Vectors:
        """Return stage points of every repeating axis, moved into its range."""
        for part in self.parts:
            positions = part.wrap(positions)
        return positions

    @property
    def period(self) -> tuple[float, float, float]:
        """Return the lengths of the repeating axes of all parts."""
        periods = [part.period for part in self.parts] or [(0.0, 0.0, 0.0)]
        x, y, z = (max(lengths) for lengths in zip(*periods, strict=True))
        return x, y, z

    @property
    def recycles(self) -> bool:
        """Return whether any part uses slots again."""
        return any(part.recycles for part in self.parts)

    @property
    def fill(self) -> float:
        """Return the value of the first part that has one."""
        fills = [part.fill for part in self.parts]
        return next((fill for fill in fills if fill == fill), float("nan"))


def _carry_on(
    part: AbstractBoundary, context: StepContext, particles: Particles, after: Particles
) -> StepContext:
    """Return the step as the next boundary sees it: where the straight way began."""
    before = context.before
    wrapped = part.wrap(particles.positions)
    if wrapped is not particles.positions:
        before = before + (wrapped - particles.positions)
    if part.recycles:
        fresh = after.generation != particles.generation
        before = jnp.where(fresh[:, None], after.positions, before)
    return replace(context, before=before)


def compose_boundaries(*boundaries: Any) -> Composed:
    """Return boundaries one after the other, from boundaries, functions or None."""
    return Composed(tuple(as_boundary(boundary) for boundary in boundaries))
