"""What experiments are worth: rewards, exploration bonuses and their schedules."""

from acbo.acquisition.exploration import (
    ExplorationTrainingConfig,
    count_bonus,
    epistemic_bonus,
    exploration_bonus,
    exploration_temperature,
    variable_uncertainty,
)
from acbo.acquisition.rewards import (
    AcquisitionState,
    RewardComponents,
    RewardWeights,
    compute_rewards,
)

__all__ = [
    "AcquisitionState",
    "ExplorationTrainingConfig",
    "RewardComponents",
    "RewardWeights",
    "compute_rewards",
    "count_bonus",
    "epistemic_bonus",
    "exploration_bonus",
    "exploration_temperature",
    "variable_uncertainty",
]
