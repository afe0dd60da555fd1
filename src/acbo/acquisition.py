"""Rewards of experiments, from data and model alone.

Everything is pure and on arrays, so it can be compiled and mapped over episodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from acbo.types import lower_is_better
from jaxrig.settings import Checked, NotNegative


@dataclass(frozen=True)
class RewardWeights(Checked):
    """How much each component counts; `exploration_bonus` is the height of the last."""

    optimization: NotNegative = 1.0
    structure: NotNegative = 0.5
    parent: NotNegative = 0.3
    exploration: NotNegative = 0.1
    exploration_bonus: NotNegative = 0.1


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
    # A safe denominator inside as well: the gradient of a division by 0 is NaN even
    # where `where` does not choose it.
    there = entropy_before > 0
    share = (entropy_before - entropy_after) / jnp.where(there, entropy_before, 1.0)
    return jnp.where(there, jnp.clip(share, 0.0, 1.0), 0.0)


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
    chosen = getattr(action, "mask", None)
    if chosen is None:
        chosen = jnp.arange(before.parent_probs.shape[-1]) == action.variable
    gain = improvement(before.best_value, outcome, direction)
    learned = information_gain(before.entropy, after.entropy)
    count = jnp.maximum(chosen.sum(), 1).astype(before.counts.dtype)
    over = lambda x: jnp.where(chosen, x, 0.0).sum() / count
    cause = over(before.parent_probs)
    # Novelty: 1 minus the share of earlier interventions on the chosen variables.
    tried = over(before.counts) / jnp.maximum(before.counts.sum(), 1.0)
    explored = weights.exploration_bonus * (1.0 - tried)
    total = (
        weights.optimization * gain
        + weights.structure * learned
        + weights.parent * cause
        + weights.exploration * explored
    )
    return RewardComponents(gain, learned, cause, explored, total)
