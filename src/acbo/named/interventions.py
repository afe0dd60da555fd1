"""Interventions by name: specifications, the checks of a model, and their arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acbo.interventions import Intervention
from acbo.named.digraph import check_known
from acbo.named.frozen_map import FrozenMap, as_float
from acbo.named.model import NamedSCM

PERFECT, SHIFT = "perfect", "shift"


@dataclass(frozen=True)
class InterventionSpec:
    """What is done: `type`, the `targets` and one value for each."""

    type: str
    targets: frozenset[str]
    values: FrozenMap[float]
    metadata: FrozenMap[Any] = field(default_factory=FrozenMap)

    def __getitem__(self, key: str) -> Any:
        """The documented parts: type, targets, values, metadata."""
        if key not in ("type", "targets", "values", "metadata"):
            raise KeyError(f"{key!r}: a spec has type, targets, values, metadata")
        return getattr(self, key)


def create_perfect_intervention(
    targets: Any, values: Any, metadata: Mapping[str, Any] | None = None
) -> InterventionSpec:
    """do(target = value) for each of a set of targets: their causes are cut off."""
    return create_intervention(PERFECT, targets, values, metadata)


def create_shift_intervention(
    targets: Any, values: Any, metadata: Mapping[str, Any] | None = None
) -> InterventionSpec:
    """Each target keeps its causes and is moved by its value."""
    return create_intervention(SHIFT, targets, values, metadata)


def create_intervention(
    type: str, targets: Any, values: Any, metadata: Mapping[str, Any] | None = None
) -> InterventionSpec:
    """A checked specification of any type: a set of targets, one value for each."""
    if not isinstance(targets, set | frozenset):
        raise ValueError(f"targets={targets!r} is no set: give a set of names")
    if not isinstance(values, Mapping):
        raise ValueError(f"values={values!r} is no dictionary: give {{target: value}}")
    if not targets:
        raise ValueError("targets is empty: name at least one variable")
    missing, extra = sorted(targets - set(values)), sorted(set(values) - targets)
    if missing:
        raise ValueError(f"target {missing[0]!r} has no value: give one")
    if extra:
        raise ValueError(f"{extra[0]!r} has a value and is no target: leave it out")
    numbers = {n: as_float(values[n], f"value of {n!r}") for n in sorted(targets)}
    return InterventionSpec(
        type, frozenset(targets), FrozenMap(numbers), FrozenMap(metadata or {})
    )


def check_settable(scm: NamedSCM, name: str) -> None:
    """ValueError, saying why, unless this variable of the model may be set."""
    if name in scm.hidden:
        raise ValueError(f"variable {name!r} is hidden and cannot be set")
    check_known(name, scm.names)
    if name == scm.target_name:
        raise ValueError(f"{name!r} is the target, which is never set: set its causes")
    if name not in scm.manipulable:
        raise ValueError(
            f"variable {name!r} has no range and cannot be set; settable are: "
            f"{', '.join(scm.manipulable)}"
        )


def check_values(scm: NamedSCM, values: Mapping[str, Any]) -> dict[str, float]:
    """Values to set, as floats; ValueError for one that the model does not allow."""
    ranges = scm.ranges
    found = {}
    for name, value in values.items():
        check_settable(scm, name)
        number = as_float(value, f"value of {name!r}")
        low, high = ranges[name]
        if not low <= number <= high:
            raise ValueError(
                f"value {number:g} of {name!r} is outside its range {low:g} to {high:g}"
            )
        found[name] = number
    return found


def as_columns(scm: NamedSCM, spec: InterventionSpec | None) -> np.ndarray:
    """What a perfect or shift specification (None: nothing) does to each column.

    Three rows: whether it is set, to what, and by how much it is shifted. Shifts have
    no range: a range is of values that are set.
    """
    columns = np.zeros((3, len(scm.names)))
    if spec is None:
        return columns
    if spec.type == PERFECT:
        check_values(scm, spec.values)
    for name, value in spec.values.items():
        check_settable(scm, name)
        place = scm.names.index(name)
        columns[:, place] = (1, value, 0) if spec.type == PERFECT else (0, 0, value)
    return columns


def as_arrays(scm: NamedSCM, specs: Sequence[InterventionSpec | None]) -> Intervention:
    """A stack of interventions, one for each specification, as the model's columns."""
    distinct = {id(spec): as_columns(scm, spec) for spec in specs}
    stack = np.stack([distinct[id(spec)] for spec in specs])
    as_rows = lambda rows: jnp.asarray(rows, dtype=float)
    mask = jnp.asarray(stack[:, 0] != 0)
    return Intervention(mask, as_rows(stack[:, 1]), as_rows(stack[:, 2]))


def as_array(scm: NamedSCM, spec: InterventionSpec | None) -> Intervention:
    """One intervention as the model's columns."""
    return jax.tree.map(lambda rows: rows[0], as_arrays(scm, [spec]))
