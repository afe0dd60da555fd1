"""Mechanisms of named variables: linear, constant, shifted, and any JAX function.

A mechanism is called with the values of the causes by name and a PRNG key, and gives
one value. Numbers are arrays, so that models that differ in numbers alone share one
compiled program.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.named.frozen_map import as_float

Values = Mapping[str, Array]
Mechanism = Callable[[dict[str, Array], PRNGKeyArray], Any]


class LinearMechanism(eqx.Module):
    """intercept + sum of coefficient * cause + noise_scale * N(0, 1), then clipped."""

    parents: tuple[str, ...] = eqx.field(static=True)
    coefficients: Float[Array, "*batch parents"]
    intercept: Float[Array, "*batch"]
    noise_scale: Float[Array, "*batch"]
    output_bounds: Float[Array, "*batch 2"] | None = None

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Float[Array, ""]:
        """The value that follows from the causes and the noise of this key."""
        mean = self.intercept
        for place, name in enumerate(self.parents):
            mean = mean + self.coefficients[place] * parents[name]
        value = mean + self.noise_scale * jax.random.normal(key)
        if self.output_bounds is None:
            return value
        return jnp.clip(value, self.output_bounds[0], self.output_bounds[1])


class ConstantMechanism(eqx.Module):
    """Always the same value: what a perfect intervention leaves of a mechanism."""

    value: Float[Array, "*batch"]

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Float[Array, ""]:
        """The constant."""
        return self.value


class ShiftedMechanism(eqx.Module):
    """Another mechanism moved by a constant: what a shift intervention makes of it."""

    inner: Any
    shift: Float[Array, "*batch"]

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Float[Array, ""]:
        """The mechanism's value, moved."""
        return self.inner(parents, key) + self.shift


class Formula(eqx.Module):
    """A plain function as a mechanism; it is part of the compiled program."""

    function: Mechanism = eqx.field(static=True)

    def __call__(self, parents: Values, key: PRNGKeyArray) -> Any:
        """The function's value."""
        return self.function(dict(parents), key)


def as_mechanism(function: Any, name: str) -> Any:
    """A mechanism that is a pytree of arrays; plain functions are wrapped."""
    if not callable(function):
        raise ValueError(
            f"the mechanism of {name!r} is {function!r}: give a function of "
            "(values of the causes by name, key)"
        )
    return function if isinstance(function, eqx.Module) else Formula(function)


def create_linear_mechanism(
    parents: Sequence[str],
    coefficients: Mapping[str, Any],
    intercept: Any = 0.0,
    noise_scale: Any = 1.0,
    output_bounds: tuple[Any, Any] | None = None,
) -> LinearMechanism:
    """intercept + sum of coefficients * causes + noise_scale * N(0, 1).

    With `output_bounds` (low, high) the value is clipped to them.
    """
    missing = sorted(set(parents) - set(coefficients))
    extra = sorted(set(coefficients) - set(parents))
    if missing:
        raise ValueError(f"the cause {missing[0]!r} has no coefficient: give one")
    if extra:
        raise ValueError(
            f"{extra[0]!r} has a coefficient and is no cause: give coefficients for "
            f"exactly the parents ({', '.join(parents)})"
        )
    weights = [as_float(coefficients[p], f"coefficient of {p!r}") for p in parents]
    return LinearMechanism(
        tuple(parents),
        jnp.asarray(weights, dtype=float),
        _scalar(as_float(intercept, "intercept")),
        _scalar(_check_scale(noise_scale)),
        None if output_bounds is None else _check_bounds(output_bounds),
    )


def create_root_mechanism(mean: Any = 0.0, noise_scale: Any = 1.0) -> LinearMechanism:
    """A variable without causes: mean + noise_scale * N(0, 1)."""
    return create_linear_mechanism((), {}, as_float(mean, "mean"), noise_scale)


def plain_number(value: Any) -> float:
    """The shortest decimal that the device's number stands for, as a Python float.

    0.8 in single precision is 0.800000011920929 in double; this gives 0.8 again.
    """
    return float(str(np.asarray(value)[()]))


def plain_numbers(values: Any) -> np.ndarray:
    """`plain_number` of every cell of an array, in double precision."""
    table = np.asarray(values)
    cells = [plain_number(cell) for cell in table.ravel()]
    return np.array(cells, dtype=np.float64).reshape(table.shape)


def _check_scale(noise_scale: Any) -> float:
    scale = as_float(noise_scale, "noise_scale")
    if scale < 0:
        raise ValueError(f"noise_scale is {scale}: give 0 (no noise) or more")
    return scale


def _check_bounds(bounds: tuple[Any, Any]) -> Float[Array, " 2"]:
    low, high = (as_float(b, "output_bounds") for b in bounds)
    if low > high:
        raise ValueError(f"output_bounds ({low}, {high}) are empty: give low <= high")
    return jnp.asarray([low, high], dtype=float)


def _scalar(value: float) -> Float[Array, ""]:
    return jnp.asarray(value, dtype=float)
