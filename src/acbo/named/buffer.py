"""An append-only record of named samples, in order of time."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from acbo.named.interventions import InterventionSpec
from acbo.named.samples import Sample, is_interventional, is_observational


@dataclass(frozen=True)
class BufferStatistics:
    """Counts of what a buffer holds; times in seconds since the epoch."""

    total_samples: int
    num_observations: int
    num_interventions: int
    unique_variables: int
    unique_intervention_types: int
    unique_intervention_targets: int
    creation_time: float
    last_update_time: float


class ExperienceBuffer:
    """Samples and the interventions that led to them; nothing is ever removed."""

    def __init__(self) -> None:
        self._entries: list[tuple[InterventionSpec | None, Sample]] = []
        self._created = self._updated = time.time()

    def add_observation(self, sample: Sample) -> None:
        """Append a row that was seen without doing anything."""
        if is_interventional(sample):
            raise ValueError(
                f"the sample was made by setting {sorted(sample.intervention_targets)}:"
                " use add_intervention"
            )
        self._append(None, sample)

    def add_intervention(self, spec: InterventionSpec, outcome: Sample) -> None:
        """Append a row and the intervention that led to it."""
        if is_observational(outcome):
            raise ValueError("the outcome is observational: use add_observation")
        if outcome.intervention_targets != spec.targets:
            raise ValueError(
                f"the outcome is of {sorted(outcome.intervention_targets)} and the "
                f"intervention of {sorted(spec.targets)}: they must be the same"
            )
        self._append(spec, outcome)

    def get_observations(self) -> list[Sample]:
        """Observational samples, in order of time."""
        return [sample for spec, sample in self._entries if spec is None]

    def get_interventions(self) -> list[tuple[InterventionSpec, Sample]]:
        """Interventions with their outcomes, in order of time."""
        return [(spec, sample) for spec, sample in self._entries if spec is not None]

    def get_all_samples(self) -> list[Sample]:
        """Observational samples first, then interventional ones."""
        return self.get_observations() + [s for _, s in self.get_interventions()]

    def get_chronological(self) -> list[Sample]:
        """All samples in the order in which they were added."""
        return [sample for _, sample in self._entries]

    def filter_by_variables(self, variables: Iterable[str]) -> list[Sample]:
        """Samples that hold a value of each of these variables."""
        wanted = frozenset(variables)
        return self._filter(lambda sample: wanted <= set(sample.values))

    def filter_interventions_by_targets(self, targets: Iterable[str]) -> list[Sample]:
        """Outcomes of interventions on exactly these targets."""
        wanted = frozenset(targets)
        return self._filter(
            lambda s: is_interventional(s) and s.intervention_targets == wanted
        )

    def filter_by_intervention_type(self, type: str | None) -> list[Sample]:
        """Samples of one type of intervention; None: observational ones."""
        return self._filter(lambda sample: sample.intervention_type == type)

    def batch_iterator(
        self, batch_size: int, include_observations: bool = True
    ) -> Iterator[list[Sample]]:
        """Samples in order of time, `batch_size` at once; the last may be short."""
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}: give 1 or more")
        keep = lambda sample: include_observations or is_interventional(sample)
        samples = self._filter(keep)
        for start in range(0, len(samples), batch_size):
            yield samples[start : start + batch_size]

    def size(self) -> int:
        """Number of samples."""
        return len(self._entries)

    def num_observations(self) -> int:
        """Number of observational samples."""
        return len(self.get_observations())

    def num_interventions(self) -> int:
        """Number of interventions."""
        return len(self.get_interventions())

    def __len__(self) -> int:
        return self.size()

    def get_variable_coverage(self) -> frozenset[str]:
        """Every variable that some sample holds."""
        return frozenset(name for _, s in self._entries for name in s.values)

    def get_statistics(self) -> BufferStatistics:
        """Counts and times."""
        outcomes = [sample for _, sample in self.get_interventions()]
        return BufferStatistics(
            total_samples=self.size(),
            num_observations=self.num_observations(),
            num_interventions=len(outcomes),
            unique_variables=len(self.get_variable_coverage()),
            unique_intervention_types=len({s.intervention_type for s in outcomes}),
            unique_intervention_targets=len(
                {name for s in outcomes for name in s.intervention_targets}
            ),
            creation_time=self._created,
            last_update_time=self._updated,
        )

    def _append(self, spec: InterventionSpec | None, sample: Sample) -> None:
        self._entries.append((spec, sample))
        self._updated = time.time()

    def _filter(self, keep: Callable[[Sample], bool]) -> list[Sample]:
        return [sample for sample in self.get_chronological() if keep(sample)]
