"""From easy problems to hard ones: levels, the rule to advance, mixes of examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from acbo.training.examples import TrainingBatch, TrainingExample

DIFFICULTIES = ("easy", "medium", "hard")
MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class CurriculumLevel:
    """What problems of a level are like, and what it takes to leave it."""

    variables: tuple[int, int]
    edges: tuple[int, int]
    noise: tuple[float, float]
    min_f1: float
    min_improvement: float
    max_steps: int
    window: int

    def is_passed(self, f1: Sequence[float], improvement: float) -> bool:
        """Whether the last `window` F1 scores all pass, and the improvement does."""
        last = list(f1)[-self.window :]
        stable = len(last) == self.window and min(last) >= self.min_f1
        return stable and improvement >= self.min_improvement


LEVELS = (
    CurriculumLevel((3, 5), (2, 4), (0.1, 0.3), 0.8, 0.20, 1000, 50),
    CurriculumLevel((5, 8), (4, 8), (0.3, 0.6), 0.7, 0.15, 2000, 75),
    CurriculumLevel((8, 12), (8, 15), (0.6, 1.0), 0.6, 0.10, 3000, 100),
    CurriculumLevel((12, 20), (15, 30), (1.0, 1.5), 0.5, 0.05, 4000, 150),
    CurriculumLevel((20, 30), (30, 60), (1.5, 2.0), 0.4, 0.02, 5000, 200),
)


@dataclass(frozen=True)
class Progress:
    """Where a learner is in the curriculum; `attempt` counts from 1."""

    level: int = 0
    attempt: int = 1
    steps: int = 0
    f1: tuple[float, ...] = ()
    finished: bool = False


def advance(
    progress: Progress,
    f1: float,
    improvement: float,
    levels: Sequence[CurriculumLevel] = LEVELS,
) -> Progress:
    """Progress after one more step: on, up a level, again, or finished.

    A level is tried again when its steps are used up, three times at most.
    """
    if progress.finished:
        return progress
    level = levels[progress.level]
    scores = (*progress.f1, f1)[-level.window :]
    if level.is_passed(scores, improvement):
        if progress.level + 1 == len(levels):
            return Progress(progress.level, progress.attempt, finished=True)
        return Progress(progress.level + 1)
    steps = progress.steps + 1
    if steps < level.max_steps:
        return Progress(progress.level, progress.attempt, steps, scores)
    last_try = progress.attempt == MAX_ATTEMPTS
    attempt = progress.attempt if last_try else progress.attempt + 1
    return Progress(progress.level, attempt, finished=last_try)


def classify_difficulty(n_nodes: int, expert_accuracy: float = 1.0) -> str:
    """Easy: at most 5 nodes, expert above 0.9; medium: at most 8, above 0.7."""
    if n_nodes <= 5 and expert_accuracy > 0.9:
        return "easy"
    return "medium" if n_nodes <= 8 and expert_accuracy > 0.7 else "hard"


@dataclass(frozen=True)
class Mix:
    """Shares of easy, medium and hard examples up to a training step."""

    until: float
    shares: tuple[float, float, float]

    def __post_init__(self) -> None:
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-6:
            raise ValueError(f"shares={self.shares} must be at least 0 and sum to 1")


CURRICULUM_SCHEDULE = (
    Mix(500, (0.8, 0.2, 0.0)),
    Mix(1500, (0.5, 0.4, 0.1)),
    Mix(float("inf"), (0.3, 0.4, 0.3)),
)


def progressive_curriculum_sampling(
    examples: Sequence[TrainingExample],
    batch_size: int,
    training_step: int,
    curriculum_schedule: Sequence[Any] | None,
    key: PRNGKeyArray,
    max_parent_size: int = 3,
) -> TrainingBatch:
    """A batch mixed as the schedule says for this step, without repetition.

    The schedule is a list of `Mix` or (until_step, (easy, medium, hard)), by default
    `CURRICULUM_SCHEDULE`. Where a class has too few examples the others fill up, so a
    batch is short only when there are fewer examples altogether.
    """
    schedule = [
        entry if isinstance(entry, Mix) else Mix(entry[0], tuple(entry[1]))
        for entry in (curriculum_schedule or CURRICULUM_SCHEDULE)
    ]
    mix = next((m for m in schedule if training_step < m.until), schedule[-1])
    order = np.asarray(jax.random.permutation(key, len(examples)))
    pools = {
        name: [i for i in order if examples[i].problem_difficulty == name]
        for name in DIFFICULTIES
    }
    total = min(batch_size, len(examples))
    chosen = []
    for name, count in zip(DIFFICULTIES, _counts(mix.shares, total), strict=True):
        chosen += pools[name][:count]
    taken = set(chosen)
    chosen += [i for i in order if i not in taken][: total - len(chosen)]
    return TrainingBatch([examples[i] for i in chosen], max_parent_size)


def _counts(shares: tuple[float, float, float], total: int) -> list[int]:
    """Whole numbers nearest to the shares that sum to the total."""
    exact = np.asarray(shares) * total
    counts = np.floor(exact + 1e-9).astype(int)
    for place in np.argsort(counts - exact, kind="stable")[: total - counts.sum()]:
        counts[place] += 1
    return counts.tolist()
