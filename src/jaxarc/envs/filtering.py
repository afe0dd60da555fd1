"""Which operations are allowed, and what becomes of one that is not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt

from jaxarc import bits
from jaxarc.episode import pack_flags
from jaxarc.ops.names import NUM_OPERATIONS
from jaxarc.ops.names import ARCLEOperationType as Op

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


def configured_operations(config: Any) -> np.ndarray:
    """The operations a configuration allows, one truth each."""
    allowed = np.arange(NUM_OPERATIONS) < config.action.max_operations
    if config.action.allowed_operations is not None:
        listed = np.zeros(NUM_OPERATIONS, bool)
        listed[list(config.action.allowed_operations)] = True
        allowed = allowed & listed
    return allowed


def allowed_words(
    permitted: UInt[Array, " two"],
    mode: Int[Array, ""],
    step_count: Int[Array, ""],
    demos: Int[Array, ""],
    tests: Int[Array, ""],
    config: Any,
) -> UInt[Array, " two"]:
    """What the state permits, the configuration allows and the moment gives sense."""
    words = permitted & jnp.asarray(pack_flags(configured_operations(config)))
    action = config.action
    if action.dynamic_action_filtering and action.context_dependent_operations:
        senseless = jnp.where((mode == 0) & (demos > 1), 0, _bits(_DEMO_SWITCHES))
        senseless |= jnp.where((mode == 1) & (tests > 1), 0, _bits(_TEST_SWITCHES))
        senseless |= jnp.where(step_count > 0, 0, _bits((Op.RESET_CURRENT_PAIR,)))
        words = words & ~senseless.astype(words.dtype)
    return words


def _bits(operations: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(NUM_OPERATIONS, bool)
    mask[list(operations)] = True
    return pack_flags(mask)


def filter_operation(
    operation: Int[Array, ""], allowed: UInt[Array, " two"], policy: str
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """The operation to run, and whether it differs from the one asked for.

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
    return _settled(jnp.where(fine, operation, other)), ~fine


def _settled(operation: Int[Array, ""]) -> Int[Array, ""]:
    """The same operation, looked up in a table of themselves.

    XLA does not repeat a look-up, while the arithmetic above would be fused into every
    loop over cells that depends on the operation and done again for each cell.
    """
    return jnp.asarray(_THEMSELVES)[operation % len(_THEMSELVES)]


def _nearest(operation: Int[Array, ""], allowed: UInt[Array, " two"]) -> Int[Array, ""]:
    below = _highest(allowed & _up_to(operation, allowed.dtype))
    above = _lowest(allowed & ~_up_to(operation, allowed.dtype))
    lower = (below >= 0) & ((above < 0) | (operation - below <= above - operation))
    return jnp.maximum(jnp.where(lower, below, above), 0)


def _up_to(operation: Int[Array, ""], dtype: Any) -> UInt[Array, " two"]:
    """Bits of every operation up to and including this one."""
    count = jnp.stack([operation + 1, operation + 1 - 32])
    return bits.below(jnp.clip(count, 0, 32), dtype)


def _highest(words: UInt[Array, " two"]) -> Int[Array, ""]:
    """The highest bit set; -1 where there is none."""
    tops = 31 - jax.lax.clz(words).astype(jnp.int32)
    return jnp.where(tops[1] >= 0, tops[1] + 32, tops[0])


def _lowest(words: UInt[Array, " two"]) -> Int[Array, ""]:
    """The lowest bit set; -1 where there is none."""
    single = words & (bits.words(0, words.dtype) - words)
    first = 31 - jax.lax.clz(single).astype(jnp.int32)
    return jnp.where(
        first[0] >= 0, first[0], jnp.where(first[1] >= 0, first[1] + 32, -1)
    )
