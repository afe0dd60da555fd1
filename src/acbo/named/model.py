"""Structural causal models with names: any graph, any mechanisms, hidden variables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from acbo.interventions import Intervention
from acbo.named.digraph import (
    Edge,
    check_edges,
    check_known,
    check_names,
    parents_of,
    sort_names,
)
from acbo.named.frozen_map import as_float
from acbo.named.mechanisms import LinearMechanism, as_mechanism
from acbo.scm import AbstractSCM
from acbo.types import Index
from jaxrig.keys import named_key
from jaxrig.static import freeze, thaw

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
        """Column of the target; ValueError where the model has none."""
        if self.target_name is None:
            raise ValueError("the model has no target: create_scm(..., target=name)")
        return jnp.asarray(self.names.index(self.target_name))

    @property
    def mask(self) -> Bool[Array, " d"]:
        """Every column is a variable."""
        return jnp.ones(len(self.names), bool)

    @property
    def allowed(self) -> Bool[Array, " d"]:
        """Which columns may be set: those with a range, never the target."""
        return jnp.asarray([name in self.manipulable for name in self.names])

    @property
    def metadata(self) -> dict[str, Any]:
        """Notes about the model; changing the dictionary changes no model."""
        return thaw(self.notes)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Allowed values of each variable that may be set."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        places = {name: self.names.index(name) for name in self.manipulable}
        return {n: (float(str(low[i])), float(str(high[i]))) for n, i in places.items()}

    def __getitem__(self, key: str) -> Any:
        """The documented parts: variables, edges, mechanisms, target, metadata."""
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
        """One key per variable, from its name: no other variable changes its noise."""
        return {name: named_key(key, name) for name in self.order}

    def respond(
        self,
        noise: dict[str, Any],
        intervention: Intervention,
        clip_to_range: bool = False,
    ) -> Float[Array, " d"]:
        """Each variable in turn from its causes and its key."""
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
        value = value + intervention.shift[place]
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
    """A checked model. `variables` are all of them, in column order (a set: sorted).

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
    check_mechanisms(everything, links, mechanisms)
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


def check_mechanisms(
    names: Sequence[str], edges: frozenset[Edge], mechanisms: Mapping[str, Any]
) -> None:
    """ValueError unless each variable has one mechanism, over exactly its causes."""
    missing = [name for name in names if name not in mechanisms]
    if missing:
        raise ValueError(f"variable {missing[0]!r} has no mechanism: give one")
    for name, mechanism in mechanisms.items():
        check_known(name, names, "mechanisms: variable")
        if not isinstance(mechanism, LinearMechanism):
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
        low, high = (as_float(b, f"range of {name!r}") for b in bounds)
        if low > high:
            raise ValueError(
                f"the range of {name!r} is {low} to {high}: give low first"
            )
    pairs = [ranges.get(name, UNLIMITED) for name in names]
    columns = np.asarray(pairs, dtype=float).reshape(-1, 2).T
    return jnp.asarray(columns[0], dtype=float), jnp.asarray(columns[1], dtype=float)
