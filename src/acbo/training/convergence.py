"""When to stop training on one problem: it is learned, or enough was tried."""

import math
from dataclasses import dataclass, field

import numpy as np

from jaxrig.learn.ranges import require


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
