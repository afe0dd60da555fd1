"""A grid as a picture needs it: plain NumPy, cut down to its real cells."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jax.core import Tracer
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from jaxarc.types import Grid

GridLike: TypeAlias = Grid | ArrayLike
NOTHING = -1  # what padding cells hold


@dataclass(frozen=True, eq=False)
class Cells:
    """The bounding box of the real cells, and where it lay in the given array."""

    values: Int[np.ndarray, "h w"]
    active: Bool[np.ndarray, "h w"]
    top: int
    left: int

    @property
    def height(self) -> int:
        """Rows of the box."""
        return self.values.shape[0]

    @property
    def width(self) -> int:
        """Columns of the box."""
        return self.values.shape[1]

    @property
    def size(self) -> str:
        """Height and width in words: "3x4"."""
        return f"{self.height}x{self.width}"

    def crop(self, overlay: ArrayLike | None) -> Bool[np.ndarray, "h w"]:
        """A mask over the given array, cut to the same box; nothing is all False."""
        cut = np.zeros(self.values.shape, bool)
        if overlay is not None:
            found = host_array(overlay, "overlay").astype(bool)[self.top :, self.left :]
            rows, columns = np.minimum(found.shape, cut.shape)
            cut[:rows, :columns] = found[:rows, :columns]
        return cut


def read_cells(grid: GridLike, mask: ArrayLike | None = None) -> Cells:
    """The real cells of a Grid or a 2-D array of whole numbers.

    Without a mask the real cells of an array are those that are not negative.
    """
    values, active = full_grid(grid, mask)
    rows, columns = np.flatnonzero(active.any(1)), np.flatnonzero(active.any(0))
    if rows.size == 0:
        return Cells(values[:0, :0], active[:0, :0], 0, 0)
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Cells(values[box], active[box], int(rows[0]), int(columns[0]))


def full_grid(
    grid: GridLike, mask: ArrayLike | None = None
) -> tuple[Int[np.ndarray, "h w"], Bool[np.ndarray, "h w"]]:
    """Values, -1 outside the mask, and the mask, both uncropped."""
    data = grid.data if isinstance(grid, Grid) else grid
    if isinstance(grid, Grid) and mask is None:
        mask = grid.mask
    values = host_array(data, "grid")
    if values.dtype.kind not in "iub":
        raise TypeError(
            f"the grid is of type {values.dtype}: colors are whole numbers; convert "
            "it with .astype(np.int32)"
        )
    values = values.astype(np.int64)
    active = values >= 0 if mask is None else host_array(mask, "mask").astype(bool)
    if active.shape != values.shape:
        raise ValueError(
            f"the mask has shape {active.shape}, the grid {values.shape}: they must "
            "be equal"
        )
    return np.where(active, values, NOTHING), active


def detect_changed_cells(before: GridLike, after: GridLike) -> Bool[np.ndarray, "h w"]:
    """True where two grids differ, in color or in being part of the grid.

    Grids of different shapes are compared from the top left; the result covers both.
    """
    one, other = full_grid(before)[0], full_grid(after)[0]
    shape = np.maximum(one.shape, other.shape)
    return _extend(one, shape) != _extend(other, shape)


def host_array(array: ArrayLike, name: str) -> np.ndarray:
    """A 2-D array on the host; the error names what was given instead."""
    if isinstance(array, Tracer):
        raise TypeError(
            f"the {name} is traced: pictures are made on the host; inside a compiled "
            "function use jax_log_grid or jax_debug_callback"
        )
    found = np.asarray(array)
    if found.ndim != 2:
        raise ValueError(
            f"the {name} has shape {found.shape}: it must be (height, width); take one "
            "of a batch"
        )
    return found


def _extend(values: np.ndarray, shape: np.ndarray) -> np.ndarray:
    missing = [(0, int(size)) for size in shape - values.shape]
    return np.pad(values, missing, constant_values=NOTHING)
