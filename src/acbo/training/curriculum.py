"""From easy problems to hard ones: levels, the rule to advance, mixes of examples.

When to stop training on one problem: it is learned, or enough was tried.

The way through the levels of a curriculum, in arrays that a checkpoint can hold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from acbo.families import SCMConfig
from acbo.policy.environment import EpisodeConfig
from acbo.surrogate.encode import variable_bucket
from jaxrig.settings import require

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
class ConvergenceConfig:
    """What counts as learned: accuracy and steady rewards, for `patience` episodes."""

    structure_accuracy: float = 0.95
    reward_variance: float = 0.05
    patience: int = 5
    min_episodes: int = 5
    max_episodes: int = 30
    window: int = 5

    def __post_init__(self) -> None:
        require(self, 0, 1, "structure_accuracy")
        require(self, 0, math.inf, "reward_variance")
        require(self, 1, math.inf, "patience", "min_episodes", "window")
        require(self, self.min_episodes, math.inf, "max_episodes")


@dataclass(frozen=True)
class ConvergenceState:
    """Episodes seen on a problem; `good` counts those in a row that were learned."""

    episodes: int = 0
    good: int = 0
    rewards: tuple[float, ...] = ()
    config: ConvergenceConfig = field(default_factory=ConvergenceConfig)

    @property
    def converged(self) -> bool:
        """Whether the problem is learned."""
        enough = self.episodes >= self.config.min_episodes
        return enough and self.good >= self.config.patience

    @property
    def exhausted(self) -> bool:
        """Whether the problem had all the episodes it may have."""
        return self.episodes >= self.config.max_episodes

    @property
    def should_rotate(self) -> bool:
        """Whether it is time for another problem."""
        return self.converged or self.exhausted


def observe_episode(
    state: ConvergenceState, structure_accuracy: float, reward: float
) -> ConvergenceState:
    """The state after one more episode with this accuracy and total reward."""
    config = state.config
    rewards = (*state.rewards, reward)[-config.window :]
    steady = len(rewards) == config.window
    steady = steady and float(np.var(rewards)) <= config.reward_variance
    right = structure_accuracy >= config.structure_accuracy
    good = state.good + 1 if steady and right else 0
    return ConvergenceState(state.episodes + 1, good, rewards, config)


@dataclass(frozen=True)
class Course:
    """Progress in the curriculum, and how steady the learner is on this level."""

    progress: Progress = field(default_factory=Progress)
    convergence: ConvergenceState = field(default_factory=ConvergenceState)


class CourseArrays(eqx.Module):
    """A course as arrays of one size; NaN where nothing was seen yet."""

    counts: Int[np.ndarray, " 6"]
    f1: Float[np.ndarray, " window"]
    rewards: Float[np.ndarray, " last"]


def episodes_of(level: CurriculumLevel, base: EpisodeConfig) -> EpisodeConfig:
    """Episodes on models of a level: sizes, noise, and the density of its graphs."""
    density = sum(level.edges) / sum(level.variables)
    families = ("er1",) if density < 1.25 else ("er1", "er2")
    scms = SCMConfig(families if density < 1.75 else ("er2",), noise=level.noise)
    bucket = variable_bucket(level.variables[1])
    return replace(base, scms=(scms,), sizes=level.variables, variables=bucket)


def follow(
    course: Course,
    levels: Sequence[CurriculumLevel],
    *,
    f1: float,
    improvement: float,
    accuracy: float,
    mean_reward: float,
) -> Course:
    """The course after one more round: a level is left when its own rule says so, or
    when what is learned on it has converged.
    """
    before = course.progress
    after = advance(before, f1, improvement, levels)
    steady = observe_episode(course.convergence, accuracy, mean_reward)
    if steady.converged and after.level == before.level and not after.finished:
        last = before.level + 1 == len(levels)
        after = replace(after, finished=True) if last else Progress(before.level + 1)
    if after.level != before.level or steady.should_rotate:
        steady = ConvergenceState(config=steady.config)
    return Course(after, steady)


def pack(course: Course, levels: Sequence[CurriculumLevel]) -> CourseArrays:
    """The course as arrays."""
    at, steady = course.progress, course.convergence
    counts = at.level, at.attempt, at.steps, at.finished, steady.episodes, steady.good
    window = max(level.window for level in levels)
    return CourseArrays(
        np.array(counts, np.int32),
        _padded(at.f1, window),
        _padded(steady.rewards, steady.config.window),
    )


def unpack(arrays: CourseArrays) -> Course:
    """The course of arrays."""
    level, attempt, steps, finished, episodes, good = map(int, arrays.counts)
    progress = Progress(level, attempt, steps, _known(arrays.f1), bool(finished))
    return Course(progress, ConvergenceState(episodes, good, _known(arrays.rewards)))


def _padded(values: Sequence[float], room: int) -> np.ndarray:
    found = np.full(room, np.nan, np.float32)
    found[: len(values)] = values
    return found


def _known(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(x) for x in np.asarray(values) if not np.isnan(x))
