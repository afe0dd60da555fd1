"""Structural causal models with names: any graph, any mechanisms, hidden variables;
linear ones also in closed form.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from acbo.mechanisms import (
    FeatureMechanism,
    LinearMechanism,
    as_mechanism,
    create_linear_mechanism,
    plain_number,
)
from acbo.named.names import (
    Edge,
    check_edges,
    check_known,
    check_names,
    parents_of,
    sort_names,
)
from acbo.scm import AbstractSCM, Intervention
from acbo.types import Index, as_float
from jaxrig.keys import named_key
from jaxrig.static_arguments import freeze, thaw

Ranges = Mapping[str, Sequence[Any]]  # name: (low, high)
UNLIMITED = (-np.inf, np.inf)


class NamedSCM(AbstractSCM):
    """A model over named variables; make it with `create_scm`, which checks it.

    Columns are `names`; `hidden` variables are never in the data and never set. Names
    and graph are part of the compiled program, numbers of mechanisms are not.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    hidden: tuple[str, ...] = eqx.field(static=True)
    edges: frozenset[Edge] = eqx.field(static=True)
    order: tuple[str, ...] = eqx.field(static=True)  # of all variables, causes first
    target_name: str | None = eqx.field(static=True)
    manipulable: tuple[str, ...] = eqx.field(static=True)
    notes: Any = eqx.field(static=True)
    mechanisms: dict[str, Any]
    low: Float[Array, "*batch d"]
    high: Float[Array, "*batch d"]

    @property
    def target(self) -> Index:
        """Return the column of the target; ValueError where the model has none."""
        if self.target_name is None:
            raise ValueError("the model has no target: create_scm(..., target=name)")
        return jnp.asarray(self.names.index(self.target_name))

    @property
    def mask(self) -> Bool[Array, " d"]:
        """Return True for every column: nothing is padded."""
        return jnp.ones(len(self.names), bool)

    @property
    def allowed(self) -> Bool[Array, " d"]:
        """Return which columns may be set: those with a range, never the target."""
        return jnp.asarray([name in self.manipulable for name in self.names])

    @property
    def metadata(self) -> dict[str, Any]:
        """Return a copy of the notes about the model."""
        return thaw(self.notes)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the allowed (low, high) of each variable that may be set."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        places = {name: self.names.index(name) for name in self.manipulable}
        return {n: (float(str(low[i])), float(str(high[i]))) for n, i in places.items()}

    def __getitem__(self, key: str) -> Any:
        """Return a documented part: variables, edges, mechanisms, target, metadata."""
        parts = {
            "variables": frozenset((*self.names, *self.hidden)),
            "edges": self.edges,
            "mechanisms": dict(self.mechanisms),
            "target": self.target_name,
            "metadata": self.metadata,
        }
        if key not in parts:
            raise KeyError(f"{key!r}: a model has {', '.join(parts)}")
        return parts[key]

    def draw(self, key: PRNGKeyArray) -> dict[str, Any]:
        """Derive each variable's key from its name, so others leave its noise alone."""
        return {name: named_key(key, name) for name in self.order}

    def respond(
        self,
        noise: dict[str, Any],
        intervention: Intervention,
        clip_to_range: bool = False,
    ) -> Float[Array, " d"]:
        """Compute each variable in turn from its causes and its key."""
        # Unrolled, since every variable has a function of its own: a program per model.
        seen: dict[str, Array] = {}
        for name in self.order:
            causes = {cause: seen[cause] for cause in parents_of(name, self.edges)}
            value = self.mechanisms[name](causes, noise[name])
            value = jnp.asarray(value, dtype=float)
            if name in self.names:
                value = self._change(name, value, intervention, clip_to_range)
            seen[name] = value
        return jnp.stack([seen[name] for name in self.names])

    def _change(
        self, name: str, value: Array, intervention: Intervention, clip: bool
    ) -> Array:
        place = self.names.index(name)
        value = intervention.scale[place] * value + intervention.shift[place]
        if clip and name != self.target_name:
            value = jnp.clip(value, self.low[place], self.high[place])
        return jnp.where(intervention.mask[place], intervention.values[place], value)


def create_scm(
    variables: Iterable[str],
    edges: Iterable[Edge],
    mechanisms: Mapping[str, Any],
    target: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    ranges: Ranges | None = None,
    hidden: Sequence[str] = (),
) -> NamedSCM:
    """Return a checked model over `variables`, in column order (a set: sorted).

    `mechanisms[name]` is `f(values of the causes by name, key) -> value`, pure JAX.
    With `ranges`, exactly the variables named there may be set, within (low, high);
    without, every variable but the target and the hidden ones, to any value.
    """
    unordered = isinstance(variables, set | frozenset)
    everything = check_names(sorted(variables) if unordered else list(variables))
    for name in hidden:
        check_known(name, everything, "hidden variable")
    names = tuple(name for name in everything if name not in hidden)
    if target is not None:
        check_known(target, names, "target")
    links = check_edges(everything, edges)
    order = sort_names(everything, links)
    _check_mechanisms(everything, links, mechanisms)
    low, high = _bounds(names, ranges)
    given = names if ranges is None else ranges
    # target and mask are abstract fields of the parent, and properties here
    return NamedSCM(  # pyright: ignore[reportCallIssue]
        names=names,
        hidden=tuple(hidden),
        edges=links,
        order=order,
        target_name=target,
        manipulable=tuple(n for n in names if n in given and n != target),
        notes=freeze(dict(metadata or {})),
        mechanisms={n: as_mechanism(mechanisms[n], n) for n in everything},
        low=low,
        high=high,
    )


def _check_mechanisms(
    names: Sequence[str], edges: frozenset[Edge], mechanisms: Mapping[str, Any]
) -> None:
    """Raise ValueError unless each variable has a mechanism over exactly its causes."""
    missing = [name for name in names if name not in mechanisms]
    if missing:
        raise ValueError(f"variable {missing[0]!r} has no mechanism: give one")
    for name, mechanism in mechanisms.items():
        check_known(name, names, "mechanisms: variable")
        if not isinstance(mechanism, LinearMechanism | FeatureMechanism):
            continue
        causes = parents_of(name, edges)
        if set(mechanism.parents) != set(causes):
            raise ValueError(
                f"the mechanism of {name!r} uses ({', '.join(mechanism.parents)}) and "
                f"the edges give it ({', '.join(causes)}): make them the same"
            )


def _bounds(
    names: tuple[str, ...], ranges: Ranges | None
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    ranges = {} if ranges is None else ranges
    for name, bounds in ranges.items():
        check_known(name, names, "ranges: variable")
        if np.shape(bounds) != (2,):
            raise ValueError(f"the range of {name!r} is {bounds!r}: give (low, high)")
        low, high = (as_float(b, f"range of {name!r}") for b in bounds)
        if low > high:
            raise ValueError(
                f"the range of {name!r} is {low} to {high}: the lower bound "
                "must come first"
            )
    pairs = [ranges.get(name, UNLIMITED) for name in names]
    columns = np.asarray(pairs, dtype=float).reshape(-1, 2).T
    return jnp.asarray(columns[0], dtype=float), jnp.asarray(columns[1], dtype=float)


def get_parents(scm: NamedSCM, variable: str) -> frozenset[str]:
    """Return the direct causes of a variable."""
    check_known(variable, (*scm.names, *scm.hidden))
    return frozenset(parents_of(variable, scm.edges))


@dataclass(frozen=True, eq=False)
class LinearForm:
    """x = intercept + weight' x + noise_scale * N(0, 1), in double precision."""

    names: tuple[str, ...]
    weight: Float[np.ndarray, "d d"]  # [cause, effect]
    intercept: Float[np.ndarray, " d"]
    noise_scale: Float[np.ndarray, " d"]

    def moments(
        self, do: Mapping[str, float] | None = None
    ) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
        """Return mean and covariance of all variables under do(...).

        x = (I - W')^-1 (intercept + noise), with the columns of set variables cut.
        """
        numbers = (self.weight, self.intercept, self.noise_scale)
        weight, base, scale = (array.copy() for array in numbers)
        for name, value in (do or {}).items():
            place = self.names.index(name)
            weight[:, place], scale[place], base[place] = 0.0, 0.0, value
        # Acyclic, so I - W' is triangular in causal order and always invertible.
        total = np.linalg.inv(np.eye(len(base)) - weight.T)
        spread = total * scale
        return total @ base, spread @ spread.T

    def mean(self, name: str, do: Mapping[str, float] | None = None) -> float:
        """Return the expected value of one variable under do(...)."""
        return float(self.moments(do)[0][self.names.index(name)])


def is_linear(scm: NamedSCM) -> bool:
    """Return whether every mechanism is linear and none is clipped."""
    return all(map(_is_linear_mechanism, scm.mechanisms.values()))


def _is_linear_mechanism(mechanism: Any) -> bool:
    return isinstance(mechanism, LinearMechanism) and mechanism.output_bounds is None


def linear_form(scm: NamedSCM) -> LinearForm:
    """Return the numbers of a linear model, hidden variables after the others."""
    for name, mechanism in scm.mechanisms.items():
        if not _is_linear_mechanism(mechanism):
            raise ValueError(f"the mechanism of {name!r} is not linear, or is clipped")
    names = (*scm.names, *scm.hidden)
    weight = np.zeros((len(names), len(names)))
    for effect, name in enumerate(names):
        mechanism = scm.mechanisms[name]
        for place, cause in enumerate(mechanism.parents):
            weight[names.index(cause), effect] = plain_number(
                mechanism.coefficients[place]
            )
    mechanisms = [scm.mechanisms[name] for name in names]
    intercept = np.array([plain_number(m.intercept) for m in mechanisms])
    scale = np.array([plain_number(m.noise_scale) for m in mechanisms])
    return LinearForm(names, weight, intercept, scale)


def create_linear_scm(
    variables: tuple[str, ...],
    coefficients: Mapping[tuple[str, str], float],
    target: str | None = None,
    ranges: Ranges | None = None,
    intercepts: Mapping[str, float] | None = None,
    noise_scales: Mapping[str, float] | float = 1.0,
    hidden: tuple[str, ...] = (),
) -> NamedSCM:
    """Return a linear Gaussian model from coefficients {(cause, effect): number}."""
    mechanisms = {}
    for name in variables:
        scale = (
            noise_scales.get(name, 1.0)
            if isinstance(noise_scales, Mapping)
            else noise_scales
        )
        causes = parents_of(name, coefficients)
        weights = {cause: coefficients[cause, name] for cause in causes}
        base = (intercepts or {}).get(name, 0.0)
        mechanisms[name] = create_linear_mechanism(causes, weights, base, scale)
    return create_scm(
        variables, coefficients, mechanisms, target, ranges=ranges, hidden=hidden
    )
