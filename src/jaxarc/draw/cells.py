"""Read grids and tasks as plain NumPy cells, and give each cell value a color.

Drawings of every kind start here; `render_rgb` is the simplest of them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int, UInt8
from numpy.typing import ArrayLike

PADDING = 10  # the entry of a scheme for cells outside the grid
UNKNOWN_COLOR = "#808080"
NOTHING = -1  # what padding cells hold

# Colors 0 to 9, then padding.
COLOR_SCHEMES: dict[str, tuple[str, ...]] = {
    "default": (
        *("#252525", "#0074D9", "#FF4136", "#37D449", "#FFDC00"),
        *("#E6E6E6", "#F012BE", "#FF871E", "#54D2EB", "#8D1D2C"),
        "#FFFFFF",
    ),
    "high_contrast": (
        *("#000000", "#0000FF", "#FF0000", "#00B000", "#FFFF00"),
        *("#A8A8A8", "#FF00FF", "#FF8000", "#00FFFF", "#700000"),
        "#FFFFFF",
    ),
    # Distinct for protanopia and deuteranopia too.
    "colorblind": (
        *("#000000", "#0057A8", "#C9460B", "#05A96E", "#F0FA44"),
        *("#D8D8D8", "#CC79A7", "#FE8200", "#79B6F8", "#5A1E00"),
        "#FFFFFF",
    ),
    # As the editor of ARC shows them: pages and the studio use these.
    "arc": (
        *("#000000", "#0074D9", "#FF4136", "#2ECC40", "#FFDC00"),
        *("#AAAAAA", "#F012BE", "#FF851B", "#7FDBFF", "#870C25"),
        "#FFFFFF",
    ),
}


def get_color_scheme(name: str) -> tuple[str, ...]:
    """Return the colors of a scheme as `#RRGGBB`: 0 to 9, then padding."""
    if name not in COLOR_SCHEMES:
        raise ValueError(
            f"color scheme {name!r} is not one of: {', '.join(COLOR_SCHEMES)}"
        )
    return COLOR_SCHEMES[name]


def cell_color(value: int, scheme: str = "default") -> str:
    """Return the color of a cell value: -1 is padding, unknown values are gray."""
    colors = get_color_scheme(scheme)
    return colors[value] if -1 <= value <= PADDING else UNKNOWN_COLOR


def ink_on(color: str) -> str:
    """Return black or white, whichever reads better on the color."""
    share = np.array(_rgb(color)) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    # Above this relative luminance black has the higher contrast (WCAG 2).
    return "#000000" if luminance > 0.179 else "#FFFFFF"


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


# Not `jaxarc.types.Grid` itself: looking at a task should not have to import JAX.
@runtime_checkable
class MaskedGrid(Protocol):
    """A grid with a mask of its real cells, as `jaxarc.types.Grid` is."""

    data: Any
    mask: Any


GridLike: TypeAlias = MaskedGrid | ArrayLike


@dataclass(frozen=True, eq=False)
class Cells:
    """The bounding box of the real cells, and where it lay in the given array."""

    values: Int[np.ndarray, "h w"]
    active: Bool[np.ndarray, "h w"]
    top: int
    left: int

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return self.values.shape[0]

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return self.values.shape[1]

    @property
    def size(self) -> str:
        """Return height and width in words: "3x4"."""
        return f"{self.height}x{self.width}"

    def crop(self, overlay: ArrayLike | None) -> Bool[np.ndarray, "h w"]:
        """Cut a mask over the given array to the same box; None is all False."""
        cut = np.zeros(self.values.shape, bool)
        if overlay is not None:
            whole = host_array(overlay, "overlay")
            if whole.dtype.kind not in "biu":
                raise TypeError(f"the overlay is {whole.dtype}: give a boolean mask")
            found = whole.astype(bool)[self.top :, self.left :]
            rows, columns = np.minimum(found.shape, cut.shape)
            cut[:rows, :columns] = found[:rows, :columns]
        return cut


def read_cells(grid: GridLike, mask: ArrayLike | None = None) -> Cells:
    """Return the real cells of a Grid or a 2-D array of whole numbers.

    Without a mask the real cells of an array are those that are not negative.
    """
    values, active = full_grid(grid, mask)
    rows, columns = np.flatnonzero(active.any(1)), np.flatnonzero(active.any(0))
    if rows.size == 0:
        return Cells(values[:0, :0], active[:0, :0], 0, 0)
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Cells(values[box], active[box], int(rows[0]), int(columns[0]))


class NamedPair(NamedTuple):
    """A pair of a task; the output is None where it is unknown or not to be shown."""

    name: str
    given: Cells
    wanted: Cells | None


def task_pairs(task: Any, tests: bool = True, answers: bool = True) -> list[NamedPair]:
    """Return the pairs of a JaxArcTask or a RawTask, demonstrations first."""
    if hasattr(task, "train"):
        found = {"Train": task.train, "Test": task.test if tests else ()}
    else:
        train, test = int(task.num_train_pairs), tests * int(task.num_test_pairs)
        pairs = [task.get_train_pair(i) for i in range(train)]
        pairs += [task.get_test_pair(i) for i in range(test)]
        grids = [(pair.input_grid, pair.output_grid) for pair in pairs]
        found = {"Train": grids[:train], "Test": grids[train:]}
    named = []
    for part, pairs in found.items():
        for number, (given, wanted) in enumerate(pairs, 1):
            shown = wanted if answers or part == "Train" else None
            answer = None if shown is None else read_cells(shown)
            # An answer that is all padding is not known.
            known = answer if answer and answer.height else None
            named.append(NamedPair(f"{part} {number}", read_cells(given), known))
    return named


def full_grid(
    grid: GridLike, mask: ArrayLike | None = None
) -> tuple[Int[np.ndarray, "h w"], Bool[np.ndarray, "h w"]]:
    """Return values, -1 outside the mask, and the mask, both uncropped."""
    data: Any = grid
    if isinstance(grid, MaskedGrid):
        data, mask = grid.data, grid.mask if mask is None else mask
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
    """Return where two grids differ, in color or in being part of the grid.

    Grids of different shapes are compared from the top left; the result covers both.
    """
    grids = full_grid(before)[0], full_grid(after)[0]
    both = np.full((2, *np.maximum(*(grid.shape for grid in grids))), NOTHING)
    for whole, grid in zip(both, grids, strict=True):
        whole[: grid.shape[0], : grid.shape[1]] = grid
    return both[0] != both[1]


def host_array(array: ArrayLike, name: str) -> np.ndarray:
    """Return a 2-D array on the host; the error names what was given instead."""
    try:
        found = np.asarray(array)
    except TypeError as error:  # what a traced array raises
        raise TypeError(
            f"the {name} has no values yet, as in a compiled function: pictures are "
            "made on the host; use jax_log_grid or jaxrig.host_callback there"
        ) from error
    if found.ndim != 2:
        raise ValueError(
            f"the {name} has shape {found.shape}: it must be (height, width); take one "
            "of a batch"
        )
    return found


def render_rgb(
    grid: GridLike,
    cell_size: int = 20,
    scheme: str = "default",
    mask: ArrayLike | None = None,
) -> UInt8[np.ndarray, "height width 3"]:
    """Draw squares of `cell_size` pixels, padding too, so that shapes stay fixed."""
    if cell_size < 1:
        raise ValueError(f"cell_size={cell_size}: a cell is at least 1 pixel wide")
    values = full_grid(grid, mask)[0]
    table = [_rgb(color) for color in (*get_color_scheme(scheme), UNKNOWN_COLOR)]
    known = np.where(values == NOTHING, PADDING, values)
    index = np.where((values < NOTHING) | (values > PADDING), PADDING + 1, known)
    pixels = np.array(table, np.uint8)[index]
    return pixels.repeat(cell_size, axis=0).repeat(cell_size, axis=1)
