"""Flows given by formulas or functions, and `as_field`, which takes anything."""

import abc
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxrig.compile_guard import TRACING_ERRORS
from jaxtrace.fields.base import AbstractField, CellHint, Corner, Field
from jaxtrace.fields.clock import Instant, Numbers
from jaxtrace.sphere import Sphere, chosen_radius, make_sphere

Number = Float[Array | np.ndarray, ""] | float


def number(value: Any) -> Any:
    """Return parameters as an array, so that other values need no new compilation."""
    return value if isinstance(value, jax.Array) else np.asarray(value, np.float64)


def _scalar(value: Any) -> Any:
    if np.ndim(value):
        raise ValueError(f"{value} is given for one number: give each as its own")
    return number(value)


def parameter(default: float) -> Any:
    """Return a field of a flow: a number with a default."""
    return eqx.field(converter=_scalar, default_factory=lambda: np.asarray(default))


class UnboundedFlow(AbstractField):
    """A velocity that is known everywhere and at any time.

    On a sphere x and y are degrees, and speeds are in meters per second.
    """

    sphere: Sphere | None = eqx.field(default=None, kw_only=True)  # type: ignore[override]
    box: ClassVar[Any] = ((-np.inf, -np.inf, -np.inf), (np.inf, np.inf, np.inf))

    def instant(self, time: Numbers) -> Instant:
        """Return an instant; there are no slices."""
        xp: Any = np if isinstance(time, np.ndarray | np.generic | float | int) else jnp
        when = xp.asarray(time)
        if not np.issubdtype(when.dtype, np.floating):
            when = when.astype(np.float64 if xp is np else jnp.result_type(float))
        none = (*when.shape, 0)
        return Instant(when, xp.zeros(none, np.int32), xp.zeros(none, when.dtype))

    def bounds(self) -> tuple[Corner, Corner]:
        """Return the box of interest, or the whole sphere: a formula has no ends."""
        if self.sphere is not None:
            return np.array([-180.0, -90.0, -np.inf]), np.array([180.0, 90.0, np.inf])
        return np.array(self.box[0]), np.array(self.box[1])


class AnalyticFlow(UnboundedFlow):
    """A velocity given by a formula of x, y, z and t."""

    @abc.abstractmethod
    def formula(self, x: Array, y: Array, z: Array, t: Array) -> tuple[Any, Any, Any]:
        """Return the three components; 0 stands for one that vanishes."""

    def velocity(
        self, positions: Float[Array, "n 3"], instant: Instant, cell_hint: CellHint
    ) -> tuple[Float[Array, "n 3"], CellHint]:
        """Return the formula at every position."""
        dtype = positions.dtype
        x, y, z = (positions[:, c] for c in range(3))
        flow = jax.tree.map(lambda p: jnp.asarray(p, dtype), self)
        parts = flow.formula(x, y, z, jnp.asarray(instant.time, dtype))
        columns = [jnp.broadcast_to(jnp.asarray(p, dtype), x.shape) for p in parts]
        return jnp.stack(columns, 1), cell_hint


class UniformFlow(AnalyticFlow):
    """The same velocity everywhere."""

    u: Number = parameter(1.0)
    v: Number = parameter(0.0)
    w: Number = parameter(0.0)

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return the three constants."""
        return self.u, self.v, self.w


class Rotation(AnalyticFlow):
    """Solid-body rotation about an upright axis, with an axial speed."""

    rate: Number = parameter(1.0)  # radians per unit of time
    x0: Number = parameter(0.0)
    y0: Number = parameter(0.0)
    w: Number = parameter(0.0)

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return velocity at right angles to the radius."""
        return -self.rate * (y - self.y0), self.rate * (x - self.x0), self.w


class Saddle(AnalyticFlow):
    """Stretching along x, squeezing along y."""

    rate: Number = parameter(1.0)
    x0: Number = parameter(0.0)
    y0: Number = parameter(0.0)

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return a linear flow without divergence."""
        return self.rate * (x - self.x0), -self.rate * (y - self.y0), 0


class Vortex(AnalyticFlow):
    """A line vortex with a Gaussian core (Lamb and Oseen), without its decay."""

    circulation: Number = parameter(1.0)
    core: Number = parameter(0.1)
    x0: Number = parameter(0.0)
    y0: Number = parameter(0.0)

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return circulation over radius, solid rotation in the core."""
        dx, dy = x - self.x0, y - self.y0
        q = (dx * dx + dy * dy) / (self.core * self.core)
        # (1 - exp(-q)) / q tends to 1 - q/2 at the center, where 0/0 would be.
        small = q < 1e-3
        safe = jnp.where(small, jnp.ones_like(q), q)
        shape = jnp.where(small, 1 - q / 2 + q * q / 6, -jnp.expm1(-safe) / safe)
        swirl = self.circulation / (2 * np.pi * self.core * self.core) * shape
        return -swirl * dy, swirl * dx, 0


class DoubleGyre(AnalyticFlow):
    """Two counter-rotating cells on [0, 2] x [0, 1] whose border sways (Shadden)."""

    amplitude: Number = parameter(0.1)
    sway: Number = parameter(0.25)
    frequency: Number = parameter(2 * np.pi / 10)
    box = ((0.0, 0.0, 0.0), (2.0, 1.0, 0.0))

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return the rotated gradient of A sin(pi f(x, t)) sin(pi y)."""
        a = self.sway * jnp.sin(self.frequency * t)
        f = a * x * x + (1 - 2 * a) * x
        slope = 2 * a * x + (1 - 2 * a)
        scale = np.pi * self.amplitude
        u = -scale * jnp.sin(np.pi * f) * jnp.cos(np.pi * y)
        return u, scale * jnp.cos(np.pi * f) * jnp.sin(np.pi * y) * slope, 0


class ABCFlow(AnalyticFlow):
    """The flow of Arnold, Beltrami and Childress: steady, in space, chaotic."""

    a: Number = parameter(3**0.5)
    b: Number = parameter(2**0.5)
    c: Number = parameter(1.0)
    box = ((0.0, 0.0, 0.0), (2 * np.pi, 2 * np.pi, 2 * np.pi))  # one period

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return the three components of the flow."""
        return (
            self.a * jnp.sin(z) + self.c * jnp.cos(y),
            self.b * jnp.sin(x) + self.a * jnp.cos(z),
            self.c * jnp.sin(y) + self.b * jnp.cos(x),
        )


class TaylorGreen(AnalyticFlow):
    """The decaying array of vortices that solves the Navier-Stokes equations."""

    amplitude: Number = parameter(1.0)
    wavenumber: Number = parameter(1.0)
    viscosity: Number = parameter(0.0)

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return cosine times sine, decaying at 2 nu k^2."""
        k = self.wavenumber
        scale = self.amplitude * jnp.exp(-2 * self.viscosity * k * k * t)
        u = scale * jnp.cos(k * x) * jnp.sin(k * y)
        return u, -scale * jnp.sin(k * x) * jnp.cos(k * y), 0


class MovingEddy(AnalyticFlow):
    """An inertial eddy carried by a mean flow; both may decay in time."""

    mean: Number = parameter(0.04)
    initial: Number = parameter(0.3)
    frequency: Number = parameter(1e-4)
    decay: Number = parameter(0.0)
    mean_decay: Number = parameter(0.0)

    def formula(self, x: Array, y: Array, z: Array, t: Array):
        """Return the same everywhere at one instant."""
        swing = (self.initial - self.mean) * jnp.exp(-self.decay * t)
        mean = self.mean * jnp.exp(-self.mean_decay * t)
        u = mean + swing * jnp.cos(self.frequency * t)
        return u, -swing * jnp.sin(self.frequency * t), 0


FLOWS: dict[str, type[AnalyticFlow]] = {
    "uniform": UniformFlow,
    "rotation": Rotation,
    "saddle": Saddle,
    "vortex": Vortex,
    "double_gyre": DoubleGyre,
    "abc": ABCFlow,
    "taylor_green": TaylorGreen,
    "moving_eddy": MovingEddy,
}


def flow_parameters(name: str) -> list[str]:
    """Return the names of the parameters of a flow."""
    return [p.name for p in dataclasses.fields(FLOWS[name]) if not p.kw_only]


class FunctionField(UnboundedFlow):
    """A JAX function `f(positions, t) -> (N, 2 or 3)` as a field.

    One that is `steady` takes no time; a `scalar` (N,) becomes all three components.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    steady: bool = eqx.field(static=True, default=False)
    scalar: bool = eqx.field(static=True, default=False)

    def velocity(
        self, positions: Float[Array, "n 3"], instant: Instant, cell_hint: CellHint
    ) -> tuple[Float[Array, "n 3"], CellHint]:
        """Return what the function answers."""
        time = jnp.asarray(instant.time, positions.dtype)
        found = jnp.asarray(self.ask(positions, time), positions.dtype)
        return _three(found, positions.shape), cell_hint

    def ask(self, positions: Any, time: Any) -> Any:
        """Return what the function answers, as it answers it."""
        given = (positions,) if self.steady else (positions, time)
        found = self.function(*given)
        return jnp.stack([found, found, found], 1) if self.scalar else found


class HostField(FunctionField):
    """A function of NumPy arrays, called on the host at every stage."""

    def velocity(
        self, positions: Float[Array, "n 3"], instant: Instant, cell_hint: CellHint
    ) -> tuple[Float[Array, "n 3"], CellHint]:
        """Return what the function answers, outside the compiled program."""
        shape = jax.ShapeDtypeStruct(positions.shape, positions.dtype)

        def call(points: Any, time: Any) -> np.ndarray:
            found = np.asarray(self.ask(np.asarray(points), np.asarray(time)))
            return np.asarray(_three(found, points.shape), positions.dtype)

        time = jnp.asarray(instant.time, positions.dtype)
        return jax.pure_callback(call, shape, positions, time), cell_hint


def _three(found: Any, shape: tuple[int, ...]) -> Any:
    """Return velocities with three components, one row per position."""
    if found.ndim != 2 or found.shape[0] != shape[0] or found.shape[1] not in (2, 3):
        raise ValueError(
            f"the field function returned velocities of shape {tuple(found.shape)} for "
            f"{shape[0]} positions: return ({shape[0]}, 3)"
        )
    if found.shape[1] == 3:
        return found
    xp: Any = np if isinstance(found, np.ndarray) else jnp
    return xp.concatenate([found, xp.zeros_like(found[:, :1])], 1)


def as_field(
    field: Any, geometry: str | None = None, radius: float | None = None
) -> AbstractField:
    """Return a frozen field from anything that answers velocities.

    Tried in this order: our own fields, `sample_at_positions(positions, t)`,
    `sample(positions)`, and any function of positions and time. With
    geometry="sphere" a function or flow is asked at (longitude, latitude, z) and
    answers meters per second east, north and up; `radius` is in meters.
    """
    found = _as_field(field)
    length = chosen_radius(geometry, radius)
    if length is None:
        return found
    if not isinstance(found, UnboundedFlow):
        raise TypeError(
            f"geometry='sphere' is for functions and flows; {type(field).__name__} is "
            "given it where it is made or read"
        )
    return dataclasses.replace(found, sphere=make_sphere(length))


def _as_field(field: Any) -> AbstractField:
    if isinstance(field, Field):
        return field.frozen
    if hasattr(field, "sample_at_positions"):
        return function_field(field.sample_at_positions)
    if hasattr(field, "sample"):
        return function_field(field.sample, steady=True)
    if callable(field):
        return function_field(field)
    raise TypeError(
        f"{type(field).__name__} is not a field: pass one of jaxtrace.fields, an "
        "object with sample_at_positions(positions, t) or sample(positions), or a "
        "function f(positions, t)"
    )


def function_field(function: Callable[..., Any], steady: bool = False) -> FunctionField:
    """Wrap a function as a field; one that needs NumPy is called on the host."""
    field = FunctionField(function, steady)
    points = jax.ShapeDtypeStruct((2, 3), np.float32)
    try:
        jax.eval_shape(field.ask, points, jax.ShapeDtypeStruct((), np.float32))
    except TRACING_ERRORS:
        name = getattr(function, "__qualname__", type(function).__name__)
        warnings.warn(
            f"{name} needs NumPy arrays and is called on the host at every stage, "
            "which is slow; write it with jax.numpy to compile it",
            stacklevel=3,
        )
        return HostField(function, steady)
    except (TypeError, ValueError, IndexError) as error:
        arguments = "f(positions)" if steady else "f(positions, t)"
        error.add_note(
            f"a velocity function is called as {arguments}, positions (N, 3)"
        )
        raise
    return field
