"""Variables along a path: scalars and vectors of any field, where particles are."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxtrace.fields.analytic import FunctionField
from jaxtrace.fields.base import AbstractField, Field
from jaxtrace.fields.clock import Instant
from jaxtrace.fields.streamed import StreamedField

COMPONENTS = "xyz"
LEAST_SEA = 1e-4  # of the weights: less is the land node itself, but for rounding


class Variable(eqx.Module):
    """A scalar or a vector that is sampled along paths; NaN where it is unknown.

    The second component of a `masked` scalar is 1 at sea and 0 on land, where the
    scalar itself is 0. `ahead` is by how much its clock is ahead of that of the flow,
    `units` are those that its file states.
    """

    field: Any  # a field; inside compiled code a frozen one
    scalar: bool = eqx.field(static=True, default=False)
    masked: bool = eqx.field(static=True, default=False)
    ahead: float = eqx.field(static=True, default=0.0)
    units: str = eqx.field(static=True, default="")

    @property
    def frozen(self) -> "Variable":
        """Return the variable as compiled code takes it."""
        return eqx.tree_at(lambda v: v.field, self, self.field.frozen)

    def instant(self, time: Any) -> Instant:
        """Return an instant of the run as the field of this variable sees it."""
        return self.field.frozen.instant(time - self.ahead)

    def at(
        self, positions: Float[Array, "n 3"], instant: Instant
    ) -> Float[Array, "..."]:
        """Return values at positions: (n,) of a scalar, (n, 3) of a vector."""
        field = self.field
        found, hint = field.velocity(positions, instant, field.start(positions))
        known = field.inside(positions, hint)
        if not self.scalar:
            return jnp.where(known[:, None], found, jnp.nan)
        value = found[:, 0]
        if self.masked:
            # Zero on land in both: what is left are the weights of sea nodes, and
            # their sum renormalizes them.
            sea = found[:, 1]
            known = known & (sea > LEAST_SEA)
            value = value / jnp.where(known, sea, 1)
        return jnp.where(known, value, jnp.nan)

    def __call__(self, positions: Float[Array, "n 3"], time: Array) -> Array:
        """Return values at positions and a traced time."""
        return self.at(positions, self.field.instant(time - self.ahead))

    def columns(self, name: str) -> list[str]:
        """Return what is recorded: a scalar, or each component of a vector."""
        return [name] if self.scalar else [f"{name}_{axis}" for axis in COMPONENTS]


def as_variable(value: Any, name: str) -> Variable:
    """Return a variable of a field, or of a function `f(positions, t)` of JAX arrays.

    A function returns (N,) for a scalar, (N, 3) for a vector.
    """
    if isinstance(value, Variable):
        return value
    if isinstance(value, AbstractField | Field | StreamedField):
        return Variable(value)
    if not callable(value):
        raise TypeError(
            f"sample {name!r} is {type(value).__name__}: give a field, a variable of "
            "load_variable(files, name), or a function f(positions, t) -> (N,)"
        )
    points = jax.ShapeDtypeStruct((2, 3), np.float32)
    shape = jax.eval_shape(value, points, jax.ShapeDtypeStruct((), np.float32)).shape
    if shape == (2, 3):
        return Variable(FunctionField(value))
    if shape != (2,):
        raise ValueError(
            f"sample {name!r} returned shape {shape} for 2 positions: return (2,) for "
            "a scalar, (2, 3) for a vector"
        )
    return Variable(FunctionField(value, scalar=True), scalar=True)
