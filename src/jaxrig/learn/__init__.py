"""Learners: rollout, PPO and GRPO over one small environment protocol."""

from jaxrig.learn.grpo import (
    GRPOConfig,
    GRPOState,
    GRPOUpdate,
    grpo_advantages,
    grpo_init,
    grpo_loss,
    grpo_update,
)
from jaxrig.learn.ppo import PPOConfig, PPOState, ppo_init, ppo_update
from jaxrig.learn.rollout import (
    Choice,
    Environment,
    Evaluation,
    Policy,
    Step,
    rollout,
    start_runner,
)
from jaxrig.learn.train import JsonLines, train

__all__ = [
    "Choice",
    "Environment",
    "Evaluation",
    "GRPOConfig",
    "GRPOState",
    "GRPOUpdate",
    "JsonLines",
    "PPOConfig",
    "PPOState",
    "Policy",
    "Step",
    "grpo_advantages",
    "grpo_init",
    "grpo_loss",
    "grpo_update",
    "ppo_init",
    "ppo_update",
    "rollout",
    "start_runner",
    "train",
]
