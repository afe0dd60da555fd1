"""One environment's rules: how an episode begins and what a step makes of it."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt

from jaxarc import bits
from jaxarc.envs.control import Place, next_pair
from jaxarc.envs.filtering import allowed_words, filter_operation
from jaxarc.envs.reward import Outcome, reward_of
from jaxarc.envs.select import select_active, select_raw
from jaxarc.episode import Episode, pack_episode, pack_flags, repack
from jaxarc.history import (
    METADATA_FIELDS,
    append_record,
    describe_selection,
    history_shape,
    make_record,
)
from jaxarc.ops.apply import apply_operation
from jaxarc.ops.canvas import Canvas, blank_canvas
from jaxarc.ops.names import FIRST_CONTROL, NUM_OPERATIONS
from jaxarc.ops.names import ARCLEOperationType as Op
from jaxarc.ops.selection import Selection
from jaxarc.pairs import (
    Augmentation,
    Pair,
    has_answer,
    load_pair,
    load_start,
    pair_counts,
    slot_of,
)
from jaxarc.similarity import similarity
from jaxarc.types import JaxArcTask

_EVERYTHING = pack_flags(np.ones(NUM_OPERATIONS, bool))


class Transition(eqx.Module):
    """What a step reports beside the new episode.

    `limited` tells that the step limit, and no rule, ended the episode.
    """

    reward: Float[Array, "*batch"]
    improvement: Float[Array, "*batch"]
    solved: Bool[Array, "*batch"]
    submitted: Bool[Array, "*batch"]
    operation: Int[Array, "*batch"]
    limited: Bool[Array, "*batch"]


def begin(
    tasks: JaxArcTask,
    row: Int[Array, ""],
    mode: Int[Array, ""],
    pair_index: Int[Array, ""],
    config: Any,
    augmentation: Augmentation | None = None,
) -> Episode:
    """A fresh episode on one pair of one task."""
    slot = slot_of(tasks, mode, pair_index)
    planes, size, alike = load_start(tasks, row, slot, augmentation)
    zero = jnp.zeros((), jnp.int32)
    shape = history_shape(config, tasks.height, tasks.width)
    return pack_episode(
        blank_canvas(planes, size, tasks.width),
        jnp.zeros(tasks.height, planes.dtype),
        task_row=row,
        current_example_idx=pair_index,
        episode_mode=mode,
        step_count=zero,
        episode_done=jnp.zeros((), bool),
        similarity_score=jnp.where(mode == 0, alike, 0.0),
        completed=jnp.zeros(tasks.pairs.shape[-4], bool),
        allowed=jnp.asarray(_EVERYTHING),
        action_history=jnp.zeros(shape, jnp.float32),
        action_history_length=zero,
        action_history_write_pos=zero,
        augmentation=augmentation,
    )


def advance(
    tasks: JaxArcTask, episode: Episode, action: Any, config: Any
) -> tuple[Episode, Transition]:
    """The episode after one action."""
    shape = (tasks.height, tasks.width)
    action = action.validate(shape, NUM_OPERATIONS)
    place = _place(tasks, episode)
    operation, replaced = _permitted(tasks, episode, action, config)
    now = next_pair(operation, place, episode.completed, config)
    slot = place.first_slot + now
    pair = load_pair(tasks, episode.task_row, slot, episode.augmentation)
    fresh = _is_fresh(operation, place, now)
    raw = select_raw(action, shape)
    active = episode.canvas.active()
    selection = select_active(action, raw, episode.canvas.size, active)
    canvas = _edit(operation, episode.canvas, selection, raw, pair, fresh)
    outcome = _judge(operation, episode, place, now, canvas, pair, config)
    outcome = eqx.tree_at(lambda o: o.replaced, outcome, replaced)
    completed = episode.completed | (_at(slot, episode) & outcome.newly_solved)
    ended = _is_over(outcome, completed, place, config)
    limited = outcome.step_count >= config.environment.max_episode_steps
    history = record_step(operation, episode, selection, raw, tasks.width, config)
    changed = repack(
        episode,
        canvas,
        selection=_shown(operation, selection, episode, fresh),
        current_example_idx=now,
        step_count=outcome.step_count,
        episode_done=episode.episode_done | ended | limited,
        similarity_score=outcome.similarity,
        completed=completed,
        action_history=history[0],
        action_history_length=history[1],
        action_history_write_pos=history[2],
    )
    return changed, Transition(
        reward=reward_of(outcome, config),
        improvement=outcome.improvement,
        solved=outcome.solved,
        submitted=outcome.submitted,
        operation=operation,
        limited=limited & ~ended,
    )


def _place(tasks: JaxArcTask, episode: Episode) -> Place:
    """Where the episode stands among the pairs of its mode."""
    mode, pair = episode.episode_mode, episode.current_example_idx
    count = jnp.where(mode == 0, *pair_counts(tasks, episode.task_row))
    return Place(mode, pair, count, slot_of(tasks, mode, jnp.zeros_like(pair)))


def _permitted(
    tasks: JaxArcTask, episode: Episode, action: Any, config: Any
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """The operation that runs, and whether it replaces the one asked for."""
    allowed = allowed_words(
        episode.allowed,
        episode.episode_mode,
        episode.step_count,
        *pair_counts(tasks, episode.task_row),
        config,
    )
    policy = config.action.invalid_operation_policy
    return filter_operation(action.operation.astype(jnp.int32), allowed, policy)


def _is_fresh(
    operation: Int[Array, ""], place: Place, now: Int[Array, ""]
) -> Bool[Array, ""]:
    """Whether the pair begins anew: another one, or the same one reset."""
    return (now != place.pair) | (operation == Op.RESET_CURRENT_PAIR)


def _selects(operation: Int[Array, ""]) -> Bool[Array, ""]:
    return (operation >= 0) & (operation < FIRST_CONTROL)


def _seen(
    operation: Int[Array, ""],
    episode: Episode,
    canvas: Canvas,
    pair: Pair,
    fresh: Bool[Array, ""],
) -> Float[Array, ""]:
    """The similarity to report: in test mode a submission's, until something acts."""
    likeness = similarity(canvas.planes, canvas.size, pair.wanted, pair.wanted_size)
    open_ = (episode.episode_mode == 0) | (operation == Op.SUBMIT)
    hidden = jnp.where(_selects(operation) | fresh, 0.0, episode.similarity_score)
    return jnp.where(open_, likeness, hidden)


def _edit(
    operation: Int[Array, ""],
    canvas: Canvas,
    selection: Selection,
    raw: Selection,
    pair: Pair,
    fresh: Bool[Array, ""],
) -> Canvas:
    """The canvas after the operation; a fresh one holds the pair's input."""
    given = (pair.given, pair.given_size)
    edited = apply_operation(operation, canvas, selection, raw, given)
    return Canvas(
        jnp.where(fresh, pair.given, edited.planes),
        jnp.where(fresh, pair.given_size, edited.size),
        jnp.where(fresh, bits.words(0, edited.clipboard.dtype), edited.clipboard),
        edited.origin,
        canvas.width,
    )


def _shown(
    operation: Int[Array, ""],
    selection: Selection,
    episode: Episode,
    fresh: Bool[Array, ""],
) -> UInt[Array, " h"]:
    """The selection to remember: operations that do not select leave the last one."""
    kept = jnp.where(_selects(operation), selection.rows, episode.selection)
    return jnp.where(fresh, bits.words(0, kept.dtype), kept)


def _at(slot: Int[Array, ""], episode: Episode) -> Bool[Array, " slots"]:
    return jnp.arange(episode.completed.shape[0], dtype=jnp.int32) == slot


def _judge(
    operation: Int[Array, ""],
    episode: Episode,
    place: Place,
    now: Int[Array, ""],
    canvas: Canvas,
    pair: Pair,
    config: Any,
) -> Outcome:
    """How good the new grid is, and whether that counts already."""
    submitted = operation == Op.SUBMIT
    step_count = episode.step_count + 1
    settled = submitted | (step_count >= config.environment.max_episode_steps)
    fresh = _is_fresh(operation, place, now)
    seen = _seen(operation, episode, canvas, pair, fresh)
    solved = (seen >= config.episode.success_threshold) & has_answer(pair)
    here = _at(place.first_slot + now, episode)
    counted = solved & _counts_now(place.mode, settled, submitted, config)
    switched = now != place.pair
    return Outcome(
        operation=operation,
        testing=place.mode == 1,
        submitted=submitted,
        settled=settled,
        solved=solved,
        newly_solved=counted & ~jnp.any(episode.completed & here),
        others_solved=jnp.any(episode.completed & ~here),
        improvement=jnp.where(switched, 0.0, seen - episode.similarity_score),
        similarity=seen,
        step_count=step_count,
        replaced=jnp.zeros((), bool),
    )


def _counts_now(
    mode: Int[Array, ""],
    settled: Bool[Array, ""],
    submitted: Bool[Array, ""],
    config: Any,
) -> Bool[Array, ""]:
    """Whether a solved grid counts at this step: always, or only once handed in."""
    if config.episode.training_reward_frequency == "submit":
        return jnp.where(mode == 0, settled, submitted)
    return (mode == 0) | submitted


def _is_over(
    outcome: Outcome,
    completed: Bool[Array, " slots"],
    place: Place,
    config: Any,
) -> Bool[Array, ""]:
    """Whether the rules, the step limit apart, end the episode here."""
    rules = config.episode
    slot = jnp.arange(completed.shape[0], dtype=jnp.int32)
    first, count = place.first_slot, place.count
    mine = completed & (slot >= first) & (slot < first + count)
    solved_pairs = jnp.sum(mine.astype(jnp.int32))
    enough = jnp.minimum(count, rules.max_pairs_per_episode)
    all_done = solved_pairs >= enough
    first_ends = rules.terminate_on_first_success
    if rules.training_reward_frequency == "submit":
        training = outcome.submitted
    elif rules.require_all_demos_solved and not first_ends:
        training = outcome.submitted | all_done
    else:
        training = outcome.submitted | outcome.solved
    testing = outcome.submitted
    if rules.require_all_tests_solved and rules.allow_test_switching and not first_ends:
        # A right answer frees the way to the test pairs that are left.
        testing = outcome.submitted & (~outcome.solved | all_done)
    return jnp.where(outcome.testing, testing, training)


def record_step(
    operation: Int[Array, ""],
    episode: Episode,
    selection: Selection,
    raw: Selection,
    width: int,
    config: Any,
) -> tuple[Float[Array, "records fields"], Int[Array, ""], Int[Array, ""]]:
    """The history with this step added, stamped with the pair it was taken on."""
    records = episode.action_history
    length, position = episode.action_history_length, episode.action_history_write_pos
    if records.shape[0] == 0:
        return records, length, position
    fields = records.shape[1] - METADATA_FIELDS
    described = jnp.zeros(0, jnp.float32)
    if fields:
        form = config.action.selection_format
        described = jnp.where(
            operation == Op.RESIZE,
            describe_selection(raw, fields, width, form),
            describe_selection(selection, fields, width, form),
        )
    pair = episode.current_example_idx
    record = make_record(described, operation, episode.step_count, pair)
    return append_record(records, length, position, record)
