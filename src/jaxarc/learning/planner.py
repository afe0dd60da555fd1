"""Plan how to draw a grid: few actions of the environment that turn one into another.

A plan begins with an opening (the input again, a turn, a crop, a shift, a larger or
smaller grid) and mends what is left with strokes, each time the one that makes the most
cells right: a filled box, a flooded region, a paste. Several openings are finished and
the shortest plan wins. One that only paints single cells is always among them.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from jaxarc.ops.operations import COLORS
from jaxarc.ops.operations import ARCLEOperationType as Op

KINDS = ("box", "flood", "paste", "turn", "move")
FINISHED = 4  # how many of the openings are drawn to the end

Box = tuple[int, int, int, int]
Action = tuple[int, int, int, int, int]
Grid = np.ndarray


@dataclass(frozen=True)
class Draft:
    """A grid on its way, what was copied, and the actions that led here."""

    grid: Grid
    actions: tuple[Action, ...] = ()
    clipboard: Grid | None = None

    def then(self, operation: int, grid: Grid, box: Box | None = None) -> "Draft":
        """Return the draft after an operation on a box, by default on all cells."""
        height, width = self.grid.shape
        box = box or (0, 0, height - 1, width - 1)
        action = (int(operation), *box)
        return dataclasses.replace(self, grid=grid, actions=(*self.actions, action))

    def fill(self, color: int, box: Box) -> "Draft":
        """Return the draft with a box in one color."""
        top, left, bottom, right = box
        grid = self.grid.copy()
        grid[top : bottom + 1, left : right + 1] = color
        return self.then(Op.FILL_0 + color, grid, box)

    def resize(self, shape: tuple[int, int]) -> "Draft":
        """Return the draft cut or extended with black at its far edges."""
        if shape == self.grid.shape:
            return self
        grid = np.zeros(shape, self.grid.dtype)
        rows, columns = np.minimum(shape, self.grid.shape)
        grid[:rows, :columns] = self.grid[:rows, :columns]
        # Only the far corner counts, so that a point action can resize as well.
        corner = (shape[0] - 1, shape[1] - 1)
        return self.then(Op.RESIZE, grid, (*corner, *corner))

    def copy(self, box: Box) -> "Draft":
        """Return the draft with a box on the clipboard."""
        top, left, bottom, right = box
        content = self.grid[top : bottom + 1, left : right + 1]
        copied = self.then(Op.COPY, self.grid, box)
        return dataclasses.replace(copied, clipboard=content)

    def paste(self, content: Grid, box: Box) -> "Draft":
        """Return the draft with as much of the clipboard as a box takes."""
        top, left, bottom, right = box
        grid = self.grid.copy()
        grid[top : bottom + 1, left : right + 1] = content[
            : bottom - top + 1, : right - left + 1
        ]
        return self.then(Op.PASTE, grid, box)

    def turn(self, *operations: Op) -> "Draft":
        """Return the draft after flips and rotations of the whole grid."""
        turns = {
            Op.FLIP_HORIZONTAL: lambda grid: grid[:, ::-1],
            Op.FLIP_VERTICAL: lambda grid: grid[::-1],
            Op.ROTATE_C: lambda grid: np.rot90(grid, -1),
            Op.ROTATE_CC: lambda grid: np.rot90(grid, 1),
        }
        draft = self
        for operation in operations:
            draft = draft.then(operation, turns[operation](draft.grid))
        return draft


def plan(
    working: Grid,
    wanted: Grid,
    given: Grid | None = None,
    kinds: tuple[str, ...] = KINDS,
) -> np.ndarray:
    """Return the actions that turn the working grid into the wanted one, and submit.

    Grids come without padding; `given` is the input of the pair, which Copy Input
    brings back (default: the working grid). `kinds` are the kinds of action to use
    beside Resize, single cells and Submit: none of them is painting cell by cell. A row
    of the result is an operation and two corners, as a `BboxAction` takes them.
    """
    working, wanted = _checked("working", working), _checked("wanted", wanted)
    given = working if given is None else _checked("given", given)
    unknown = set(kinds).difference(KINDS)
    if unknown:
        raise ValueError(
            f"kinds of action {sorted(unknown)} are not known: choose from "
            f"{', '.join(KINDS)}"
        )
    start = Draft(working)
    best = _paint_cells(start.resize(wanted.shape), wanted)
    drafts = sorted(
        _openings(start, wanted, given, kinds), key=lambda d: _estimate(d, wanted)
    )
    for draft in drafts[:FINISHED]:
        finished = _mend(draft, wanted, kinds, len(best.actions))
        if len(finished.actions) < len(best.actions):
            best = finished
    ended = best.then(Op.SUBMIT, best.grid, (0, 0, 0, 0))
    return np.asarray(ended.actions, np.int32)


def _checked(name: str, grid: Grid) -> Grid:
    grid = np.asarray(grid)
    if grid.ndim != 2 or not grid.size or not np.issubdtype(grid.dtype, np.integer):
        raise ValueError(
            f"the {name} grid has shape {grid.shape} and type {grid.dtype}: it is a "
            "rectangle of whole numbers"
        )
    if grid.min() < 0 or grid.max() >= COLORS:
        raise ValueError(
            f"the {name} grid holds {grid.min()} to {grid.max()}: colors are 0 to "
            f"{COLORS - 1}; cut its padding away"
        )
    return grid.astype(np.int8)


def _estimate(draft: Draft, wanted: Grid) -> int:
    """Return actions taken and regions left to paint."""
    left = np.where(draft.grid == wanted, -1, wanted)
    used = np.unique(left[left >= 0])
    return len(draft.actions) + sum(int(_joined(left == c).max()) for c in used)


def _joined(cells: np.ndarray) -> np.ndarray:
    """Return the numbers, from 1, of regions whose cells are joined by their sides."""
    labels = np.zeros(cells.shape, np.int32)
    ndimage.label(cells, output=labels)
    return labels


def _openings(
    start: Draft, wanted: Grid, given: Grid, kinds: tuple[str, ...]
) -> Iterator[Draft]:
    """Yield grids of the wanted size that are a few actions away."""
    sources = [start]
    if not np.array_equal(start.grid, given):
        sources.append(start.then(Op.COPY_INPUT, given, (0, 0, 0, 0)))
    for source in sources:
        yield source.resize(wanted.shape)
        if "turn" in kinds:
            yield from (d.resize(wanted.shape) for d in _turned(source, wanted.shape))
        if "move" in kinds and source.grid.shape == wanted.shape:
            yield _shifted(source, wanted)
        if "paste" in kinds:
            yield from _pasted(source, wanted)


def _turned(source: Draft, shape: tuple[int, int]) -> Iterator[Draft]:
    """Yield the symmetries of the grid that are not itself."""
    across, down = Op.FLIP_HORIZONTAL, Op.FLIP_VERTICAL
    for flips in ((across,), (down,), (across, down)):
        yield source.turn(*flips)
    height, width = source.grid.shape
    side = max(height, width)
    # A rotation needs a square box. Turned clockwise and mirrored the grid stays in its
    # corner: transposed.
    transposed = source.resize((side, side)).turn(Op.ROTATE_C, across)
    if height == width:
        yield from (source.turn(Op.ROTATE_C), source.turn(Op.ROTATE_CC))
        yield from (transposed, source.turn(Op.ROTATE_C, down))
    elif shape == (width, height):
        transposed = transposed.resize((width, height))
        yield transposed
        for flips in ((across,), (down,), (across, down)):
            yield transposed.turn(*flips)


def _shifted(source: Draft, wanted: Grid) -> Draft:
    """Return the grid moved as a whole, around its edges, to where it fits best."""
    rolls = [np.arange(size) for size in wanted.shape]
    # Beyond half of the way around, the other direction is shorter.
    rolls = [np.where(2 * r > len(r), r - len(r), r) for r in rolls]
    down, right = min(
        itertools.product(*rolls),
        key=lambda by: (
            int((np.roll(source.grid, by, (0, 1)) != wanted).sum())
            + abs(int(by[0]))
            + abs(int(by[1]))
        ),
    )
    draft = source
    moves = (down, 0, Op.MOVE_UP, Op.MOVE_DOWN), (right, 1, Op.MOVE_LEFT, Op.MOVE_RIGHT)
    for by, axis, back, forth in moves:
        for _ in range(abs(int(by))):
            moved = np.roll(draft.grid, int(np.sign(by)), axis)
            draft = draft.then(forth if by > 0 else back, moved)
    return draft


def _pasted(source: Draft, wanted: Grid) -> Iterator[Draft]:
    """Yield the grid on the clipboard, and the part of it that fits best, pasted."""
    if source.grid.shape == wanted.shape:
        return
    rows, columns = source.grid.shape
    yield source.copy((0, 0, rows - 1, columns - 1)).resize(wanted.shape)
    height, width = np.minimum(source.grid.shape, wanted.shape)
    views = np.lib.stride_tricks.sliding_window_view(source.grid, (height, width))
    alike = (views == wanted[:height, :width]).sum(axis=(2, 3))
    top, left = np.unravel_index(np.argmax(alike), alike.shape)
    box = int(top), int(left), int(top + height - 1), int(left + width - 1)
    content = source.grid[top : top + height, left : left + width]
    corner = (0, 0, int(height) - 1, int(width) - 1)
    yield source.copy(box).resize(wanted.shape).paste(content, corner)


def _mend(draft: Draft, wanted: Grid, kinds: tuple[str, ...], limit: int) -> Draft:
    """Return the finished grid: in every turn the stroke that mends most cells."""
    while len(draft.actions) < limit and not np.array_equal(draft.grid, wanted):
        strokes: list[tuple[int, Draft]] = []
        if draft.clipboard is not None:
            strokes.append(_best_paste(draft, wanted, draft.clipboard))
        if "box" in kinds:
            strokes.append(_best_box(draft, wanted))
        if "flood" in kinds:
            strokes.append(_best_flood(draft, wanted))
        gain, after = max(strokes, key=lambda stroke: stroke[0], default=(1, draft))
        # Mending one cell makes no box better: +1 becomes 0 for its color, 0 becomes -1
        # for the others.
        if gain <= 1:
            return _paint_cells(draft, wanted)
        # Looking for the place of a paste takes longest, and most are pasted at first.
        pasted = after.actions[-1][0] == int(Op.PASTE)
        draft = after if pasted else dataclasses.replace(after, clipboard=None)
    return draft


def _paint_cells(draft: Draft, wanted: Grid) -> Draft:
    for row, column in np.argwhere(draft.grid != wanted):
        cell = int(row), int(column)
        draft = draft.fill(int(wanted[cell]), (*cell, *cell))
    return draft


def _gains(draft: Draft, wanted: Grid) -> np.ndarray:
    """Return for every color 1 where it mends a cell and -1 where it spoils one."""
    colors = np.arange(COLORS, dtype=np.int8)[:, None, None]
    right = draft.grid == wanted
    return (wanted == colors).astype(np.int16) - right


def _best_box(draft: Draft, wanted: Grid) -> tuple[int, Draft]:
    used = np.unique(wanted)
    gain, color, box = _largest_sum(_gains(draft, wanted)[used])
    return gain, draft.fill(int(used[color]), box)


def _largest_sum(value: np.ndarray) -> tuple[int, int, Box]:
    """Return the largest sum over a box of any layer, the layer and the box.

    For every band of rows the best run of columns ends where the sum up to a column
    exceeds an earlier one by most (Kadane's algorithm, Bentley 1984).
    """
    layers, height, width = value.shape
    tops, bottoms = np.triu_indices(height)
    sums = np.zeros((layers, height + 1, width + 1), np.int16)
    sums[:, 1:, 1:] = value.cumsum(axis=1).cumsum(axis=2)
    bands = sums[:, bottoms + 1] - sums[:, tops]
    runs = bands[..., 1:] - np.minimum.accumulate(bands[..., :-1], axis=-1)
    layer, band, right = np.unravel_index(np.argmax(runs), runs.shape)
    left = np.argmin(bands[layer, band, : right + 1])
    box = int(tops[band]), int(left), int(bottoms[band]), int(right)
    return int(runs[layer, band, right]), int(layer), box


def _best_flood(draft: Draft, wanted: Grid) -> tuple[int, Draft]:
    labels, count = _label(draft.grid)
    layers = _gains(draft, wanted)
    sums = [np.bincount(labels.ravel(), x.ravel(), count) for x in layers]
    color, region = divmod(int(np.argmax(sums)), count)
    cells = labels == region
    row, column = (int(index) for index in np.argwhere(cells)[0])
    grid = np.where(cells, np.int8(color), draft.grid)
    flooded = draft.then(Op.FLOOD_FILL_0 + color, grid, (row, column, row, column))
    return int(sums[color][region]), flooded


def _label(grid: Grid) -> tuple[np.ndarray, int]:
    """Return the region of every cell, each of one color, and how many there are."""
    labels, count = np.zeros(grid.shape, np.int32), 0
    for color in np.unique(grid):
        found = _joined(grid == color)
        labels = np.where(found > 0, found + (count - 1), labels)
        count += int(found.max())
    return labels, count


def _best_paste(draft: Draft, wanted: Grid, content: Grid) -> tuple[int, Draft]:
    """Return the best place of the clipboard, and how much of it to paste there."""
    right = draft.grid == wanted
    best, place = 0, (0, 0, 0, 0)
    for top, left in np.ndindex(wanted.shape):
        there = wanted[top : top + content.shape[0], left : left + content.shape[1]]
        rows, columns = there.shape
        kept = right[top : top + rows, left : left + columns]
        fits = (content[:rows, :columns] == there).astype(np.int16) - kept
        sums = fits.cumsum(axis=0).cumsum(axis=1)
        if sums.max() > best:
            down, across = np.unravel_index(np.argmax(sums), sums.shape)
            best, place = int(sums.max()), (top, left, top + down, left + across)
    top, left, bottom, far = (int(side) for side in place)
    return best, draft.paste(content, (top, left, bottom, far))
