"""From an operation's number to its effect."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxarc.ops import clipboard, fill, move, size, turn
from jaxarc.ops.effect import Effect, LookedUp, read_row
from jaxarc.ops.names import NUM_OPERATIONS

EFFECTS: dict[int, Effect] = {
    **fill.EFFECTS,
    **move.EFFECTS,
    **turn.EFFECTS,
    **clipboard.EFFECTS,
    **size.EFFECTS,
}

# One row more than there are operations: -1, the operation that does nothing.
_TABLE = np.array(
    [EFFECTS.get(id_, Effect()).numbers() for id_ in range(NUM_OPERATIONS + 1)],
    np.int32,
)


def look_up(operation: Int[Array, ""]) -> LookedUp:
    """The effect of an operation on the canvas; none for Submit and control."""
    return read_row(jnp.asarray(_TABLE)[operation % len(_TABLE)])
