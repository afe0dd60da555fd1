"""Selections as rectangles: their corners, and what lies inside them."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxarc.bits import PADDING

Corner = Int[Array, ""]


def get_selection_bounding_box(
    selection_mask: Bool[Array, "h w"],
) -> tuple[Corner, Corner, Corner, Corner]:
    """First row, last row, first column, last column; -1 where nothing is selected."""
    corners: list[Array] = []
    for axis in (1, 0):
        line = jnp.any(selection_mask, axis=axis)
        corners += [jnp.argmax(line), line.size - 1 - jnp.argmax(line[::-1])]
    some = jnp.any(selection_mask)
    first, last, left, right = (
        jnp.where(some, corner.astype(jnp.int32), -1) for corner in corners
    )
    return first, last, left, right


def extract_bounding_box_region(
    grid: Int[Array, "h w"], selection_mask: Bool[Array, "h w"]
) -> Int[Array, "h w"]:
    """Everything in the box around a selection, moved to the top left; -1 beyond it."""
    top, bottom, left, right = get_selection_bounding_box(selection_mask)
    row = jnp.arange(grid.shape[0], dtype=jnp.int32)
    column = jnp.arange(grid.shape[1], dtype=jnp.int32)
    rows, columns = (row >= top) & (row <= bottom), (column >= left) & (column <= right)
    box = rows[:, None] & columns[None, :] & jnp.any(selection_mask)
    return _to_corner(jnp.where(box, grid, PADDING), top, left)


def extract_object_rectangle(
    grid: Int[Array, "h w"], selection_mask: Bool[Array, "h w"]
) -> Int[Array, "h w"]:
    """The selected cells, moved to the top left; -1 everywhere else."""
    top, _, left, _ = get_selection_bounding_box(selection_mask)
    return _to_corner(jnp.where(selection_mask, grid, PADDING), top, left)


def validate_single_cell_selection(
    selection_mask: Bool[Array, "h w"],
) -> Bool[Array, ""]:
    """Whether exactly one cell is selected, as flood fills need it."""
    return jnp.sum(selection_mask, dtype=jnp.int32) == 1


def _to_corner(grid: Int[Array, "h w"], top: Corner, left: Corner) -> Array:
    upwards = jnp.roll(grid, -jnp.maximum(top, 0), axis=0)
    return jnp.roll(upwards, -jnp.maximum(left, 0), axis=1)
