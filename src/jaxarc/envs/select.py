"""From an action to the cells it selects."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt

from jaxarc import bits
from jaxarc.actions import BboxAction, MaskAction, PointAction
from jaxarc.ops.selection import Selection, select_rectangle, select_rows


def select_raw(action: Any, shape: tuple[int, int]) -> Selection:
    """What an action selects of a padded grid; coordinates are clipped into it."""
    height, width = shape
    dtype = bits.word_type(height, width)
    if isinstance(action, PointAction):
        row, col = _inside(action.row, height), _inside(action.col, width)
        return select_rectangle(row, col, row, col, height, dtype)
    if isinstance(action, BboxAction):
        r1, r2 = _inside(action.r1, height), _inside(action.r2, height)
        c1, c2 = _inside(action.c1, width), _inside(action.c2, width)
        corner = (jnp.minimum(r1, r2), jnp.minimum(c1, c2))
        opposite = (jnp.maximum(r1, r2), jnp.maximum(c1, c2))
        return select_rectangle(*corner, *opposite, height, dtype)
    if isinstance(action, MaskAction):
        return select_rows(bits.pack_rows(action.to_selection_mask(shape)))
    raise TypeError(
        f"an action of type {type(action).__name__} is not supported: build a "
        "PointAction, a BboxAction or a MaskAction (jaxarc.envs.structured_actions)"
    )


def select_active(
    action: Any, raw: Selection, size: Int[Array, " two"], active: UInt[Array, " h"]
) -> Selection:
    """The part of a selection that lies in the active area."""
    if isinstance(action, MaskAction):
        return select_rows(raw.rows & active)
    bottom = jnp.minimum(raw.bottom, size[0] - 1)
    right = jnp.minimum(raw.right, size[1] - 1)
    height, dtype = raw.rows.shape[0], raw.rows.dtype
    return select_rectangle(raw.top, raw.left, bottom, right, height, dtype)


def _inside(index: Int[Array, ""], size: int) -> Int[Array, ""]:
    return jnp.clip(index, 0, size - 1).astype(jnp.int32)
