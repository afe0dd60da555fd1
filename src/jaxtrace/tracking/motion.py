"""Equations of motion: passive tracers, particles with inertia, random walks.

A random walk stands for motion below the resolution of a field.
"""

import abc
from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer as Traced
from jaxtyping import Array, Float, Int

from jaxrig.compile_guard import TRACING_ERRORS
from jaxtrace.fields.analytic import FunctionField, number
from jaxtrace.fields.base import AbstractField, Field
from jaxtrace.fields.variables import Variable
from jaxtrace.integrators import Tableau, settled, stability_limit
from jaxtrace.tracking.particles import Draw, Scalars, Vectors
from jaxtrace.types import check_choice, needed_arguments

Term = Callable[..., Any]
Velocity = Any  # (n, 3), or None where particles carry none


class AbstractMotion(eqx.Module):
    """How a particle moves in a given flow."""

    @property
    def has_velocity(self) -> bool:
        """Return whether particles carry a velocity of their own."""
        return False

    def check_count(self, count: int) -> None:
        """Raise if the motion is one of another number of particles."""

    def of(self, slots: Int[Array, " n"]) -> "AbstractMotion":
        """Return the motion of some particles, of those in these slots."""
        del slots
        return self

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if steps this long (negative: backward) cannot work."""
        del dt, tableau

    @abc.abstractmethod
    def rate(
        self, positions: Vectors, own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Vectors, Velocity]:
        """Return the rates of change of positions and of particles' own velocities.

        `own` is None where particles carry no velocity, and so is its rate.
        """

    def walk(
        self,
        places: Vectors,
        time: Array,
        dt: Array,
        draw: Draw,
        scale: Vectors | None = None,
    ) -> Vectors | None:
        """Return the random displacement of a step that ends at `time`, or None.

        `places` are the positions moved to where a repeating domain knows them; on a
        sphere `scale` is how many meters a unit of each coordinate is there.
        """
        del places, time, dt, draw, scale
        return None


class PassiveTracer(AbstractMotion):
    """Particles that go with the flow, and with whatever terms a user adds.

    A term is a JAX function `term(positions, t, velocity) -> (N, 3)`; its result is
    added to the velocity. The time is one number, or with adaptive steps one per
    particle (N,).
    """

    terms: tuple[Term, ...] = ()

    def rate(
        self, positions: Vectors, own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Vectors, Velocity]:
        """Return the velocity of the flow and of every term."""
        return flow + _sum_terms(self.terms, positions, time, flow), None


def _sum_terms(
    terms: tuple[Term, ...], positions: Vectors, *arguments: Array
) -> Vectors:
    """Return the sum of all terms, in the dtype of the positions."""
    added = jnp.zeros_like(positions)
    for term in terms:
        found = jnp.asarray(term(positions, *arguments), positions.dtype)
        if found.shape not in (positions.shape, positions.shape[1:], ()):
            name = getattr(term, "__qualname__", type(term).__name__)
            raise ValueError(
                f"the term {name} returned shape {found.shape} for positions of shape "
                f"{positions.shape}: return {positions.shape}"
            )
        added = added + jnp.broadcast_to(found, positions.shape)
    return added


class Inertial(AbstractMotion):
    """Heavy particles: x' = v, v' = (u - v) / response_time + gravity + terms.

    They start with the velocity of the flow, and so do those that enter later. A
    mirror turns the velocity round, a stop ends it, a period keeps it: whatever a
    boundary does to positions, its derivative does to the velocity. A term is a JAX
    function `term(positions, t, flow, velocity) -> (N, 3)` of the velocity of the flow
    and that of the particle; its result is an acceleration. The response time is one
    number, or one for each seed.

    Tracking is forward only: backward in time drag amplifies every error.
    """

    response_time: Float[Array | np.ndarray, "*seeds"] = eqx.field(converter=number)
    gravity: Float[Array | np.ndarray, "3"] = eqx.field(
        converter=number, default_factory=lambda: np.zeros(3)
    )
    terms: tuple[Term, ...] = ()

    def __check_init__(self) -> None:
        if self.response_time.ndim > 1 or not self.response_time.size:
            raise ValueError(
                f"response_time of shape {self.response_time.shape}: give one number, "
                "or one for each seed"
            )
        if self.gravity.shape != (3,):
            raise ValueError(f"gravity of shape {self.gravity.shape}: give 3 numbers")
        known = _known(self.response_time)
        if known is not None and not (np.isfinite(known) and known > 0):
            raise ValueError(f"response_time {known:g}: give a time above 0")

    @property
    def has_velocity(self) -> bool:
        """Return True: particles carry their velocity."""
        return True

    def check_count(self, count: int) -> None:
        """Raise unless there is a response time for every seed."""
        times = self.response_time
        if times.ndim and count % times.shape[0]:
            raise ValueError(
                f"response_time of shape {times.shape} for {count} particles: give one "
                "number, or one for each seed"
            )

    def of(self, slots: Int[Array, " n"]) -> AbstractMotion:
        """Return the motion with the response times of some particles."""
        if not self.response_time.ndim:
            return self
        times = jnp.asarray(self.response_time)
        # Seeds that are released again and again follow each other in the same order.
        own = times[slots % times.shape[0]][:, None]
        return eqx.tree_at(lambda motion: motion.response_time, self, own)

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if drag would make steps this long grow without bound."""
        known = _known(self.response_time)
        if dt < 0:
            raise ValueError(
                f"dt={dt:g} tracks inertial particles backward in time, which is "
                "unstable because of drag: track them forward, or use passive tracers"
            )
        limit = stability_limit(tableau)
        if known is not None and dt > limit * known:
            raise ValueError(
                f"dt={dt:g} is unstable: with {tableau.name} and response_time "
                f"{known:g} steps must not exceed {limit * known:g}; use a "
                "smaller dt or adaptive steps"
            )

    def rate(
        self, positions: Vectors, own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Vectors, Velocity]:
        """Return the velocities and accelerations of the particles."""
        dtype = positions.dtype
        # Maxey and Riley (1983) in the limit of particles much denser than the fluid:
        # Stokes drag and weight are what is left.
        drag = (flow - own) / jnp.asarray(self.response_time, dtype)
        weight = jnp.asarray(self.gravity, dtype)[None]
        return own, drag + weight + _sum_terms(self.terms, positions, time, flow, own)


def _known(value: Any) -> float | None:
    """Return the least of some numbers, unless they are being traced."""
    return None if isinstance(value, Traced) else float(np.min(value))


Scheme = Literal["euler-maruyama", "milstein"]
SCHEMES = get_args(Scheme)
STREAM = 1  # of the run's dice; boundaries roll dice of their own


class Diffusion(AbstractMotion):
    """Another motion, and a random walk of a diffusivity K after each of its steps.

    K is a number, three numbers (one per axis), a field whose components they are, a
    JAX function `K(positions) -> (N,) or (N, 3)` (or of positions and t), or a
    variable of `load_variable`; three of them may be mixed with numbers. Where K
    varies, its gradient pushes particles towards larger K, as it must for a cloud that
    is well mixed to stay so:

    - euler-maruyama: dx = K' dt + sqrt(2 K) dW
    - milstein: dx = K' (dW^2 + dt) / 2 + sqrt(2 K) dW

    Both are of first order in the mean; Milstein's is also of first order path by path.
    A K below zero counts as zero. Tracked backward, the walk is the same one: it uses
    the length of the step, so that a well-mixed cloud stays so in both directions.
    The walk follows from the seed of the run, the slot and the step.
    """

    diffusivity: Any
    motion: AbstractMotion
    scheme: Scheme = eqx.field(static=True)

    def __init__(
        self,
        diffusivity: Any,
        scheme: str = "euler-maruyama",
        motion: AbstractMotion | None = None,
    ):
        check_choice("scheme", scheme, SCHEMES)
        self.diffusivity = as_diffusivity(diffusivity)
        self.motion = motion or PassiveTracer()
        self.scheme = cast(Scheme, scheme)

    @property
    def has_velocity(self) -> bool:
        """Return whether the deterministic motion carries a velocity."""
        return self.motion.has_velocity

    def check_count(self, count: int) -> None:
        """Raise if the deterministic motion would."""
        self.motion.check_count(count)

    def of(self, slots: Int[Array, " n"]) -> AbstractMotion:
        """Return the walk with the deterministic motion of some particles."""
        return eqx.tree_at(lambda walk: walk.motion, self, self.motion.of(slots))

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if the deterministic motion would."""
        self.motion.check(dt, tableau)

    def rate(
        self, positions: Vectors, own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Vectors, Velocity]:
        """Return that of the deterministic motion."""
        return self.motion.rate(positions, own, flow, time)

    def walk(
        self,
        places: Vectors,
        time: Array,
        dt: Array,
        draw: Draw,
        scale: Vectors | None = None,
    ) -> Vectors:
        """Return one step of the random walk; on a sphere in meters east, north, up."""
        before = self.motion.walk(places, time, dt, draw, scale)
        length = jnp.abs(dt)
        noise = jnp.sqrt(length) * draw.normal(STREAM, places.dtype)
        spread, slope = self._coefficients(places, time)
        if slope is not None and scale is not None:
            slope = slope / jnp.maximum(scale, 1)  # per meter; nothing at the pole
        # Ito's form; the drift K' keeps a well-mixed cloud well mixed (Visser 1997).
        walk = settled(spread * noise)
        if slope is not None and self.scheme == "milstein":
            walk = walk + settled(slope * (settled(noise * noise) + length) / 2)
        elif slope is not None:
            walk = walk + settled(slope * length)
        return walk if before is None else before + walk

    def _coefficients(
        self, places: Vectors, time: Array
    ) -> tuple[Vectors, Vectors | None]:
        """Return the root of 2 K along each axis, and how K changes along that axis."""
        if not isinstance(self.diffusivity, _Varying):
            even = jnp.asarray(self.diffusivity, places.dtype)
            return jnp.broadcast_to(_root(2 * even), places.shape), None
        at = lambda points: self.diffusivity(points, time)

        # K at a particle depends on that particle alone, so that one tangent along an
        # axis is the slope for all of them, without a Jacobian.
        def along(axis: int) -> Scalars:
            way = jnp.zeros_like(places).at[:, axis].set(1)
            return jax.jvp(at, (places,), (way,))[1][:, axis]

        return _root(2 * at(places)), jnp.stack([along(a) for a in range(3)], 1)


class _Varying(eqx.Module):
    """A diffusivity of places: a field, a function, or a number or variable per axis.

    A variable is nothing where it is unknown.
    """

    source: Any

    def __call__(self, points: Vectors, time: Array) -> Vectors:
        source, dtype = self.source, points.dtype
        if isinstance(source, AbstractField):
            hint = source.start(points)
            return source.velocity(points, source.instant(time), hint)[0]
        if isinstance(source, tuple):
            even = lambda part: jnp.full(points.shape[0], part, dtype)
            parts: list[Array] = [
                p(points, time) if isinstance(p, Variable) else even(p) for p in source
            ]
            return jnp.nan_to_num(jnp.stack(parts, 1))
        found = jnp.asarray(source(*_arguments(source, points, time)), dtype)
        column = found[:, None] if found.ndim == 1 else found
        return jnp.broadcast_to(column, points.shape)


def as_diffusivity(value: Any) -> Any:
    """Return three numbers, or a function of places and the time."""
    several = isinstance(value, list | tuple)
    parts: tuple[Any, ...] = tuple(value) if several else (value,) * 3
    if any(isinstance(part, Variable) for part in parts):
        return _Varying(
            tuple(p.frozen if isinstance(p, Variable) else p for p in parts)
        )
    if isinstance(value, Field):
        return _Varying(value.frozen)
    if hasattr(value, "sample_at_positions"):  # which is told the time, default or not
        return _Varying(FunctionField(_traceable(value.sample_at_positions)))
    if hasattr(value, "sample"):
        return _Varying(_traceable(value.sample))
    if callable(value):
        return _Varying(_traceable(value))
    if isinstance(value, jax.Array):
        return jnp.broadcast_to(value, (3,))
    try:
        numbers = np.broadcast_to(np.asarray(value, np.float64), (3,)).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"diffusivity {value!r}: give a number, three numbers, a field or a "
            "function of positions"
        ) from error
    if not np.all(np.isfinite(numbers) & (numbers >= 0)):
        raise ValueError(f"diffusivity {value!r}: values must not be negative")
    return numbers


def _traceable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, if JAX can trace it: its gradient is needed."""
    points = jax.ShapeDtypeStruct((2, 3), np.float32)
    time = jax.ShapeDtypeStruct((), np.float32)
    try:
        found = jax.eval_shape(function, *_arguments(function, points, time))
    except TRACING_ERRORS as error:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise TypeError(
            f"diffusivity {name} needs NumPy arrays, and a walk needs its gradient: "
            "write it with jax.numpy"
        ) from error
    if found.shape not in ((2,), (2, 3)):
        raise ValueError(
            f"diffusivity returned shape {found.shape} for 2 positions: return (2,) "
            "or (2, 3)"
        )
    return function


def _arguments(function: Callable[..., Any], points: Any, time: Any) -> tuple[Any, ...]:
    """Return positions, and the time for a function that takes it."""
    return (points, time) if needed_arguments(function) > 1 else (points,)


def _root(value: Array) -> Array:
    """Return the square root, nothing below zero; its slope stays finite there."""
    none = value <= 0
    # The root of 0 has no finite slope, and a select passes 0 times infinity on: the
    # argument is replaced before, the answer after.
    safe = jnp.where(none, jnp.ones_like(value), value)
    return jnp.where(none, jnp.zeros_like(value), jnp.sqrt(safe))
