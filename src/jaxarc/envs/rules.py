"""The rules of an episode: allowed operations, the next pair, rewards.

Operations are allowed by the state, the configuration and the moment; an operation that
is not allowed is replaced as `ActionConfig.invalid_operation_policy` says.
"""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt

from jaxarc import bits
from jaxarc.bits import Flag, Index
from jaxarc.config import JaxArcConfig, RewardConfig
from jaxarc.episode import Episode, pack_flags, pair_counts
from jaxarc.ops.operations import FIRST_CONTROL, NUM_OPERATIONS
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.types import JaxArcTask

NO_OPERATION = -1
_THEMSELVES = np.array([*range(NUM_OPERATIONS), NO_OPERATION], np.int32)
_DEMO_SWITCHES = (
    Op.SWITCH_TO_NEXT_DEMO_PAIR,
    Op.SWITCH_TO_PREV_DEMO_PAIR,
    Op.SWITCH_TO_FIRST_UNSOLVED_DEMO,
)
_TEST_SWITCHES = (
    Op.SWITCH_TO_NEXT_TEST_PAIR,
    Op.SWITCH_TO_PREV_TEST_PAIR,
    Op.SWITCH_TO_FIRST_UNSOLVED_TEST,
)


def allowed_words(
    tasks: JaxArcTask, episode: Episode, config: JaxArcConfig
) -> UInt[Array, " two"]:
    """Return as bits what state and configuration allow and the moment gives sense."""
    action = config.action
    listed = action.allowed_operations
    configured = range(NUM_OPERATIONS) if listed is None else listed
    known = [number for number in configured if number < action.max_operations]
    words = episode.allowed & jnp.asarray(_bits(known))
    if action.dynamic_action_filtering and action.context_dependent_operations:
        demos, tests = pair_counts(tasks, episode.task_row)
        training = episode.episode_mode == 0
        senseless = jnp.where(training & (demos > 1), 0, _bits(_DEMO_SWITCHES))
        senseless |= jnp.where(~training & (tests > 1), 0, _bits(_TEST_SWITCHES))
        first = episode.step_count == 0
        senseless |= jnp.where(first, _bits((Op.RESET_CURRENT_PAIR,)), 0)
        words = words & ~senseless.astype(words.dtype)
    return words


def _bits(operations: Iterable[int]) -> np.ndarray:
    mask = np.zeros(NUM_OPERATIONS, bool)
    mask[list(operations)] = True
    return pack_flags(mask)


def filter_operation(
    operation: Index, allowed: UInt[Array, " two"], policy: str
) -> tuple[Index, Flag]:
    """Return the operation to run, and whether it differs from the requested one.

    `clip` and `penalize` take the nearest allowed one, the lower of two as near, and 0
    where none is allowed; `reject` gives -1, which does nothing.
    """
    word = jnp.where(operation < 32, allowed[0], allowed[1])
    bit = bits.words(operation % 32, allowed.dtype)
    fine = word >> bit & bits.words(1, allowed.dtype) == 1
    if policy == "passthrough":
        return operation, jnp.zeros((), bool)
    if policy == "reject":
        other = jnp.full_like(operation, NO_OPERATION)
    else:
        other = _nearest(operation, allowed)
    return _materialized(jnp.where(fine, operation, other)), ~fine


def _materialized(operation: Index) -> Index:
    """Return the same operation, looked up in a table of themselves.

    XLA does not repeat a look-up, while the arithmetic above would be fused into every
    loop over cells that depends on the operation and done again for each cell.
    """
    return jnp.asarray(_THEMSELVES)[operation % len(_THEMSELVES)]


def _nearest(operation: Index, allowed: UInt[Array, " two"]) -> Index:
    below = _highest(allowed & _up_to(operation, allowed.dtype))
    above = _lowest(allowed & ~_up_to(operation, allowed.dtype))
    lower = (below >= 0) & ((above < 0) | (operation - below <= above - operation))
    return jnp.maximum(jnp.where(lower, below, above), 0)


def _up_to(operation: Index, dtype: Any) -> UInt[Array, " two"]:
    """Return the bits of every operation up to and including this one."""
    count = jnp.stack([operation + 1, operation + 1 - 32])
    return bits.below(jnp.clip(count, 0, 32), dtype)


def _highest(words: UInt[Array, " two"]) -> Index:
    """Return the highest bit set; -1 where there is none."""
    tops = 31 - jax.lax.clz(words).astype(jnp.int32)
    return jnp.where(tops[1] >= 0, tops[1] + 32, tops[0])


def _lowest(words: UInt[Array, " two"]) -> Index:
    """Return the lowest bit set; -1 where there is none."""
    # x & -x isolates the lowest bit.
    single = words & (bits.words(0, words.dtype) - words)
    first = 31 - jax.lax.clz(single).astype(jnp.int32)
    return jnp.where(
        first[0] >= 0, first[0], jnp.where(first[1] >= 0, first[1] + 32, -1)
    )


class Place(eqx.Module):
    """Where an episode stands: its mode, its pair, how many pairs the mode has.

    The flags of those pairs begin at `first_slot`.
    """

    mode: Index
    pair: Index
    count: Index
    first_slot: Index


def next_pair(
    operation: Index,
    place: Place,
    completed: Bool[Array, " slots"],
    config: JaxArcConfig,
) -> Index:
    """Return the pair after an operation: the same one unless a switch is allowed.

    A task's pairs fill its slots from the first, so going round them is counting modulo
    their number.
    """
    pair = place.pair
    rules = config.episode
    switching = rules.allow_demo_switching, rules.allow_test_switching
    allowed = jnp.where(place.mode == 0, *switching)
    # The switches between tests come after those between demonstrations.
    to_next = operation == Op.SWITCH_TO_NEXT_DEMO_PAIR + 2 * place.mode
    to_previous = operation == Op.SWITCH_TO_PREV_DEMO_PAIR + 2 * place.mode
    to_unsolved = operation == Op.SWITCH_TO_FIRST_UNSOLVED_DEMO + place.mode
    some = jnp.maximum(place.count, 1)  # XLA defines no remainder by 0
    target = jnp.where(to_next, (pair + 1) % some, pair)
    target = jnp.where(to_previous, (pair + some - 1) % some, target)
    target = jnp.where(to_unsolved, _first_unsolved(completed, place), target)
    return jnp.where(allowed & (to_next | to_previous | to_unsolved), target, pair)


def _first_unsolved(completed: Bool[Array, " slots"], place: Place) -> Index:
    """Return the first pair not solved yet, or the present one if all are."""
    slot = jnp.arange(completed.shape[0], dtype=jnp.int32)
    first = place.first_slot
    candidate = (slot >= first) & (slot < first + place.count) & ~completed
    found = jnp.argmax(candidate).astype(jnp.int32) - first
    return jnp.where(jnp.any(candidate), found, place.pair)


class Outcome(eqx.Module):
    """What a step did, as far as its reward is concerned.

    `improvement` is 0 across a switch of pairs; `newly_solved` is True once per pair;
    `settled` when a delayed reward falls due: on Submit or at the step limit.
    """

    operation: Index
    testing: Flag
    submitted: Flag
    settled: Flag
    solved: Flag
    newly_solved: Flag
    others_solved: Flag
    improvement: Float[Array, ""]
    similarity: Float[Array, ""]
    step_count: Index
    replaced: Flag


def reward_of(outcome: Outcome, config: JaxArcConfig) -> Float[Array, ""]:
    """Return the reward of a step, by the rules of `RewardConfig`."""
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


def _training_reward(outcome: Outcome, rules: RewardConfig) -> Float[Array, ""]:
    # A difference of similarities is potential-based shaping (Ng et al., 1999): on one
    # pair going in circles earns nothing. A switch loses what was gained uncharged.
    weight = rules.similarity_weight * rules.training_similarity_weight
    return (
        weight * outcome.improvement
        + _when(outcome.improvement > 0, rules.progress_bonus)
        + _verdict(outcome, rules, rules.demo_completion_bonus)
    )


def _testing_reward(outcome: Outcome, rules: RewardConfig) -> Float[Array, ""]:
    weight = rules.similarity_weight * rules.evaluation_similarity_weight
    verdict = _verdict(outcome, rules, rules.test_completion_bonus)
    return jnp.where(outcome.submitted, weight * outcome.similarity + verdict, 0.0)


def _verdict(
    outcome: Outcome, rules: RewardConfig, completion: float
) -> Float[Array, ""]:
    """Return what solving a pair earns, the first time, or a wrong answer costs."""
    early = outcome.step_count <= rules.efficiency_bonus_threshold
    bonus = (
        rules.success_bonus
        + completion
        + _when(early, rules.efficiency_bonus)
        + _when(outcome.others_solved, rules.consecutive_success_bonus)
    )
    wrong = outcome.submitted & ~outcome.solved
    penalty = _when(wrong, rules.unsolved_submission_penalty)
    return jnp.where(outcome.newly_solved, bonus, penalty)


def _when(condition: Flag, amount: float) -> Float[Array, ""]:
    return jnp.where(condition, jnp.float32(amount), jnp.float32(0.0))
