"""From easy problems to hard ones: levels, the rule to advance, mixes of examples."""

from collections.abc import Sequence
from dataclasses import dataclass

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
