"""Rows of data by name, the interventions behind them, and drawing both from a model.

The noise of a row depends on the seed, the row and the variable's name alone, so a row
drawn with and without an intervention differs by the effect of the intervention.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acbo.mechanisms import ConstantMechanism, plain_number, soften
from acbo.named.model import NamedSCM
from acbo.named.names import FrozenMap, check_known
from acbo.scm import Intervention, sample_rows
from acbo.types import as_float
from jaxrig.compile_guard import compile_once
from jaxrig.static_arguments import freeze

PERFECT, SOFT = "perfect", "soft"


class _Parts:
    """Fields that can also be looked up by name, as in `sample["values"]`."""

    def __getitem__(self, key: str) -> Any:
        parts = vars(self)
        if key not in parts:
            raise KeyError(f"{key!r}: a {type(self).__name__} has {', '.join(parts)}")
        return parts[key]


@dataclass(frozen=True)
class Sample(_Parts):
    """Values by name; observational rows have no intervention type and no targets."""

    values: FrozenMap[float]
    intervention_type: str | None = None
    intervention_targets: frozenset[str] = frozenset()
    metadata: FrozenMap[Any] = field(default_factory=FrozenMap)


def create_sample(
    values: Mapping[str, Any],
    intervention_type: str | None = None,
    intervention_targets: Iterable[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Sample:
    """Return a checked row, observational unless a type and targets are given."""
    targets = frozenset(intervention_targets or ())
    if not values:
        raise ValueError("a sample without values: give {variable: number}")
    if (intervention_type is None) != (not targets):
        raise ValueError(
            f"intervention_type={intervention_type!r} with targets {sorted(targets)}: "
            "give both for an interventional sample, neither for an observational one"
        )
    for target in sorted(targets):
        check_known(target, values, "intervention target")
    numbers = {name: as_float(v, f"value of {name!r}") for name, v in values.items()}
    notes = FrozenMap(metadata or {})
    return Sample(FrozenMap(numbers), intervention_type, targets, notes)


@dataclass(frozen=True)
class InterventionSpec(_Parts):
    """What is done: `type`, the `targets` and one value for each.

    The values of a soft intervention are its shifts; `scale` has its factors.
    """

    type: str
    targets: frozenset[str]
    values: FrozenMap[float]
    scale: FrozenMap[float] = field(default_factory=FrozenMap)
    metadata: FrozenMap[Any] = field(default_factory=FrozenMap)


def create_perfect_intervention(
    targets: Any, values: Any, metadata: Mapping[str, Any] | None = None
) -> InterventionSpec:
    """Return do(target = value) for a set of targets: their causes are cut off."""
    numbers = _numbers(targets, values)
    return InterventionSpec(
        PERFECT, frozenset(targets), numbers, metadata=FrozenMap(metadata or {})
    )


def create_soft_intervention(
    targets: Any,
    shift: Any = None,
    scale: Any = None,
    metadata: Mapping[str, Any] | None = None,
) -> InterventionSpec:
    """Return a soft intervention: targets keep their causes, and their values become
    scale * value + shift, with one number for each target.

    Without `shift` nothing is added, without `scale` nothing is multiplied.
    """
    if shift is None and scale is None:
        raise ValueError(
            "neither shift nor scale is given, so nothing would change: give one"
        )
    _check_targets(targets)
    every = lambda number: dict.fromkeys(targets, number)
    shifts = _numbers(targets, every(0.0) if shift is None else shift, "shift")
    scales = _numbers(targets, every(1.0) if scale is None else scale, "scale")
    for name, factor in scales.items():
        if factor < 0:
            raise ValueError(
                f"scale {factor:g} of {name!r} is negative: give 0 or more, of which 1 "
                "changes nothing"
            )
    notes = FrozenMap(metadata or {})
    return InterventionSpec(SOFT, frozenset(targets), shifts, scales, notes)


def _check_targets(targets: Any) -> None:
    if not isinstance(targets, set | frozenset):
        raise ValueError(f"targets={targets!r} is not a set: pass a set of names")


def _numbers(targets: Any, values: Any, what: str = "value") -> FrozenMap[float]:
    """Return one checked number for each target."""
    _check_targets(targets)
    if not isinstance(values, Mapping):
        raise ValueError(
            f"{what}s={values!r} is not a dictionary: give {{target: {what}}}"
        )
    if not targets:
        raise ValueError("targets is empty: name at least one variable")
    missing, extra = sorted(targets - set(values)), sorted(set(values) - targets)
    if missing:
        raise ValueError(f"target {missing[0]!r} has no {what}: give one")
    if extra:
        raise ValueError(f"{extra[0]!r} has a {what} and is not a target: leave it out")
    return FrozenMap(
        {n: as_float(values[n], f"{what} of {n!r}") for n in sorted(targets)}
    )


def check_settable(scm: NamedSCM, name: str) -> None:
    """Raise ValueError, saying why, unless this variable of the model may be set."""
    if name in scm.hidden:
        raise ValueError(f"variable {name!r} is hidden and cannot be set")
    check_known(name, scm.names)
    if name == scm.target_name:
        raise ValueError(f"{name!r} is the target and cannot be set: set its causes")
    if name not in scm.manipulable:
        raise ValueError(
            f"variable {name!r} has no range and cannot be set; settable are: "
            f"{', '.join(scm.manipulable)}"
        )


def check_values(scm: NamedSCM, values: Mapping[str, Any]) -> dict[str, float]:
    """Return values to set as floats; ValueError for one that is not allowed."""
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


def apply_intervention(scm: NamedSCM, spec: InterventionSpec) -> NamedSCM:
    """Return the model after an intervention; edges and the given model stay.

    A perfect intervention turns its targets into constants; a soft one scales what
    their mechanisms give, and shifts it.
    """
    if spec.type == PERFECT:
        values = check_values(scm, spec.values)
        make = lambda name: ConstantMechanism(jnp.asarray(values[name]))
    else:
        make = lambda name: soften(
            scm.mechanisms[name], spec.values[name], spec.scale[name]
        )
    for name in spec.targets:
        check_settable(scm, name)
    notes = scm.metadata | {
        "intervention_applied": True,
        "intervention_type": spec.type,
        "intervention_targets": spec.targets,
        "intervention_values": dict(spec.values),
    }
    if spec.type == SOFT:
        notes["intervention_scale"] = dict(spec.scale)
    mechanisms = scm.mechanisms | {name: make(name) for name in spec.values}
    return replace(scm, mechanisms=mechanisms, notes=freeze(notes))


def as_array(scm: NamedSCM, spec: InterventionSpec | None) -> Intervention:
    """Return an intervention (None: nothing is done) as the model's columns.

    Shifts and factors have no range: a range is of values that are set.
    """
    d = len(scm.names)
    mask, values = np.zeros(d, bool), np.zeros(d)
    shift, scale = np.zeros(d), np.ones(d)
    if spec is not None:
        for name in spec.targets:
            check_settable(scm, name)
        places = [scm.names.index(name) for name in spec.values]
        if spec.type == PERFECT:
            mask[places] = True
            values[places] = list(check_values(scm, spec.values).values())
        else:
            shift[places] = list(spec.values.values())
            scale[places] = [spec.scale[name] for name in spec.values]
    rows = (jnp.asarray(row, dtype=float) for row in (values, shift, scale))
    return Intervention(jnp.asarray(mask), *rows)


# No bound on traces: names and graph of a model are part of the program, so every model
# is one, and so is every number of rows asked for.
_rows = compile_once(sample_rows, max_traces=None)


def sample_from_scm(scm: NamedSCM, n_samples: int, seed: int = 0) -> list[Sample]:
    """Draw observational samples; sample i depends on the seed and i only."""
    return _draw(scm, None, n_samples, seed)


def sample_with_intervention(
    scm: NamedSCM, spec: InterventionSpec, n_samples: int, seed: int = 0
) -> list[Sample]:
    """Draw samples under an intervention, with the noise of `sample_from_scm`'s seed.

    So whatever the intervention does not reach has the very values it has there.
    """
    return _draw(scm, spec, n_samples, seed)


def _draw(
    scm: NamedSCM, spec: InterventionSpec | None, count: int, seed: int
) -> list[Sample]:
    if not isinstance(count, Integral) or count < 0:
        raise ValueError(f"n_samples={count!r}: give a whole number, 0 or more")
    if count == 0:
        return []
    # A plain int: NumPy's would become an array in the compiled program.
    rows = _rows(jax.random.key(seed), scm, int(count), as_array(scm, spec))
    plain = [map(plain_number, row) for row in np.asarray(rows)]
    found = [dict(zip(scm.names, row, strict=True)) for row in plain]
    if spec is None:
        return [create_sample(values) for values in found]
    # Of what is set the value asked for, not its single precision.
    exact = dict(spec.values) if spec.type == PERFECT else {}
    return [create_sample(v | exact, spec.type, spec.targets) for v in found]
