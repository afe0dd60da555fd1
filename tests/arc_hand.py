"""Small pictures of grids and one operation applied to them, for tests by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import bits
from jaxarc.actions import create_mask_action
from jaxarc.ops.canvas import apply_operation, blank_canvas


def grid_of(picture):
    """Rows of digits as an array; a dot is a cell that does not exist."""
    rows = picture.split()
    return np.array(
        [[-1 if c == "." else int(c) for c in row] for row in rows], np.int32
    )


def picture_of(grid):
    return " ".join("".join("." if c < 0 else str(c) for c in row) for row in grid)


def canvas_of(picture):
    grid = grid_of(picture)
    mask = grid >= 0
    size = np.array([mask.any(1).sum(), mask.any(0).sum()], np.int32)
    planes = jnp.asarray(bits.pack_grid(grid))
    return blank_canvas(planes, jnp.asarray(size), grid.shape[1])


@jax.jit
def unpacked(canvas):
    return bits.unpack_grid(canvas.planes, canvas.active(), canvas.width)


def shown(canvas):
    return picture_of(np.asarray(unpacked(canvas)))


# One program for each shape: every operation is in it, and few pictures differ.
@jax.jit
def applied(canvas, action, start):
    shape = (canvas.planes.shape[-1], canvas.width)
    raw = action.pack(shape)
    selected = action.pack_active(raw, canvas.size, canvas.active())
    return apply_operation(
        action.operation, canvas, selected, raw, (start.planes, start.size)
    )


def act(canvas, operation, selection, given=None):
    """The canvas after an operation on the cells marked 1 in a picture."""
    cells = jnp.asarray(grid_of(selection) == 1)
    action = create_mask_action(operation, cells)
    return applied(canvas, action, canvas if given is None else given)
