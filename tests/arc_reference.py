"""The operations written naively in NumPy, cell by cell: the packed ones must equal it.

A canvas is `(grid, clipboard)`, both int arrays of the padded shape with -1 for cells
that do not exist or hold no content.
"""

from collections import deque

import numpy as np

MOVES = {20: (-1, 0), 21: (1, 0), 22: (0, -1), 23: (0, 1)}


def size_of(grid):
    mask = grid >= 0
    return int(mask.any(1).sum()), int(mask.any(0).sum())


def box_of(selection):
    rows, columns = np.nonzero(selection)
    return rows.min(), columns.min(), rows.max() + 1, columns.max() + 1


def flood(grid, row, column, color):
    result, old = grid.copy(), grid[row, column]
    queue, seen = deque([(row, column)]), {(row, column)}
    while queue:
        r, c = queue.popleft()
        result[r, c] = color
        for near in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
            inside = 0 <= near[0] < grid.shape[0] and 0 <= near[1] < grid.shape[1]
            if inside and near not in seen and grid[near] == old:
                seen.add(near)
                queue.append(near)
    return result


def move(grid, selection, direction):
    height, width = size_of(grid)
    result = grid.copy()
    result[selection] = 0
    for r, c in zip(*np.nonzero(selection), strict=True):
        if grid[r, c] > 0:
            result[(r + direction[0]) % height, (c + direction[1]) % width] = grid[r, c]
    return result


def turn(grid, selection, operation):
    top, left, bottom, right = box_of(selection)
    content = grid[top:bottom, left:right]
    if operation in (24, 25):
        if content.shape[0] != content.shape[1]:
            return grid
        content = np.rot90(content, -1 if operation == 24 else 1)
    else:
        content = content[:, ::-1] if operation == 26 else content[::-1]
    result = grid.copy()
    result[top:bottom, left:right] = content
    return result


def paste(grid, clipboard, selection):
    result = grid.copy()
    if not (clipboard >= 0).any():
        return result
    top, left, *_ = box_of(clipboard >= 0)
    onto_row, onto_column, *_ = box_of(selection)
    for r, c in zip(*np.nonzero(selection), strict=True):
        source = (r - onto_row + top, c - onto_column + left)
        inside = source[0] < grid.shape[0] and source[1] < grid.shape[1]
        if inside and clipboard[source] >= 0:
            result[r, c] = clipboard[source]
    return result


def resize(grid, raw):
    _, _, height, width = box_of(raw)
    result = np.full_like(grid, -1)
    result[:height, :width] = np.maximum(grid[:height, :width], 0)
    return result


def apply(operation, grid, clipboard, raw, given):
    """Grid and clipboard after one operation with this raw selection."""
    selection = raw & (grid >= 0)
    if operation in (28, 30) and selection.any():
        clipboard_after = np.where(selection, grid, -1)
    else:
        clipboard_after = clipboard
    return edited(operation, grid, clipboard, raw, given), clipboard_after


def edited(operation, grid, clipboard, raw, given):
    active = grid >= 0
    selection = raw & active
    area = selection if selection.any() else active
    if operation < 10:
        return np.where(selection, operation, grid)
    if operation < 20:
        if selection.sum() != 1:
            return grid
        row, column = np.argwhere(selection)[0]
        return flood(grid, row, column, operation - 10)
    if operation < 24:
        return move(grid, area, MOVES[operation])
    if operation < 28:
        return turn(grid, area, operation)
    if operation == 29 and selection.any():
        return paste(grid, clipboard, selection)
    return recast(operation, grid, selection, area, raw, given)


def recast(operation, grid, selection, area, raw, given):
    """What is left: cut, clear, copy input, resize."""
    if operation == 30:
        return np.where(selection, 0, grid)
    if operation == 31:
        return np.where(area, 0, grid)
    if operation == 32:
        return given
    return resize(grid, raw) if operation == 33 and raw.any() else grid


def similarity(working, target):
    union = (working >= 0) | (target >= 0)
    if not union.any():
        return np.float32(0)
    matches = (working >= 0) & (working == target)
    return np.float32(matches.sum()) / np.float32(union.sum())


def random_grid(rng, shape, colors=10):
    """A grid of random size and content; few colors make large components."""
    grid = np.full(shape, -1, np.int32)
    height, width = rng.integers(1, np.array(shape) + 1)
    used = rng.integers(1, colors + 1)
    grid[:height, :width] = rng.integers(0, used, (height, width))
    return grid


def random_clipboard(rng, shape):
    """Empty, or content of any irregular shape."""
    kind = rng.integers(3)
    content = rng.random(shape) < (0.0, 0.05, 0.6)[kind]
    return np.where(content, rng.integers(0, 10, shape), -1).astype(np.int32)


def random_corners(rng, shape):
    return rng.integers(0, np.array(shape), (2, 2))
