"""One row of data by name, with what was done to get it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from acbo.named.digraph import check_known
from acbo.named.frozen_map import FrozenMap, as_float


@dataclass(frozen=True)
class Sample:
    """Values by name; observational rows have no intervention type and no targets."""

    values: FrozenMap[float]
    intervention_type: str | None = None
    intervention_targets: frozenset[str] = frozenset()
    metadata: FrozenMap[Any] = field(default_factory=FrozenMap)

    def __getitem__(self, key: str) -> Any:
        """The documented parts: values, intervention_type, ..._targets, metadata."""
        if key not in self.__dataclass_fields__:
            parts = ", ".join(self.__dataclass_fields__)
            raise KeyError(f"{key!r}: a sample has {parts}")
        return getattr(self, key)


def create_sample(
    values: Mapping[str, Any],
    intervention_type: str | None = None,
    intervention_targets: Iterable[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Sample:
    """A checked row, observational unless a type and targets are given."""
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


def create_interventional_sample(
    values: Mapping[str, Any],
    intervention_type: str,
    targets: Iterable[str],
    metadata: Mapping[str, Any] | None = None,
) -> Sample:
    """A row seen after an intervention of this type on these targets."""
    return create_sample(values, intervention_type, targets, metadata)


def create_observational_sample(
    values: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> Sample:
    """A row seen without doing anything."""
    return create_sample(values, metadata=metadata)


def is_observational(sample: Sample) -> bool:
    """Whether nothing was done."""
    return sample.intervention_type is None


def is_interventional(sample: Sample) -> bool:
    """Whether some variable was changed."""
    return sample.intervention_type is not None


def get_values(sample: Sample) -> FrozenMap[float]:
    """All values by name."""
    return sample.values


def get_value(sample: Sample, variable: str) -> float:
    """The value of one variable; ValueError listing the names for an unknown one."""
    check_known(variable, sample.values)
    return sample.values[variable]


def get_intervention_type(sample: Sample) -> str | None:
    """Type of the intervention, None for an observational row."""
    return sample.intervention_type


def get_intervention_targets(sample: Sample) -> frozenset[str]:
    """Variables that were changed, none for an observational row."""
    return sample.intervention_targets


def get_metadata(sample: Sample) -> FrozenMap[Any]:
    """Notes about the row."""
    return sample.metadata
