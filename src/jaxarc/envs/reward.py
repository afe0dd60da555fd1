"""What a step is worth."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxarc.ops.names import FIRST_CONTROL


class Outcome(eqx.Module):
    """What a step did, as far as its reward is concerned.

    `improvement` is 0 across a switch of pairs; `newly_solved` is True once per pair;
    `settled` when a delayed reward falls due: on Submit or at the step limit.
    """

    operation: Int[Array, ""]
    testing: Bool[Array, ""]
    submitted: Bool[Array, ""]
    settled: Bool[Array, ""]
    solved: Bool[Array, ""]
    newly_solved: Bool[Array, ""]
    others_solved: Bool[Array, ""]
    improvement: Float[Array, ""]
    similarity: Float[Array, ""]
    step_count: Int[Array, ""]
    replaced: Bool[Array, ""]


def reward_of(outcome: Outcome, config: Any) -> Float[Array, ""]:
    """The reward of a step, by the rules of `RewardConfig`."""
    rules = config.reward
    delayed = config.episode.training_reward_frequency == "submit"
    training = _training_reward(outcome, rules)
    if delayed:
        training = jnp.where(outcome.settled, training, 0.0)
    earned = jnp.where(outcome.testing, _testing_reward(outcome, rules), training)
    control = rules.control_operation_penalty + rules.pair_switching_bonus
    earned = earned + _when(outcome.operation >= FIRST_CONTROL, control)
    if config.action.invalid_operation_policy == "penalize":
        earned = earned + _when(outcome.replaced, rules.invalid_action_penalty)
    return (earned + rules.step_penalty).astype(jnp.float32)


def _training_reward(outcome: Outcome, rules: Any) -> Float[Array, ""]:
    weight = rules.similarity_weight * rules.training_similarity_weight
    return (
        weight * outcome.improvement
        + _when(outcome.improvement > 0, rules.progress_bonus)
        + _bonuses(outcome, rules, rules.demo_completion_bonus)
        + _wrong_answer(outcome, rules)
    )


def _testing_reward(outcome: Outcome, rules: Any) -> Float[Array, ""]:
    weight = rules.similarity_weight * rules.evaluation_similarity_weight
    due = (
        weight * outcome.similarity
        + _bonuses(outcome, rules, rules.test_completion_bonus)
        + _wrong_answer(outcome, rules)
    )
    return jnp.where(outcome.submitted, due, 0.0)


def _bonuses(outcome: Outcome, rules: Any, completion: float) -> Float[Array, ""]:
    """What solving a pair brings, the first time."""
    early = outcome.step_count <= rules.efficiency_bonus_threshold
    again = outcome.others_solved
    bonus = (
        rules.success_bonus
        + completion
        + _when(early, rules.efficiency_bonus)
        + _when(again, rules.consecutive_success_bonus)
    )
    return jnp.where(outcome.newly_solved, bonus, 0.0)


def _wrong_answer(outcome: Outcome, rules: Any) -> Float[Array, ""]:
    wrong = outcome.submitted & ~outcome.solved
    return _when(wrong, rules.unsolved_submission_penalty)


def _when(condition: Bool[Array, ""], amount: float) -> Float[Array, ""]:
    return jnp.where(condition, jnp.float32(amount), jnp.float32(0.0))
