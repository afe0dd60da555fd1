"""Small pictures of grids and one operation applied to them, for tests by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import bits
from jaxarc.actions import create_mask_action
from jaxarc.ops.canvas import apply_operation, blank_canvas
from jaxarc.types import measure


def grid_of(picture):
    """Rows of digits as an array; a dot is a cell that does not exist."""
    rows = picture.split()
    return np.array(
        [[-1 if c == "." else int(c) for c in row] for row in rows], np.int32
    )


def picture_of(grid):
    return " ".join("".join("." if c < 0 else str(c) for c in row) for row in grid)


def packed(grids):
    """One grid, or a batch of them, as bit planes; -1 is padding."""
    size = np.stack(measure(grids >= 0), axis=-1).astype(np.int32)
    planes = jnp.asarray(bits.pack_grid(grids))
    return bits.PackedGrid(planes, jnp.asarray(size), grids.shape[-1])


def canvas_of(picture):
    return blank_canvas(packed(grid_of(picture)))


unpacked = jax.jit(bits.PackedGrid.cells)


def shown(canvas):
    return picture_of(np.asarray(unpacked(canvas)))


# One program for each shape: every operation is in it, and few pictures differ.
@jax.jit
def applied(canvas, action, start):
    shape = (canvas.planes.shape[-1], canvas.width)
    raw = action.pack(shape)
    selected = action.pack_active(raw, canvas)
    return apply_operation(action.operation, canvas, selected, raw, start)


def act(canvas, operation, selection, given=None):
    """The canvas after an operation on the cells marked 1 in a picture."""
    cells = jnp.asarray(grid_of(selection) == 1)
    action = create_mask_action(operation, cells)
    return applied(canvas, action, canvas if given is None else given)
