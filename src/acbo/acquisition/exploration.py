"""Reasons to try a variable beyond its promise, and how that urge cools down."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from acbo.acquisition.rewards import AcquisitionState

STRATEGIES = ("adaptive", "fixed")


@dataclass(frozen=True)
class ExplorationTrainingConfig:
    """Weights of the bonuses and the temperature of the choice.

    "adaptive" cools linearly from the first temperature to the last within
    `temperature_steps`; "fixed" stays at the first.
    """

    strategy: str = "adaptive"
    uncertainty_weight: float = 1.0
    count_weight: float = 0.1
    variable_weight: float = 0.5
    initial_temperature: float = 2.0
    final_temperature: float = 0.1
    temperature_steps: int = 1000

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            allowed = ", ".join(STRATEGIES)
            raise ValueError(f"strategy={self.strategy!r} is not one of: {allowed}")
        for name in ("uncertainty_weight", "count_weight", "variable_weight"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 0")
        for name in ("initial_temperature", "final_temperature", "temperature_steps"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)} must be above 0")


def variable_uncertainty(
    parent_probs: Float[Array, "*batch d"],
) -> Float[Array, "*batch d"]:
    """1 - 2|p - 1/2|: 1 where it is open whether a variable is a cause."""
    return 1.0 - 2.0 * jnp.abs(parent_probs - 0.5)


def epistemic_bonus(
    parent_probs: Float[Array, "*batch d"], entropy: Float[Array, "*batch"]
) -> Float[Array, "*batch d"]:
    """Uncertainty of each variable times the entropy (nats) in bits."""
    bits = jnp.expand_dims(entropy, -1) / math.log(2.0)
    return variable_uncertainty(parent_probs) * bits


def count_bonus(counts: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """1 - the share of the interventions that each variable got; 1 before the first."""
    return 1.0 - counts / jnp.maximum(counts.sum(-1, keepdims=True), 1.0)


def exploration_bonus(
    state: AcquisitionState, config: ExplorationTrainingConfig
) -> Float[Array, "*batch d"]:
    """Weighted sum of the three bonuses for every variable."""
    return (
        config.uncertainty_weight * epistemic_bonus(state.parent_probs, state.entropy)
        + config.count_weight * count_bonus(state.counts)
        + config.variable_weight * variable_uncertainty(state.parent_probs)
    )


def exploration_temperature(
    step: int | Int[Array, ""], config: ExplorationTrainingConfig
) -> Float[Array, ""]:
    """The temperature that logits are divided by at a training step."""
    if config.strategy == "fixed":
        return jnp.asarray(config.initial_temperature)
    share = jnp.clip(jnp.asarray(step, jnp.float32) / config.temperature_steps, 0, 1)
    first, last = config.initial_temperature, config.final_temperature
    return first + share * (last - first)
