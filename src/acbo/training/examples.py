"""Examples to learn from: a data set, and what an expert makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acbo.posterior import ParentSetPosterior


@dataclass(frozen=True, eq=False)
class TrainingExample:
    """A data tensor [rows, variables, 3] and the expert's posterior for it.

    `scm_info` may hold `true_parents`, which calibration and accuracy compare with.
    """

    observational_data: Any
    target_variable: str
    variable_order: Sequence[str]
    expert_posterior: ParentSetPosterior
    expert_accuracy: float
    scm_info: Mapping[str, Any] = field(default_factory=dict)
    problem_difficulty: str = "medium"

    @property
    def true_parents(self) -> frozenset[str] | None:
        """The true parents of the target, where they are known."""
        known = self.scm_info.get("true_parents")
        return None if known is None else frozenset(known)


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Examples for one step. Candidates are all sets of up to `max_parent_size`
    variables, or of more where an expert's sets are larger.
    """

    examples: Sequence[TrainingExample]
    max_parent_size: int = 3

    @property
    def batch_size(self) -> int:
        """How many examples there are."""
        return len(self.examples)
