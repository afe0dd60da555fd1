"""Examples to learn from: a data set, and what an expert makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

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


def create_training_batch_from_examples(
    examples: Sequence[TrainingExample],
    batch_size: int,
    key: PRNGKeyArray,
    max_parent_size: int = 3,
) -> TrainingBatch:
    """A uniform choice without repetition; all examples where there are fewer."""
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be at least 1")
    if len(examples) <= batch_size:
        return TrainingBatch(list(examples), max_parent_size)
    chosen = jax.random.choice(key, len(examples), (batch_size,), replace=False)
    picked = [examples[i] for i in jax.device_get(chosen).tolist()]
    return TrainingBatch(picked, max_parent_size)


def extract_training_data_from_demonstrations(
    demos: Sequence[Any], validation_split: float = 0.2
) -> tuple[list[TrainingExample], list[TrainingExample]]:
    """Examples for training and for validation, which gets the first share of them.

    A demonstration is an example, or anything with a list of them in `.examples`.
    """
    if not 0 <= validation_split < 1:
        raise ValueError(f"validation_split={validation_split} must be in [0, 1)")
    examples: list[TrainingExample] = []
    for demo in demos:
        examples.extend([demo] if isinstance(demo, TrainingExample) else demo.examples)
    kept = int(len(examples) * validation_split)
    return examples[kept:], examples[:kept]
