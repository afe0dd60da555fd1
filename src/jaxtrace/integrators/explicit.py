"""One step of any explicit Runge-Kutta method, for any pytree of unknowns."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxtrace.integrators.tableau import Tableau

Rate = Callable[[Any, int, Any], tuple[Any, Any]]


class Step(NamedTuple):
    """The unknowns after a step, what look-ups remember, an estimate of the error."""

    unknowns: Any
    memory: Any
    error: Any


def explicit_step(
    tableau: Tableau, rate: Rate, unknowns: Any, memory: Any, dt: Array
) -> Step:
    """Advance by dt, where `rate(unknowns, stage, memory)` gives slopes and memory."""
    slopes: list[Any] = []
    for stage, row in enumerate(tableau.stages):
        point = _along(unknowns, row, slopes, dt)
        slope, memory = rate(point, stage, memory)
        slopes.append(slope)
    after = _along(unknowns, tableau.weights, slopes, dt)
    if tableau.lower is None:
        return Step(after, memory, None)
    pairs = zip(tableau.weights, tableau.lower, strict=True)
    nothing = jax.tree.map(jnp.zeros_like, unknowns)
    error = _along(nothing, [high - low for high, low in pairs], slopes, dt)
    return Step(after, memory, error)


def _along(
    unknowns: Any, weights: Sequence[float], slopes: list[Any], dt: Array
) -> Any:
    """The unknowns moved along weighed slopes; a weight of nothing costs nothing."""
    used = [(w, s) for w, s in zip(weights, slopes, strict=False) if w]
    if not used:
        return unknowns

    def move(x: Array, *parts: Array) -> Array:
        total = used[0][0] * parts[0]
        for (weight, _), part in zip(used[1:], parts[1:], strict=True):
            total = total + weight * part
        step = dt if dt.ndim == 0 else dt.reshape(-1, *[1] * (x.ndim - 1))
        return x + step.astype(x.dtype) * total

    return jax.tree.map(move, unknowns, *(s for _, s in used))
