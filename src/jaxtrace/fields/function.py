"""Any function of positions and time as a field."""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig.tracing import TRACING_ERRORS
from jaxtrace.fields.analytic import AnalyticFlow
from jaxtrace.fields.base import AbstractField, Memory, Sampled
from jaxtrace.fields.clock import Moment

Velocity = Callable[[Any, Any], Any]


class FunctionField(AnalyticFlow):
    """A JAX function `f(positions, t) -> (N, 2 or 3)` as a field."""

    function: Velocity = eqx.field(static=True)

    def formula(self, x, y, z, t):
        """Not used: the function gives all components at once."""
        raise NotImplementedError

    def velocity(
        self, positions: Float[Array, "n 3"], moment: Moment, memory: Memory
    ) -> tuple[Float[Array, "n 3"], Memory]:
        """What the function answers."""
        time = jnp.asarray(moment.time, positions.dtype)
        found = jnp.asarray(self.function(positions, time), positions.dtype)
        return _three(found, positions.shape), memory


class HostField(FunctionField):
    """A function of NumPy arrays, called on the host at every stage."""

    def velocity(
        self, positions: Float[Array, "n 3"], moment: Moment, memory: Memory
    ) -> tuple[Float[Array, "n 3"], Memory]:
        """What the function answers, outside the compiled program."""
        shape = jax.ShapeDtypeStruct(positions.shape, positions.dtype)

        def call(points: Any, time: Any) -> np.ndarray:
            found = np.asarray(self.function(np.asarray(points), np.asarray(time)))
            return np.asarray(_three(found, points.shape), positions.dtype)

        time = jnp.asarray(moment.time, positions.dtype)
        return jax.pure_callback(call, shape, positions, time), memory


def _three(found: Any, shape: tuple[int, ...]) -> Any:
    """Velocities with three components, one row per position."""
    if found.ndim != 2 or found.shape[0] != shape[0] or found.shape[1] not in (2, 3):
        raise ValueError(
            f"a field function answered velocities of shape {tuple(found.shape)} for "
            f"{shape[0]} positions: return ({shape[0]}, 3)"
        )
    if found.shape[1] == 3:
        return found
    xp: Any = np if isinstance(found, np.ndarray) else jnp
    return xp.concatenate([found, xp.zeros_like(found[:, :1])], 1)


def as_field(field: Any) -> AbstractField:
    """Whatever answers velocities, as a frozen field.

    Tried in this order: our own fields, `sample_at_positions(positions, t)`,
    `sample(positions)`, and any function of positions and time.
    """
    if isinstance(field, Sampled):
        return field.frozen
    if hasattr(field, "sample_at_positions"):
        return function_field(field.sample_at_positions)
    if hasattr(field, "sample"):
        return function_field(_Steady(field))
    if callable(field):
        return function_field(field)
    raise TypeError(
        f"{type(field).__name__} is no field: give one of jaxtrace.fields, an object "
        "with sample_at_positions(positions, t) or sample(positions), or a function "
        "f(positions, t)"
    )


def function_field(function: Velocity) -> FunctionField:
    """A function as a field; one that needs NumPy arrays is called on the host."""
    points = jax.ShapeDtypeStruct((2, 3), np.float32)
    time = jax.ShapeDtypeStruct((), np.float32)
    try:
        jax.eval_shape(function, points, time)
    except TRACING_ERRORS:
        name = getattr(function, "__qualname__", type(function).__name__)
        warnings.warn(
            f"{name} needs NumPy arrays, so it is called on the host at every stage; "
            "write it with jax.numpy to have it compiled",
            stacklevel=3,
        )
        return HostField(function)
    return FunctionField(function)


class _Steady:
    """The `sample` of a steady field as a function of positions and time."""

    def __init__(self, field: Any):
        self.field = field

    def __call__(self, positions: Any, t: Any) -> Any:
        del t
        return self.field.sample(positions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Steady) and other.field is self.field

    def __hash__(self) -> int:
        return hash(("steady", id(self.field)))
