"""Settings of training; every default lives here, and bad values are refused here."""

import math
from dataclasses import dataclass, field
from typing import Any

from acbo.acquisition import ExplorationTrainingConfig, RewardWeights
from jaxrig.learn import GRPOConfig
from jaxrig.settings import require, require_positive

RewardTrainingConfig = RewardWeights


@dataclass(frozen=True)
class SurrogateTrainingConfig:
    """How a surrogate is trained on examples with expert posteriors.

    Widths from 16 are allowed: small models for tests and first looks train too.
    """

    model_hidden_dim: int = 128
    model_n_layers: int = 6
    learning_rate: float = 1e-3
    batch_size: int = 32
    max_epochs: int = 100
    early_stopping_patience: int = 10
    validation_frequency: int = 5
    weight_decay: float = 1e-4
    max_parent_size: int = 5
    dropout: float = 0.1

    def __post_init__(self) -> None:
        require(self, 16, 512, "model_hidden_dim")
        require(self, 1, 16, "model_n_layers")
        require_positive(self, "learning_rate")
        require(self, 0, 0.1, "learning_rate")
        require(self, 1, 256, "batch_size")
        require(self, 1, math.inf, "max_epochs", "early_stopping_patience")
        require(self, 1, math.inf, "validation_frequency")
        require(self, 0, math.inf, "weight_decay")
        require(self, 1, 10, "max_parent_size")
        require(self, 0, 0.5, "dropout")

    def get_model_kwargs(self) -> dict[str, Any]:
        """Return what `create_parent_set_model` takes."""
        return {
            "layers": self.model_n_layers,
            "dim": self.model_hidden_dim,
            "dropout": self.dropout,
            "max_parent_size": self.max_parent_size,
        }


@dataclass(frozen=True)
class GRPOTrainingConfig:
    """How the policy is improved: sizes and coefficients of GRPO."""

    group_size: int = 64
    num_iterations: int = 4
    learning_rate: float = 3e-4
    clip_ratio: float = 0.2
    entropy_coeff: float = 0.01
    kl_penalty_coeff: float = 0.0
    max_grad_norm: float = 1.0
    scale_rewards: bool = True

    def __post_init__(self) -> None:
        require(self, 8, 256, "group_size")
        self.learner(1)

    def learner(self, states: int, horizon: int = 1) -> GRPOConfig:
        """Return the learner's settings for groups from so many states at once."""
        return GRPOConfig(states=states, horizon=horizon, **vars(self))


@dataclass(frozen=True)
class EvaluationConfig:
    """How often a system in training is evaluated, and on what."""

    eval_frequency: int = 50
    n_eval_trajectories: int = 20
    sizes: tuple[int, ...] = (5, 8, 10)

    def __post_init__(self) -> None:
        require(self, 1, math.inf, "eval_frequency", "n_eval_trajectories")
        if not self.sizes or min(self.sizes) < 2:
            raise ValueError(f"sizes={self.sizes}: graphs have at least 2 variables")


@dataclass(frozen=True)
class TrainingConfig:
    """Training of surrogate and policy together."""

    total_steps: int = 1000
    warmup_steps: int = 50
    log_frequency: int = 10
    save_frequency: int = 100
    seed: int = 42
    surrogate: SurrogateTrainingConfig = field(default_factory=SurrogateTrainingConfig)
    grpo: GRPOTrainingConfig = field(default_factory=GRPOTrainingConfig)
    rewards: RewardWeights = field(default_factory=RewardWeights)
    exploration: ExplorationTrainingConfig = field(
        default_factory=ExplorationTrainingConfig
    )
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        require(self, 1, math.inf, "total_steps", "log_frequency", "save_frequency")
        require(self, 0, self.total_steps, "warmup_steps")
        require(self, 0, math.inf, "seed")
