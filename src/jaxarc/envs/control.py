"""The control operations: which pair comes next."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxarc.ops.names import ARCLEOperationType as Op


class Place(eqx.Module):
    """Where an episode stands: its mode, its pair, how many pairs the mode has.

    The flags of those pairs begin at `first_slot`.
    """

    mode: Int[Array, ""]
    pair: Int[Array, ""]
    count: Int[Array, ""]
    first_slot: Int[Array, ""]


def next_pair(
    operation: Int[Array, ""],
    place: Place,
    completed: Bool[Array, " slots"],
    config: Any,
) -> Int[Array, ""]:
    """The pair after an operation: the same one unless a switch is allowed.

    A task's pairs fill its slots from the first, so going round them is counting modulo
    their number.
    """
    pair = place.pair
    training = place.mode == 0
    allowed = jnp.where(
        training,
        config.episode.allow_demo_switching,
        config.episode.allow_test_switching,
    )
    to_next = _either(training, operation, Op.SWITCH_TO_NEXT_DEMO_PAIR)
    to_previous = _either(training, operation, Op.SWITCH_TO_PREV_DEMO_PAIR)
    to_unsolved = operation == jnp.where(
        training, Op.SWITCH_TO_FIRST_UNSOLVED_DEMO, Op.SWITCH_TO_FIRST_UNSOLVED_TEST
    )
    some = jnp.maximum(place.count, 1)
    target = jnp.where(to_next, (pair + 1) % some, pair)
    target = jnp.where(to_previous, (pair + some - 1) % some, target)
    target = jnp.where(to_unsolved, _first_unsolved(completed, place), target)
    return jnp.where(allowed & (to_next | to_previous | to_unsolved), target, pair)


def _either(
    training: Bool[Array, ""], operation: Int[Array, ""], demo: Op
) -> Bool[Array, ""]:
    """Whether this is the demonstration switch in training, or its twin in testing."""
    twin = Op.SWITCH_TO_NEXT_TEST_PAIR - Op.SWITCH_TO_NEXT_DEMO_PAIR
    return operation == jnp.where(training, int(demo), int(demo) + twin)


def _first_unsolved(completed: Bool[Array, " slots"], place: Place) -> Int[Array, ""]:
    """The first pair not solved yet; where there is none, the present one."""
    slot = jnp.arange(completed.shape[0], dtype=jnp.int32)
    first = place.first_slot
    candidate = (slot >= first) & (slot < first + place.count) & ~completed
    found = jnp.argmax(candidate).astype(jnp.int32) - first
    return jnp.where(jnp.any(candidate), found, place.pair)
