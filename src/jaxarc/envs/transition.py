"""How an episode begins, and what one action makes of it."""

import functools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxarc import bits
from jaxarc.actions import BaseAction
from jaxarc.bits import Flag, Index, Rows, similarity
from jaxarc.config import JaxArcConfig
from jaxarc.envs.rules import (
    Outcome,
    Place,
    allowed_words,
    filter_operation,
    next_pair,
    reward_of,
)
from jaxarc.episode import (
    METADATA_FIELDS,
    Augmentation,
    Episode,
    Pair,
    describe_selection,
    history_shape,
    load_pair,
    load_start,
    pack_episode,
    pack_flags,
    pair_counts,
    repack,
    slot_of,
)
from jaxarc.ops.canvas import Canvas, Selection, apply_operation, blank_canvas
from jaxarc.ops.operations import FIRST_CONTROL, NUM_OPERATIONS
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.types import JaxArcTask

_EVERY_OPERATION = pack_flags(np.ones(NUM_OPERATIONS, bool))


class Transition(eqx.Module):
    """What a step reports beside the new episode.

    `limited` tells that the step limit, and no rule, ended the episode.
    """

    reward: Float[Array, "*batch"]
    improvement: Float[Array, "*batch"]
    solved: Bool[Array, "*batch"]
    operation: Int[Array, "*batch"]
    limited: Bool[Array, "*batch"]


def begin(
    tasks: JaxArcTask,
    row: Index,
    mode: Index,
    pair_index: Index,
    config: JaxArcConfig,
    augmentation: Augmentation | None = None,
) -> Episode:
    """Return a fresh episode on one pair of one task."""
    slot = slot_of(tasks, mode, pair_index)
    given, alike = load_start(tasks, row, slot, augmentation)
    zero = jnp.zeros((), jnp.int32)
    shape = history_shape(config, tasks.height, tasks.width)
    return pack_episode(
        blank_canvas(given),
        jnp.zeros(tasks.height, given.planes.dtype),
        task_row=row,
        current_example_idx=pair_index,
        episode_mode=mode,
        step_count=zero,
        episode_done=jnp.zeros((), bool),
        similarity_score=jnp.where(mode == 0, alike, 0.0),
        completed=jnp.zeros(tasks.pairs.shape[-4], bool),
        allowed=jnp.asarray(_EVERY_OPERATION),
        action_history=jnp.zeros(shape, jnp.float32),
        action_history_length=zero,
        action_history_write_pos=zero,
        augmentation=augmentation,
    )


# A function of its own inside larger programs: all of them share one trace of it, and a
# batch of another size is mapped from that trace, not traced again.
@functools.partial(jax.jit, static_argnames="config")
def advance(
    tasks: JaxArcTask, episode: Episode, action: BaseAction, config: JaxArcConfig
) -> tuple[Episode, Transition]:
    """Return the episode after one action, which must be in range (`validate`)."""
    place = _place(tasks, episode)
    operation, replaced = filter_operation(
        action.operation.astype(jnp.int32),
        allowed_words(tasks, episode, config),
        config.action.invalid_operation_policy,
    )
    now = next_pair(operation, place, episode.completed, config)
    slot = place.first_slot + now
    pair = load_pair(tasks, episode.task_row, slot, episode.augmentation)
    # Everything below runs for every operation: under vmap a branch would run as well.
    fresh = (now != place.pair) | (operation == Op.RESET_CURRENT_PAIR)
    raw = action.pack((tasks.height, tasks.width))
    canvas = episode.canvas
    selection = action.pack_active(raw, canvas)
    canvas = _edit(operation, canvas, selection, raw, pair, fresh)
    seen = _visible_similarity(operation, episode, canvas, pair, fresh)
    outcome = _judge(operation, replaced, episode, place, now, seen, pair, config)
    completed = episode.completed | (_at(slot, episode) & outcome.newly_solved)
    ended = _is_over(outcome, completed, place, config)
    limited = outcome.step_count >= config.environment.max_episode_steps
    history = _record(operation, episode, selection, raw, tasks.width, config)
    changed = repack(
        episode,
        canvas,
        selection=_remembered_selection(operation, selection, episode, fresh),
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
        operation=operation,
        limited=limited & ~ended,
    )


def _place(tasks: JaxArcTask, episode: Episode) -> Place:
    """Return where the episode stands among the pairs of its mode."""
    mode, pair = episode.episode_mode, episode.current_example_idx
    count = jnp.where(mode == 0, *pair_counts(tasks, episode.task_row))
    return Place(mode, pair, count, slot_of(tasks, mode, jnp.zeros_like(pair)))


def _selects(operation: Index) -> Flag:
    return (operation >= 0) & (operation < FIRST_CONTROL)


def _edit(
    operation: Index,
    canvas: Canvas,
    selection: Selection,
    raw: Selection,
    pair: Pair,
    fresh: Flag,
) -> Canvas:
    """Return the canvas after the operation; a fresh one holds the pair's input."""
    edited = apply_operation(operation, canvas, selection, raw, pair.given)
    begun = replace(blank_canvas(pair.given), origin=edited.origin)
    return jax.tree.map(lambda new, old: jnp.where(fresh, new, old), begun, edited)


def _visible_similarity(
    operation: Index, episode: Episode, canvas: Canvas, pair: Pair, fresh: Flag
) -> Float[Array, ""]:
    """Return the similarity to report.

    In test mode it is that of a submission, kept until an operation acts.
    """
    likeness = similarity(canvas, pair.wanted)
    visible = (episode.episode_mode == 0) | (operation == Op.SUBMIT)
    hidden = jnp.where(_selects(operation) | fresh, 0.0, episode.similarity_score)
    return jnp.where(visible, likeness, hidden)


def _remembered_selection(
    operation: Index, selection: Selection, episode: Episode, fresh: Flag
) -> Rows:
    """Return the selection to keep: operations that do not select leave the last."""
    kept = jnp.where(_selects(operation), selection.rows, episode.selection)
    return jnp.where(fresh, bits.words(0, kept.dtype), kept)


def _at(slot: Index, episode: Episode) -> Bool[Array, " slots"]:
    return jnp.arange(episode.completed.shape[0], dtype=jnp.int32) == slot


def _judge(
    operation: Index,
    replaced: Flag,
    episode: Episode,
    place: Place,
    now: Index,
    seen: Float[Array, ""],
    pair: Pair,
    config: JaxArcConfig,
) -> Outcome:
    """Return how good the new grid is, and whether that counts already."""
    submitted = operation == Op.SUBMIT
    step_count = episode.step_count + 1
    settled = submitted | (step_count >= config.environment.max_episode_steps)
    # An unknown answer has no cells, and an empty grid would count as equal to it.
    solved = (seen >= config.episode.success_threshold) & pair.has_answer
    if config.episode.training_reward_frequency == "submit":
        counts = jnp.where(place.mode == 0, settled, submitted)
    else:
        counts = (place.mode == 0) | submitted
    here = _at(place.first_slot + now, episode)
    switched = now != place.pair
    return Outcome(
        operation=operation,
        testing=place.mode == 1,
        submitted=submitted,
        settled=settled,
        solved=solved,
        newly_solved=solved & counts & ~jnp.any(episode.completed & here),
        others_solved=jnp.any(episode.completed & ~here),
        improvement=jnp.where(switched, 0.0, seen - episode.similarity_score),
        similarity=seen,
        step_count=step_count,
        replaced=replaced,
    )


def _is_over(
    outcome: Outcome,
    completed: Bool[Array, " slots"],
    place: Place,
    config: JaxArcConfig,
) -> Flag:
    """Return whether the rules, the step limit apart, end the episode here."""
    rules = config.episode
    slot = jnp.arange(completed.shape[0], dtype=jnp.int32)
    first, count = place.first_slot, place.count
    mine = completed & (slot >= first) & (slot < first + count)
    solved_pairs = jnp.sum(mine.astype(jnp.int32))
    all_done = solved_pairs >= jnp.minimum(count, rules.max_pairs_per_episode)
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


def _record(
    operation: Index,
    episode: Episode,
    selection: Selection,
    raw: Selection,
    width: int,
    config: JaxArcConfig,
) -> tuple[Float[Array, "records fields"], Index, Index]:
    """Return the history with this step added, stamped with the pair it acted on.

    When the ring is full, the oldest record gives way.
    """
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
    numbers = operation, episode.step_count, episode.current_example_idx
    valid = jnp.ones_like(operation)
    metadata = jnp.stack([*numbers, valid]).astype(jnp.float32)
    # The position is kept below the length of the ring, so XLA need not clamp it.
    records = records.at[position].set(
        jnp.concatenate([described, metadata]), mode="promise_in_bounds"
    )
    room = records.shape[0]
    return records, jnp.minimum(length + 1, room), (position + 1) % room
