"""Explicit Runge-Kutta methods as Butcher tableaus, and one step of any of them."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxtrace.types import check_choice


@dataclass(frozen=True)
class Tableau:
    """One method: where stages lie, how they build on each other, what they add up to.

    `lower` holds the weights of the embedded method of lower order, if there is one.
    """

    name: str
    order: int
    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    lower: tuple[float, ...] | None = None

    @property
    def instants(self) -> tuple[float, ...]:
        """Return the distinct fractions of a step at which stages lie."""
        return tuple(sorted(set(self.nodes)))

    def instant_index(self, stage: int) -> int:
        """Return which of `instants` a stage lies at."""
        return self.instants.index(self.nodes[stage])


def _numbers(*values: F | int | str) -> tuple[float, ...]:
    return tuple(float(F(v)) for v in values)


EULER = Tableau("euler", 1, (0.0,), ((),), (1.0,))
MIDPOINT = Tableau("rk2", 2, (0.0, 0.5), ((), (0.5,)), (0.0, 1.0))
CLASSIC = Tableau(
    "rk4",
    4,
    (0.0, 0.5, 0.5, 1.0),
    ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    _numbers("1/6", "1/3", "1/3", "1/6"),
)
# Dormand and Prince (1980), order 5 with an embedded order 4.
DORMAND_PRINCE = Tableau(
    "rk45",
    5,
    _numbers(0, "1/5", "3/10", "4/5", "8/9", 1, 1),
    (
        (),
        _numbers("1/5"),
        _numbers("3/40", "9/40"),
        _numbers("44/45", "-56/15", "32/9"),
        _numbers("19372/6561", "-25360/2187", "64448/6561", "-212/729"),
        _numbers("9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"),
        _numbers("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"),
    ),
    _numbers("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0),
    _numbers(
        "5179/57600", 0, "7571/16695", "393/640", "-92097/339200", "187/2100", "1/40"
    ),
)

# The registry: a new method is a tableau above and its name here. Adaptive steps take
# the method asked for where it estimates its error, else the first that does.
METHODS = {t.name: t for t in (EULER, MIDPOINT, CLASSIC, DORMAND_PRINCE)}


def find_method(name: str, adaptive: bool = False) -> Tableau:
    """Return the method of a name, or for adaptive steps one that estimates its error.

    >>> find_method("rk4", adaptive=True).name
    'rk45'
    """
    check_choice("integrator", name, METHODS)
    if not adaptive or METHODS[name].lower is not None:
        return METHODS[name]
    return next(method for method in METHODS.values() if method.lower is not None)


@functools.cache
def stability_limit(tableau: Tableau) -> float:
    """Return the longest step, in units of tau, that does not blow up x' = -x / tau.

    The step multiplies x by R(z) = 1 + z b (1 - z A)^-1 1 at z = -dt / tau, and the
    limit is where |R| first exceeds 1.
    """
    count = len(tableau.weights)
    matrix = np.array([[*row, *[0.0] * (count - len(row))] for row in tableau.stages])
    powers = [np.ones(count)]
    for _ in range(count - 1):
        powers.append(matrix @ powers[-1])
    growth = np.array([1.0, *(np.dot(tableau.weights, p) for p in powers)])
    factor = np.polynomial.Polynomial(growth * (-1.0) ** np.arange(count + 1))
    crossings = np.concatenate([(factor - 1).roots(), (factor + 1).roots()])
    real = crossings[np.abs(crossings.imag) < 1e-9].real
    beyond = [x for x in real if x > 1e-6 and abs(factor(x * (1 + 1e-6))) > 1]
    return float(min(beyond))


Rate = Callable[[Any, Any, Any], tuple[Any, Any]]


class StepResult(NamedTuple):
    """The unknowns after a step, cell hints, an estimate of the error, and slopes."""

    unknowns: Any
    cell_hint: Any
    error: Any
    slopes: list[Any]


def explicit_step(
    tableau: Tableau,
    rate: Rate,
    unknowns: Any,
    cell_hint: Any,
    dt: Array,
    loop: bool = False,
) -> StepResult:
    """Advance by dt; `rate(unknowns, stage, cell_hint)` gives slopes and cell hints.

    In a `loop` the rate is compiled once for all stages, whose number is then traced.
    """
    slopes: list[Any] = []
    if loop:
        slopes, cell_hint = _loop_stages(tableau, rate, unknowns, cell_hint, dt)
    else:
        for stage, row in enumerate(tableau.stages):
            point = _along(unknowns, row, slopes, dt)
            slope, cell_hint = rate(point, stage, cell_hint)
            slopes.append(slope)
    # Local extrapolation: the run goes on with the higher order, and the lower one only
    # estimates the error (Hairer, Norsett and Wanner, I, II.4).
    after = _along(unknowns, tableau.weights, slopes, dt)
    if tableau.lower is None:
        return StepResult(after, cell_hint, None, slopes)
    pairs = zip(tableau.weights, tableau.lower, strict=True)
    nothing = jax.tree.map(jnp.zeros_like, unknowns)
    # By the differences of the weights: those of the two results would be mostly the
    # rounding of positions.
    error = _along(nothing, [high - low for high, low in pairs], slopes, dt)
    return StepResult(after, cell_hint, error, slopes)


def _loop_stages(
    tableau: Tableau, rate: Rate, unknowns: Any, cell_hint: Any, dt: Array
) -> tuple[list[Any], Any]:
    """Return the slopes of all stages; those still to come count as zero."""
    count = len(tableau.stages)
    matrix = [[*row, *[0.0] * (count - len(row))] for row in tableau.stages]

    def advance(carry: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, None]:
        slopes, cell_hint = carry
        stage, row = given
        slope, cell_hint = rate(
            _along(unknowns, list(row), slopes, dt), stage, cell_hint
        )
        keep = lambda new, old, i: jnp.where(stage == i, new, old)
        kept = [
            jax.tree.map(functools.partial(keep, i=i), slope, old)
            for i, old in enumerate(slopes)
        ]
        return (kept, cell_hint), None

    nothing = jax.tree.map(jnp.zeros_like, unknowns)
    given = (jnp.arange(count), jnp.asarray(matrix, dt.dtype))
    return jax.lax.scan(advance, ([nothing] * count, cell_hint), given)[0]


def settled(product: Array) -> Array:
    """Round a product to one bit less than it has, before it is added."""
    # A compiler may join a product and a sum into one rounding, and does so in one
    # program and not in the next: a run on several devices would not be the same run.
    kind = jnp.finfo(product.dtype)
    return jax.lax.reduce_precision(product, kind.nexp, kind.nmant - 1)


def _along(unknowns: Any, weights: Sequence[Any], slopes: list[Any], dt: Array) -> Any:
    """Return the unknowns moved along weighted slopes; zero weights cost nothing."""
    pairs = zip(weights, slopes, strict=False)
    used = [(w, s) for w, s in pairs if not isinstance(w, float) or w]
    if not used:
        return unknowns

    def move(x: Array, *parts: Array) -> Array:
        total = used[0][0] * parts[0]
        for (weight, _), part in zip(used[1:], parts[1:], strict=True):
            total = total + product(weight * part)
        step = dt if dt.ndim == 0 else dt.reshape(-1, *[1] * (x.ndim - 1))
        return x + product(step.astype(x.dtype) * total)

    # Positions alone come out the same as they are, and a bit faster.
    several = len(jax.tree.leaves(unknowns)) > 1
    product: Callable[[Array], Array] = settled if several else lambda x: x
    return jax.tree.map(move, unknowns, *(s for _, s in used))


Velocity = Callable[[Any, Any], Any]


def euler_step(x: Any, t: Any, dt: Any, field_fn: Velocity) -> Float[Array, "n 3"]:
    """Advance positions (N, 3) by a step of Euler's; dt may be per particle."""
    return _step(EULER, x, t, dt, field_fn)


def rk2_step(x: Any, t: Any, dt: Any, field_fn: Velocity) -> Float[Array, "n 3"]:
    """Advance positions (N, 3) by one midpoint step; dt may be per particle."""
    return _step(MIDPOINT, x, t, dt, field_fn)


def rk4_step(x: Any, t: Any, dt: Any, field_fn: Velocity) -> Float[Array, "n 3"]:
    """Advance positions (N, 3) by a Runge-Kutta step; dt may be per particle."""
    return _step(CLASSIC, x, t, dt, field_fn)


def _step(tableau: Tableau, x: Any, t: Any, dt: Any, field_fn: Velocity) -> Array:
    x = jnp.asarray(x)
    if x.ndim != 2 or x.shape[1] != 3:
        raise ValueError(f"positions of shape {x.shape}: give (N, 3)")
    t, dt = jnp.asarray(t, x.dtype), jnp.asarray(dt, x.dtype)
    if dt.shape not in ((), x.shape[:1]):
        raise ValueError(f"dt of shape {dt.shape}: give one number, or one each")

    def rate(point: Array, stage: int, cell_hint: tuple[()]) -> tuple[Array, tuple[()]]:
        when = t + tableau.nodes[stage] * dt
        return jnp.asarray(field_fn(point, when), x.dtype), cell_hint

    return explicit_step(tableau, rate, x, (), dt).unknowns


SAFETY = 0.9  # of the step that the error estimate allows
SHRINK, GROW = 0.2, 5.0  # limits of one change of the step
SHORTEST = 1e-6  # of the interval: a step this short is taken whatever its error


class Verdict(NamedTuple):
    """Which steps are good enough, how long the next should be, and who is lost."""

    accepted: Bool[Array, " n"]
    next_dt: Float[Array, " n"]
    lost: Bool[Array, " n"]


def control(error: Array, allowed: Array, length: Array, order: int) -> Verdict:
    """Accept or reject each step and choose the next (Hairer et al., I, eq. II.4.13).

    A step that ends in NaN is retried shorter: it may have reached beyond the field.
    One that is as short as can be is taken, and its particle is lost.
    """
    tiny = jnp.finfo(error.dtype).tiny
    ratio = error / jnp.maximum(allowed, tiny)
    nowhere = ~jnp.isfinite(ratio)
    shortest = length <= SHORTEST
    accepted = (ratio <= 1) | shortest
    safe = jnp.where(nowhere, jnp.ones_like(ratio), jnp.maximum(ratio, tiny))
    # The estimate is the error of the embedded method, one order below: it goes with
    # the length to the power of `order`.
    factor = jnp.clip(SAFETY * safe ** (-1 / order), SHRINK, GROW)
    factor = jnp.where(nowhere, SHRINK, factor)
    next_dt = jnp.clip(length * factor, SHORTEST, 1.0)
    return Verdict(accepted, next_dt, nowhere & shortest)
