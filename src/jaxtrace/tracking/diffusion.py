"""Random walks: the effect on particles of motion below the resolution of a field."""

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig.compile_guard import TRACING_ERRORS
from jaxtrace.fields.analytic import FunctionField
from jaxtrace.fields.base import AbstractField, Field
from jaxtrace.fields.variables import Variable
from jaxtrace.integrators import Tableau
from jaxtrace.tracking.motion import AbstractMotion, PassiveTracer, Velocity
from jaxtrace.tracking.particles import Draw
from jaxtrace.types import check_choice, needed_arguments

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

    def check(self, dt: float, tableau: Tableau) -> None:
        """Raise if the deterministic motion would."""
        self.motion.check(dt, tableau)

    def rate(
        self, positions: Float[Array, "n 3"], own: Velocity, flow: Velocity, time: Array
    ) -> tuple[Float[Array, "n 3"], Velocity]:
        """Return that of the deterministic motion."""
        return self.motion.rate(positions, own, flow, time)

    def walk(
        self,
        places: Float[Array, "n 3"],
        time: Array,
        dt: Array,
        draw: Draw,
        scale: Float[Array, "n 3"] | None = None,
    ) -> Float[Array, "n 3"]:
        """Return one step of the random walk; on a sphere in meters east, north, up."""
        before = self.motion.walk(places, time, dt, draw, scale)
        length = jnp.abs(dt)
        noise = jnp.sqrt(length) * draw.normal(STREAM, places.dtype)
        spread, slope = self._coefficients(places, time)
        if slope is not None and scale is not None:
            slope = slope / jnp.maximum(scale, 1)  # per meter; nothing at the pole
        # Ito's form; the drift K' keeps a well-mixed cloud well mixed (Visser 1997).
        walk = _settled(spread * noise)
        if slope is not None and self.scheme == "milstein":
            walk = walk + _settled(slope * (_settled(noise * noise) + length) / 2)
        elif slope is not None:
            walk = walk + _settled(slope * length)
        return walk if before is None else before + walk

    def _coefficients(
        self, places: Float[Array, "n 3"], time: Array
    ) -> tuple[Float[Array, "n 3"], Float[Array, "n 3"] | None]:
        """Return the root of 2 K along each axis, and how K changes along that axis."""
        if not callable(self.diffusivity) and not isinstance(
            self.diffusivity, AbstractField
        ):
            even = jnp.asarray(self.diffusivity, places.dtype)
            return jnp.broadcast_to(_root(2 * even), places.shape), None

        def at(points: Array) -> Float[Array, "n 3"]:
            return _evaluate(self.diffusivity, points, time)

        # K at a particle depends on that particle alone, so that one tangent along an
        # axis is the slope for all of them, without a Jacobian.
        def along(axis: int) -> Float[Array, " n"]:
            way = jnp.zeros_like(places).at[:, axis].set(1)
            return jax.jvp(at, (places,), (way,))[1][:, axis]

        return _root(2 * at(places)), jnp.stack([along(a) for a in range(3)], 1)


def _settled(product: Array) -> Array:
    """Round a product to one bit less than it has, before it is added."""
    # A compiler may join a product and a sum into one rounding, and does so in one
    # program and not in the next: a run on several devices would not be the same run.
    kind = jnp.finfo(product.dtype)
    return jax.lax.reduce_precision(product, kind.nexp, kind.nmant - 1)


class _PerAxis(eqx.Module):
    """A diffusivity along each axis, numbers or variables; none where it is unknown."""

    parts: tuple[Any, ...]

    def __call__(self, positions: Float[Array, "n 3"], time: Array) -> Array:
        one = lambda part: (
            part(positions, time)
            if isinstance(part, Variable)
            else jnp.full(positions.shape[0], part, positions.dtype)
        )
        return jnp.nan_to_num(jnp.stack([one(part) for part in self.parts], 1))


def as_diffusivity(value: Any) -> Any:
    """Return three numbers, or a field or function of what varies."""
    several = isinstance(value, list | tuple)
    parts: tuple[Any, ...] = tuple(value) if several else (value,) * 3
    if any(isinstance(part, Variable) for part in parts):
        frozen = (p.frozen if isinstance(p, Variable) else p for p in parts)
        return _PerAxis(tuple(frozen))
    if isinstance(value, Field):
        return value.frozen
    if hasattr(value, "sample_at_positions"):
        return FunctionField(_traceable(value.sample_at_positions))
    if hasattr(value, "sample"):
        return _traceable(value.sample)
    if callable(value):
        return _traceable(value)
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


def _evaluate(
    diffusivity: Any, points: Float[Array, "n 3"], time: Array
) -> Float[Array, "n 3"]:
    """Return K along each axis."""
    if isinstance(diffusivity, AbstractField):
        cell_hint = diffusivity.start(points)
        return diffusivity.velocity(points, diffusivity.instant(time), cell_hint)[0]
    found = diffusivity(*_arguments(diffusivity, points, time))
    found = jnp.asarray(found, points.dtype)
    column = found[:, None] if found.ndim == 1 else found
    return jnp.broadcast_to(column, points.shape)


def _root(value: Array) -> Array:
    """Return the square root, nothing below zero; its slope stays finite there."""
    none = value <= 0
    # The root of 0 has no finite slope, and a select passes 0 times infinity on: the
    # argument is replaced before, the answer after.
    safe = jnp.where(none, jnp.ones_like(value), value)
    return jnp.where(none, jnp.zeros_like(value), jnp.sqrt(safe))
