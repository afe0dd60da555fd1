"""Rewards of experiments and exploration bonuses, from data and model alone.

Everything is pure and on arrays, so it can be compiled and mapped over episodes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from acbo.types import lower_is_better


@dataclass(frozen=True)
class RewardWeights:
    """How much each component counts; `exploration_bonus` is the height of the last."""

    optimization: float = 1.0
    structure: float = 0.5
    parent: float = 0.3
    exploration: float = 0.1
    exploration_bonus: float = 0.1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name}={value} must be finite and at least 0")


DEFAULT_WEIGHTS = RewardWeights()


class AcquisitionState(eqx.Module):
    """What rewards look at, before and after an experiment."""

    best_value: Float[Array, "*batch"]
    entropy: Float[Array, "*batch"]  # of the parent-set posterior, in nats
    parent_probs: Float[Array, "*batch d"]  # marginal: P(variable causes the target)
    counts: Float[Array, "*batch d"]  # interventions on each variable so far


class RewardComponents(eqx.Module):
    """The components of one reward, not yet weighted, and their weighted sum."""

    optimization: Float[Array, "*batch"]
    structure: Float[Array, "*batch"]
    parent: Float[Array, "*batch"]
    exploration: Float[Array, "*batch"]
    total: Float[Array, "*batch"]


def improvement(
    best_before: Float[Array, "*batch"], outcome: Float[Array, "*batch"], direction: str
) -> Float[Array, "*batch"]:
    """Return the tanh of the gain over the best value so far; below 0 if worse."""
    return jnp.tanh(lower_is_better(direction) * (best_before - outcome))


def information_gain(
    entropy_before: Float[Array, "*batch"], entropy_after: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Return the share of the entropy that was removed, in [0, 1]; 0 if none."""
    there = entropy_before > 0
    share = (entropy_before - entropy_after) / jnp.where(there, entropy_before, 1.0)
    return jnp.where(there, jnp.clip(share, 0.0, 1.0), 0.0)


def chosen_variables(action: Any, d: int) -> Bool[Array, " d"]:
    """Return which variables an action sets: one with a `variable`, or several in a
    `mask`.
    """
    if hasattr(action, "mask"):
        return action.mask
    return jnp.arange(d) == action.variable


def _mean_over(values: Float[Array, " d"], chosen: Bool[Array, " d"]) -> Array:
    count = jnp.maximum(chosen.sum(), 1).astype(values.dtype)
    return jnp.where(chosen, values, 0.0).sum() / count


def novelty(counts: Float[Array, " d"], chosen: Bool[Array, " d"]) -> Float[Array, ""]:
    """Return 1 minus the share of earlier interventions on the chosen variables."""
    return 1.0 - _mean_over(counts, chosen) / jnp.maximum(counts.sum(), 1.0)


def compute_rewards(
    before: AcquisitionState,
    action: Any,
    outcome: Float[Array, ""],
    after: AcquisitionState,
    *,
    direction: str = "MINIMIZE",
    weights: RewardWeights | Mapping[str, float] = DEFAULT_WEIGHTS,
) -> RewardComponents:
    """Return the reward of one experiment; `outcome` is the value of the target.

    `action` has a `variable` (one is set) or a `mask` (several are). Map it with
    `jax.vmap` for batches.
    """
    if isinstance(weights, Mapping):
        weights = RewardWeights(**weights)
    chosen = chosen_variables(action, before.parent_probs.shape[-1])
    gain = improvement(before.best_value, outcome, direction)
    learned = information_gain(before.entropy, after.entropy)
    cause = _mean_over(before.parent_probs, chosen)
    explored = weights.exploration_bonus * novelty(before.counts, chosen)
    total = (
        weights.optimization * gain
        + weights.structure * learned
        + weights.parent * cause
        + weights.exploration * explored
    )
    return RewardComponents(gain, learned, cause, explored, total)


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
    """Return 1 - 2|p - 1/2|: 1 where a variable may or may not be a cause."""
    return 1.0 - 2.0 * jnp.abs(parent_probs - 0.5)


def epistemic_bonus(
    parent_probs: Float[Array, "*batch d"], entropy: Float[Array, "*batch"]
) -> Float[Array, "*batch d"]:
    """Uncertainty of each variable times the entropy (nats) in bits."""
    bits = jnp.expand_dims(entropy, -1) / math.log(2.0)
    return variable_uncertainty(parent_probs) * bits


def count_bonus(counts: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    """Return 1 minus each variable's share of the interventions; 1 before the first."""
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
    """Return the temperature that logits are divided by at a training step."""
    if config.strategy == "fixed":
        return jnp.asarray(config.initial_temperature)
    share = jnp.clip(jnp.asarray(step, jnp.float32) / config.temperature_steps, 0, 1)
    first, last = config.initial_temperature, config.final_temperature
    return first + share * (last - first)
