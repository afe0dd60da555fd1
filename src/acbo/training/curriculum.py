"""From easy problems to hard ones: levels, and the rule that leads through them.

A level is left when its scores pass for long enough or when learning has converged on
it, and tried three times at most.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float, Int

from acbo.policy.environment import EpisodeConfig
from acbo.random_models import SCMConfig
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
    window: int  # F1 scores in a row that must pass


LEVELS = (
    CurriculumLevel((3, 5), (2, 4), (0.1, 0.3), 0.8, 0.20, 1000, 50),
    CurriculumLevel((5, 8), (4, 8), (0.3, 0.6), 0.7, 0.15, 2000, 75),
    CurriculumLevel((8, 12), (8, 15), (0.6, 1.0), 0.6, 0.10, 3000, 100),
    CurriculumLevel((12, 20), (15, 30), (1.0, 1.5), 0.5, 0.05, 4000, 150),
    CurriculumLevel((20, 30), (30, 60), (1.5, 2.0), 0.4, 0.02, 5000, 200),
)


@dataclass(frozen=True)
class ConvergenceConfig:
    """What counts as learned: accuracy and steady rewards, for `patience` rounds.

    Counting starts over after `max_rounds`.
    """

    structure_accuracy: float = 0.95
    reward_variance: float = 0.05
    patience: int = 5
    min_rounds: int = 5
    max_rounds: int = 30
    window: int = 5

    def __post_init__(self) -> None:
        require(self, 0, 1, "structure_accuracy")
        require(self, 0, math.inf, "reward_variance")
        require(self, 1, math.inf, "patience", "min_rounds", "window")
        require(self, self.min_rounds, math.inf, "max_rounds")


CONVERGENCE = ConvergenceConfig()


class CurriculumState(eqx.Module):
    """Where a learner is in the curriculum, in arrays that a checkpoint can hold.

    NaN stands for what was not seen yet.
    """

    level: Int[np.ndarray, ""]
    attempt: Int[np.ndarray, ""]  # from 1
    steps: Int[np.ndarray, ""]  # of this attempt
    finished: Bool[np.ndarray, ""]
    f1: Float[np.ndarray, " window"]  # last scores of this attempt
    rounds: Int[np.ndarray, ""]  # since convergence is watched
    good: Int[np.ndarray, ""]  # rounds in a row that were accurate and steady
    rewards: Float[np.ndarray, " last"]


def start_curriculum(
    levels: Sequence[CurriculumLevel] = LEVELS,
    convergence: ConvergenceConfig = CONVERGENCE,
) -> CurriculumState:
    """Return the state before the first round."""
    window = max(level.window for level in levels)
    unseen = lambda count: np.full(count, np.nan, np.float32)
    numbers = (0, 1, 0, False, unseen(window), 0, 0, unseen(convergence.window))
    return CurriculumState(*map(np.asarray, numbers))


def update_curriculum(
    state: CurriculumState,
    levels: Sequence[CurriculumLevel] = LEVELS,
    convergence: ConvergenceConfig = CONVERGENCE,
    *,
    f1: float,
    improvement: float,
    accuracy: float,
    mean_reward: float,
) -> CurriculumState:
    """Return the state after one more round with these scores."""
    level = levels[int(state.level)]
    scores, rewards = _append(state.f1, f1), _append(state.rewards, mean_reward)
    # NaN compares as False: a window that is not full yet never passes.
    stable = bool((scores[-level.window :] >= level.min_f1).all())
    passed = stable and improvement >= level.min_improvement
    steady = bool(np.var(rewards) <= convergence.reward_variance)
    learned = steady and accuracy >= convergence.structure_accuracy
    rounds, good = int(state.rounds) + 1, int(state.good) + 1 if learned else 0
    converged = rounds >= convergence.min_rounds and good >= convergence.patience

    place, attempt = int(state.level), int(state.attempt)
    steps, finished = int(state.steps) + 1, bool(state.finished)
    if not finished and (passed or converged):
        finished = place + 1 == len(levels)
        place, attempt = (place, attempt) if finished else (place + 1, 1)
        steps = 0
    elif not finished and steps >= level.max_steps:
        finished = attempt == MAX_ATTEMPTS
        attempt, steps = attempt + (not finished), 0
    if steps == 0:
        scores = np.full_like(scores, np.nan)
    if place != state.level or converged or rounds >= convergence.max_rounds:
        rounds, good, rewards = 0, 0, np.full_like(rewards, np.nan)
    numbers = (place, attempt, steps, finished, scores, rounds, good, rewards)
    return CurriculumState(*map(np.asarray, numbers))


def _append(values: np.ndarray, value: float) -> np.ndarray:
    """Return the values without the first, and this one at the end."""
    return np.append(values[1:], np.float32(value))


def episodes_of(level: CurriculumLevel, base: EpisodeConfig) -> EpisodeConfig:
    """Return episodes on models of a level: sizes, noise, and density of its graphs."""
    density = sum(level.edges) / sum(level.variables)
    families = ("er1",) if density < 1.25 else ("er1", "er2")
    scms = SCMConfig(families if density < 1.75 else ("er2",), noise=level.noise)
    bucket = variable_bucket(level.variables[1])
    return replace(base, scms=(scms,), sizes=level.variables, variables=bucket)


def classify_difficulty(n_nodes: int, expert_accuracy: float = 1.0) -> str:
    """Return "easy" for at most 5 nodes and an expert above 0.9, "medium" for at most 8
    and above 0.7, else "hard".
    """
    if n_nodes <= 5 and expert_accuracy > 0.9:
        return "easy"
    return "medium" if n_nodes <= 8 and expert_accuracy > 0.7 else "hard"
