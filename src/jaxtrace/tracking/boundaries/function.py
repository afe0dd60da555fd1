"""Any function of positions as a boundary."""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxrig.tracing import TRACING_ERRORS
from jaxtrace.tracking.boundaries.base import AbstractBoundary, Open, Passage
from jaxtrace.tracking.particles import Particles, move, retire
from jaxtrace.types import ParticleStatus


class FunctionBoundary(AbstractBoundary):
    """A user's map of positions; a position it makes NaN is absorbed."""

    function: Callable[[Any], Any] = eqx.field(static=True)
    on_host: bool = eqx.field(static=True, default=False)

    def apply(self, particles: Particles, passage: Passage) -> Particles:
        """The positions the function answers."""
        positions = particles.positions
        if self.on_host:
            shape = jax.ShapeDtypeStruct(positions.shape, positions.dtype)
            mapped = jax.pure_callback(self._call, shape, positions)
        else:
            mapped = jnp.asarray(self.function(positions), positions.dtype)
        gone = ~jnp.all(jnp.isfinite(mapped), 1)
        particles = retire(
            particles, gone, ParticleStatus.ABSORBED, positions, passage.end
        )
        return move(particles, jnp.where(gone[:, None], positions, mapped))

    def _call(self, positions: Any) -> np.ndarray:
        given = np.array(positions)  # a copy: the function may write into it
        return np.asarray(self.function(given), positions.dtype)


def as_boundary(boundary: Any) -> AbstractBoundary:
    """Whatever bounds particles as a boundary: ours, None, or a function."""
    if boundary is None:
        return Open()
    if isinstance(boundary, AbstractBoundary):
        return boundary
    if not callable(boundary):
        raise ValueError(
            f"boundary {boundary!r} is no boundary: give one of "
            "jaxtrace.tracking.boundary, None, or a function of positions (N, 3)"
        )
    on_host, _ = probe(boundary)
    return FunctionBoundary(boundary, on_host)


def probe(function: Callable[[Any], Any]) -> tuple[bool, tuple[int, ...]]:
    """Whether a function needs NumPy arrays, and what shape it makes of (2, 3).

    One that does is called on the host, which a warning says.
    """
    points = jax.ShapeDtypeStruct((2, 3), np.float32)
    try:
        return False, tuple(np.shape(jax.eval_shape(function, points)))
    except (*TRACING_ERRORS, TypeError):  # a TypeError: writing into the argument
        found = np.shape(function(np.zeros(points.shape, points.dtype)))
    name = getattr(function, "__qualname__", type(function).__name__)
    warnings.warn(
        f"{name} needs NumPy arrays, so it is called on the host after every step; "
        "write it with jax.numpy to have it compiled",
        stacklevel=4,
    )
    return True, tuple(found)
