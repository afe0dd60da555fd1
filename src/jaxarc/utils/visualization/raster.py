"""A grid as pixels, for videos and for environments that render to arrays."""

import numpy as np
from jaxtyping import UInt8
from numpy.typing import ArrayLike

from jaxarc.utils.visualization.cells import GridLike, full_grid
from jaxarc.utils.visualization.palette import cell_pixels


def render_rgb(
    grid: GridLike,
    cell_size: int = 20,
    scheme: str = "default",
    mask: ArrayLike | None = None,
) -> UInt8[np.ndarray, "height width 3"]:
    """Squares of `cell_size` pixels, padding included, so that shapes stay fixed."""
    if cell_size < 1:
        raise ValueError(f"cell_size={cell_size}: a cell is at least 1 pixel wide")
    pixels = cell_pixels(full_grid(grid, mask)[0], scheme)
    return pixels.repeat(cell_size, axis=0).repeat(cell_size, axis=1)
