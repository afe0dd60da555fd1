"""Rows of data by name, the interventions behind them, drawing both from a model, and
samples as arrays.

The noise of a row depends on the seed, the row and the variable's name alone, so a row
drawn with and without an intervention differs by the effect of the intervention.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acbo.mechanisms import create_root_mechanism, plain_number, soften
from acbo.named.model import NamedSCM
from acbo.named.names import FrozenMap, check_known, check_names
from acbo.scm import Intervention, sample_rows
from acbo.types import CHANNELS, INTERVENED, TARGET, VALUE, as_float
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
    values, given = _allowed_values(scm, spec), scm.mechanisms
    if spec.type == PERFECT:
        changed = {n: create_root_mechanism(value, 0.0) for n, value in values.items()}
    else:
        changed = {n: soften(given[n], values[n], spec.scale[n]) for n in values}
    notes = scm.metadata | {
        "intervention_applied": True,
        "intervention_type": spec.type,
        "intervention_targets": spec.targets,
        "intervention_values": dict(spec.values),
    }
    if spec.type == SOFT:
        notes["intervention_scale"] = dict(spec.scale)
    return replace(scm, mechanisms=given | changed, notes=freeze(notes))


def _allowed_values(scm: NamedSCM, spec: InterventionSpec) -> dict[str, float]:
    """Return the numbers of an intervention that the model allows.

    Shifts and factors have no range: a range is of values that are set.
    """
    if spec.type == PERFECT:
        return check_values(scm, spec.values)
    for name in spec.targets:
        check_settable(scm, name)
    return dict(spec.values)


def as_array(scm: NamedSCM, spec: InterventionSpec | None) -> Intervention:
    """Return an intervention (None: nothing is done) as the model's columns."""
    d = len(scm.names)
    mask, values = np.zeros(d, bool), np.zeros(d)
    shift, scale = np.zeros(d), np.ones(d)
    if spec is not None:
        for name, value in _allowed_values(scm, spec).items():
            place = scm.names.index(name)
            if spec.type == PERFECT:
                mask[place], values[place] = True, value
            else:
                shift[place], scale[place] = value, spec.scale[name]
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


def samples_to_arrays(
    samples: Sequence[Sample], variable_order: Sequence[str] | None = None
) -> tuple[Float[Array, "n d"], Bool[Array, "n d"]]:
    """Return `values[n, d]` and `intervened[n, d]` of samples (names: sorted); cells
    that were changed softly count as intervened.
    """
    _, values, flags = _stack_samples(samples, variable_order)
    return jnp.asarray(values, dtype=float), jnp.asarray(flags)


STANDARDIZATIONS = ("default", "count", "none")
COUNT_OFFSET = 1e-8  # added before the logarithm, so that a count of 0 has one


def samples_to_avici_format(
    samples: Sequence[Sample],
    variable_order: Sequence[str] | None = None,
    target_variable: str | None = None,
    standardize: bool = True,
    standardization_type: str = "default",
) -> Float[Array, "n d 3"]:
    """Return value, intervened flag and target flag of each cell, the input of AVICI.

    Columns default to sorted names. Values are standardized by the mean and population
    standard deviation of all rows ("default"), of their logarithms ("count"), or not
    at all ("none").
    """
    names, values, flags = _stack_samples(samples, variable_order)
    kind = standardization_type if standardize else "none"
    tensor = np.zeros((*values.shape, CHANNELS))
    tensor[..., VALUE] = _standardize(values, kind)
    tensor[..., INTERVENED] = flags
    if target_variable is not None:
        check_known(target_variable, names)
        tensor[:, names.index(target_variable), TARGET] = 1.0
    return jnp.asarray(tensor, dtype=float)


samples_to_avici_data = samples_to_avici_format  # both names are documented


def _stack_samples(
    samples: Sequence[Sample], variable_order: Sequence[str] | None
) -> tuple[tuple[str, ...], Float[np.ndarray, "n d"], Bool[np.ndarray, "n d"]]:
    """Return column names, values in double precision, and which cells were set."""
    if not samples:
        raise ValueError("no samples: give at least one")
    order = sorted(samples[0].values) if variable_order is None else variable_order
    names = check_names(tuple(order))
    for number, sample in enumerate(samples, 1):
        missing = [name for name in names if name not in sample.values]
        if missing:
            raise ValueError(f"sample {number} has no value of {missing[0]!r}")
        for target in sample.intervention_targets:
            check_known(target, names)
    values = [[sample.values[name] for name in names] for sample in samples]
    flags = [[name in each.intervention_targets for name in names] for each in samples]
    return names, np.asarray(values, dtype=np.float64), np.array(flags)


def _standardize(values: Float[np.ndarray, "n d"], kind: str) -> np.ndarray:
    check_known(kind, STANDARDIZATIONS, "standardization_type")
    if kind == "none":
        return values
    if kind == "count":
        if (values < 0).any():
            raise ValueError(f"a count of {values.min():g}: counts are 0 or more")
        values = np.log(values + COUNT_OFFSET)
    std = values.std(0)
    return (values - values.mean(0)) / np.where(std == 0, 1.0, std)
