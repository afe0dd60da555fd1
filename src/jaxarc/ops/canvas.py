"""What the operations act on: a grid, its size, and a clipboard."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int, UInt

from jaxarc import bits


class Canvas(eqx.Module):
    """A grid being edited, and what was copied from it.

    The clipboard's last plane marks the cells that hold content, so that black is
    content too; `origin` is the top left corner of that content. `width` is the padded
    width of the grid.
    """

    planes: UInt[Array, "*batch planes h"]
    size: Int[Array, "*batch two"]
    clipboard: UInt[Array, "*batch layers h"]
    origin: Int[Array, "*batch two"]
    width: int = eqx.field(static=True)

    def active(self) -> UInt[Array, "*batch h"]:
        """The bits of the active area."""
        height, dtype = self.planes.shape[-1], self.planes.dtype
        return bits.active_rows(self.size, height, dtype)


def blank_canvas(
    planes: UInt[Array, "*batch planes h"], size: Int[Array, "*batch two"], width: int
) -> Canvas:
    """A grid with nothing on its clipboard."""
    *batch, count, height = planes.shape
    clipboard = jnp.zeros((*batch, count + 1, height), planes.dtype)
    return Canvas(planes, size, clipboard, jnp.zeros((*batch, 2), jnp.int32), width)
