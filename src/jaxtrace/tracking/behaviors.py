"""Behaviors: what particles remember, and how they move beside the flow.

A behavior is a pure function `(state, here, t, dt, key) -> state`, or `-> (state,
displacement)`, compiled with the step. It is asked twice: at the start of a step for
the displacement, which is spread over the stages of the integrator, and at the end for
the state, so that what is recorded belongs to the position recorded with it. XLA
leaves out what nobody uses.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxrig import compile_once
from jaxtrace.fields.analytic import number
from jaxtrace.fields.base import AbstractField
from jaxtrace.fields.clock import Instant
from jaxtrace.fields.variables import Variable, as_variable
from jaxtrace.io.cf import SPEEDS
from jaxtrace.io.loader import align
from jaxtrace.tracking.particles import Draw, Scalars, Vectors
from jaxtrace.tracking.schedule import FLOW

State = dict[str, Array]
STREAM = 64  # of the run's dice; walks and boundaries have lower ones
GRAVITY = 9.81  # m/s2
SEA_WATER = 1025.0  # kg/m3
DAY = 86_400.0  # seconds
TAKEN = (
    *("positions", "velocities", "generation", "alive", "x", "y", "z", "lon", "lat"),
    *("u", "v", "w", "time", "times", "frame_time", "trajectory", "obs"),
    *("status", "exit_time", "release_time"),
)


class AbstractBehavior(eqx.Module):
    """A rule of every step, and the start values of the state that it keeps.

    `state` maps names to arrays (n,), those of all behaviors together; `here` has the
    sampled variables by name, `lon`, `lat` or `x`, `y`, then `z`, and `u`, `v`, `w` of
    the flow; `t` is the time, `dt` the step (negative backward), `key` a JAX key per
    particle. A displacement is (n, 3): meters east, north and up on a sphere, else the
    units of positions. A state named `alive` that is False takes a particle out; one
    whose name begins with an underscore is not recorded.
    """

    @property
    def start(self) -> dict[str, Any]:
        """Return start values by name: a number, or one per seed."""
        return {}

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the variables it must find in `here`."""
        return ()

    @abc.abstractmethod
    def __call__(
        self, state: State, here: State, t: Array, dt: Array, key: Array
    ) -> Any:
        """Return the state after a step, or the state and a displacement."""


class Behavior(AbstractBehavior):
    """A function of one's own, and the start values of the state that it keeps."""

    rule: Callable[..., Any]
    begin: dict[str, Any] = eqx.field(default_factory=dict)

    @property
    def start(self) -> dict[str, Any]:
        """Return the start values given."""
        return self.begin

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return what the function answers."""
        return self.rule(state, here, t, dt, key)


class Age(AbstractBehavior):
    """Time since the release, in the state `age`."""

    @property
    def start(self) -> dict[str, Any]:
        """Return zero."""
        return {"age": 0.0}

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Add the length of the step."""
        return {"age": state["age"] + jnp.abs(dt)}


class _OfVariables(AbstractBehavior):
    """A behavior that needs the variables its settings name."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Return every setting that is a name, or a tuple of names."""
        given = (getattr(self, field.name) for field in fields(self))
        lists = [x if isinstance(x, tuple) else (x,) for x in given]
        return tuple(x for one in lists for x in one if isinstance(x, str))


class History(_OfVariables):
    """The mean over time and the maximum of a variable, as NAME_mean and NAME_max.

    The mean is that of the trapezoidal rule over steps, from the release on.
    """

    name: str = eqx.field(static=True)

    @property
    def start(self) -> dict[str, Any]:
        """Return no values yet, over no time."""
        nothing = dict.fromkeys((f"{self.name}_mean", f"{self.name}_max"), np.nan)
        return nothing | {f"_{self.name}_last": np.nan, f"_{self.name}_time": 0.0}

    def begin(self, state: State, here: State) -> State:
        """Return the state at the start of a step, with a first value."""
        most, last = f"{self.name}_max", f"_{self.name}_last"
        first = jnp.where(jnp.isnan(state[last]), here[self.name], jnp.nan)
        return state | {n: jnp.fmax(state[n], first) for n in (most, last)}

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Count the step in; one without a value, on land, counts for nothing."""
        mean, most = state[f"{self.name}_mean"], state[f"{self.name}_max"]
        last, time = state[f"_{self.name}_last"], state[f"_{self.name}_time"]
        now, known = here[self.name], ~jnp.isnan(here[self.name])
        before = jnp.where(jnp.isnan(last), now, last)
        longer = time + jnp.where(known, jnp.abs(dt), 0)
        part = jnp.abs(dt) / jnp.where(longer > 0, longer, 1)
        so_far = jnp.where(jnp.isnan(mean), before, mean)
        mixed = so_far + part * ((before + now) / 2 - so_far)
        return {
            f"{self.name}_mean": jnp.where(known, mixed, mean),
            f"{self.name}_max": jnp.fmax(most, now),
            f"_{self.name}_last": jnp.where(known, now, last),
            f"_{self.name}_time": longer,
        }


class Sinking(AbstractBehavior):
    """A constant speed downward; one below zero rises. May be one per seed."""

    speed: Any = eqx.field(converter=number)

    @property
    def start(self) -> dict[str, Any]:
        """Return the speed, which is a state: particles may differ in it."""
        return {"_sinking_speed": self.speed}

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return the way down."""
        return state, _upward(-state["_sinking_speed"] * dt)


class Buoyancy(_OfVariables):
    """The terminal speed of a small sphere, by the law of Stokes.

    w = (water - density) g diameter^2 / (18 viscosity), upward; SI units. `water` is a
    density or the name of a variable.
    """

    diameter: Any = eqx.field(converter=number)
    density: Any = eqx.field(converter=number)
    viscosity: Any = eqx.field(converter=number, default=1e-3)
    water: Any = SEA_WATER

    @property
    def start(self) -> dict[str, Any]:
        """Return what particles may differ in."""
        return {"_diameter": self.diameter, "_density": self.density}

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return the way up."""
        square = state["_diameter"] * state["_diameter"]
        lighter = _value(self.water, here) - state["_density"]
        viscosity = jnp.asarray(self.viscosity, square.dtype)
        return state, _upward(lighter * GRAVITY * square / (18 * viscosity) * dt)


class Windage(_OfVariables):
    """A share of the wind, two variables or one vector; none where it is unknown."""

    share: Any = eqx.field(converter=number)
    wind: tuple[str, ...] = eqx.field(static=True, default=("u10", "v10"))

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return the way before the wind."""
        way = _horizontal(here, self.wind)
        return state, way * jnp.asarray(self.share, way.dtype) * dt


class StokesDrift(_OfVariables):
    """The drift of waves at the surface, decaying as exp(2 k z) with depth.

    `wavenumber` k is a number (1/m) or a variable, which where it is unknown leaves no
    drift; without one depth does not count.
    """

    drift: tuple[str, ...] = eqx.field(static=True)
    wavenumber: Any = None

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return the way with the waves."""
        way = _horizontal(here, self.drift) * dt
        if self.wavenumber is None:
            return state, way
        decay = 2 * _value(self.wavenumber, here) * jnp.minimum(here["z"], 0)
        return state, way * jnp.nan_to_num(jnp.exp(decay))[:, None]


class Migration(AbstractBehavior):
    """Daily vertical migration: down from 6 to 18 h of local time, up otherwise.

    Depths are meters below the surface, `speed` in m/s; local time is that of the
    longitude, and `hour` the hour (UTC) at time zero.
    """

    day_depth: Any = eqx.field(converter=number)
    night_depth: Any = eqx.field(converter=number)
    speed: Any = eqx.field(converter=number)
    hour: Any = eqx.field(converter=number, default=0.0)

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return the way towards the depth of the hour, as far as the speed allows."""
        depth = here["z"]
        fixed = (self.day_depth, self.night_depth, self.speed, self.hour)
        day, night, speed, first = (jnp.asarray(x, depth.dtype) for x in fixed)
        local = jnp.mod(first / 24 + t / DAY + here.get("lon", 0 * depth) / 360, 1)
        target = -jnp.where((local >= 0.25) & (local < 0.75), day, night)
        farthest = speed * jnp.abs(dt)
        return state, _upward(jnp.clip(target - depth, -farthest, farthest))


class Decay(AbstractBehavior):
    """Radioactive or other first-order decay of what a particle carries, as `mass`."""

    time: Any = eqx.field(converter=number)  # in which it falls to 1/e

    @property
    def start(self) -> dict[str, Any]:
        """Return all of it."""
        return {"mass": 1.0}

    def __call__(self, state: State, here: State, t: Array, dt: Array, key: Array):
        """Return what is left."""
        mass = state["mass"]
        share = jnp.exp(-jnp.abs(dt) / jnp.asarray(self.time, mass.dtype))
        return {"mass": mass * share}


def _upward(way: Scalars) -> Vectors:
    none = jnp.zeros_like(way)
    return jnp.stack([none, none, way], 1)


def _value(given: Any, here: State) -> Array:
    """Return a variable by its name, or the number itself."""
    if isinstance(given, str):
        return here[given]
    return jnp.asarray(given, here["z"].dtype)


def _horizontal(here: State, names: Sequence[str]) -> Vectors:
    """Return a vector along the surface from two variables, or from one vector."""
    if len(names) == 1:
        if here[names[0]].ndim == 1:
            raise ValueError(
                f"{names[0]!r} is no vector: give both of its components, east first"
            )
        east, north = here[names[0]][:, 0], here[names[0]][:, 1]
    else:
        east, north = (here[name] for name in names)
    return jnp.nan_to_num(jnp.stack([east, north, jnp.zeros_like(east)], 1))


class Behaviors(eqx.Module):
    """The variables that are sampled along paths, and the behaviors that use them."""

    variables: dict[str, Variable] = eqx.field(default_factory=dict)
    rules: tuple[AbstractBehavior, ...] = ()

    @property
    def names(self) -> list[str]:
        """Return everything that is recorded beside positions."""
        found = [n for v, x in self.variables.items() for n in x.columns(v)]
        kept = [name for rule in self.rules for name in rule.start]
        return found + [name for name in kept if not name.startswith("_")]

    def timed(self, field: AbstractField) -> dict[str, Any]:
        """Return what knows the instants it is needed at: variables, and the flow."""
        return {**self.variables, **({FLOW: field} if self.rules else {})}

    def initial(self, count: int, dtype: Any) -> State | None:
        """Return the state of so many particles at their release; None without one."""
        if not self.rules:
            return None
        state = {}
        for rule in self.rules:
            for name, value in rule.start.items():
                given = jnp.asarray(value)
                copies = count // given.shape[0] if given.ndim and len(given) else 1
                if given.ndim > 1 or (given.ndim and copies * len(given) != count):
                    raise ValueError(
                        f"the start value of {name!r} has shape {given.shape}: give a "
                        "number, or one for each seed"
                    )
                real = jnp.issubdtype(given.dtype, np.floating)
                whole = jnp.tile(given, copies) if given.ndim else given
                whole = whole.astype(dtype if real else given.dtype)
                state[name] = jnp.broadcast_to(whole, (count,))
        return state

    def here(
        self,
        field: AbstractField,
        places: Array,
        velocity: Array,
        instants: Mapping[str, Any],
    ) -> State:
        """Return what a behavior sees at some places, with the flow's velocity."""
        first = ("x", "y") if field.sphere is None else ("lon", "lat")
        found = {name: places[:, i] for i, name in enumerate((*first, "z"))}
        found |= {name: velocity[:, i] for i, name in enumerate("uvw")}
        return found | self.sampled(places, instants)

    def sampled(self, places: Array, instants: Mapping[str, Any]) -> State:
        """Return the variables at some places."""
        return {n: _sample(v, places, instants[n]) for n, v in self.variables.items()}

    def begin(self, state: State, places: Array, instants: Mapping[str, Any]) -> State:
        """Return the state at the start of a step, of rules that look at it."""
        looking = [rule for rule in self.rules if isinstance(rule, History)]
        here = self.sampled(places, instants) if looking else {}
        for rule in looking:
            state = rule.begin(state, here)
        return state

    def follow(
        self, state: State, here: State, t: Array, dt: Array, draw: Draw
    ) -> tuple[State, Array | None]:
        """Return the state after all rules, and the sum of their displacements."""
        moved, declared = None, dict(state)
        for index, rule in enumerate(self.rules):
            key = draw.keys(STREAM + index)
            answer = rule(dict(state), here, t, dt, key)
            new, way = answer if isinstance(answer, tuple) else (answer, None)
            state = state | _checked(rule, new, declared)
            if way is not None:
                way = _checked_way(rule, way, here["z"])
                moved = way if moved is None else moved + way
        return state, moved


# One trace for all that ask for a variable in a step.
@compile_once(max_traces=None)
def _sample(variable: Variable, places: Array, instant: Instant) -> Array:
    return variable.at(places, instant)


def _name(rule: AbstractBehavior) -> str:
    named = rule.rule if isinstance(rule, Behavior) else type(rule)
    return getattr(named, "__qualname__", type(named).__name__)


def _checked(rule: AbstractBehavior, new: Any, declared: State) -> State:
    """Return the state of a behavior in the dtypes that were declared."""
    if not isinstance(new, Mapping):
        raise TypeError(
            f"{_name(rule)} returned {type(new).__name__}: return the state, a dict of "
            "arrays, or the state and a displacement (n, 3)"
        )
    found = {}
    for name, value in new.items():
        if name != "alive" and name not in declared:
            raise ValueError(
                f"{_name(rule)} returned a state {name!r} that nobody declared: give "
                f"its start value, as in Behavior(function, {{{name!r}: 0.0}})"
            )
        rows = jnp.shape(next(iter(declared.values()))) if declared else None
        if rows and jnp.shape(value) not in (rows, ()):
            raise ValueError(
                f"{_name(rule)} returned {name!r} of shape {jnp.shape(value)}: return "
                f"{rows}, a value per particle"
            )
        if name in declared:
            like = declared[name]
            value = jnp.broadcast_to(jnp.asarray(value, like.dtype), like.shape)
        found[name] = value
    return found


def _checked_way(rule: AbstractBehavior, way: Any, like: Array) -> Array:
    if jnp.shape(way) != (*like.shape, 3):
        raise ValueError(
            f"{_name(rule)} returned a displacement of shape {jnp.shape(way)}: return "
            f"{(*like.shape, 3)}"
        )
    return jnp.asarray(way, like.dtype)


def make_behaviors(
    sample: Any = None, behave: Any = None, facts: Mapping[str, Any] | None = None
) -> Behaviors:
    """Return what is sampled and how particles behave, from what users give.

    Dates of variables are counted from where `facts` of the flow say that its are.
    """
    variables = {
        name: align(as_variable(value, name), name, facts or {})
        for name, value in dict(sample or {}).items()
    }
    given = behave if isinstance(behave, list | tuple) else [behave]
    for one in given:
        if one is not None and not callable(one):
            raise TypeError(
                f"behave has {one!r}: give behaviors of jaxtrace.tracking.behaviors, "
                "or functions (state, here, t, dt, key) -> state"
            )
    rules = [
        one if isinstance(one, AbstractBehavior) else Behavior(one)
        for one in given
        if one is not None
    ]
    found = Behaviors(variables, tuple(rules))
    for rule in rules:
        missing = [name for name in rule.needs if name not in variables]
        if missing:
            raise ValueError(
                f"{_name(rule)} needs {', '.join(missing)}: give each in "
                "sample={name: field}"
            )
        speeds = getattr(rule, "wind", ()) or getattr(rule, "drift", ())
        for name in speeds if isinstance(rule, _OfVariables) else ():
            if SPEEDS.get(units := variables[name].units, 1.0) != 1.0:
                raise ValueError(
                    f"{name} is in {units}, and {_name(rule)} takes m/s: convert it in "
                    "its file"
                )
    twice = {name for name in found.names if found.names.count(name) > 1}
    wrong = sorted(twice | ({*found.names, *variables} & set(TAKEN)))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: names are taken; choose others")
    return found
