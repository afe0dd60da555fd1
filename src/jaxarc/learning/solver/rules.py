"""Rules of our own: operations on grids, of which generated tasks are made.

An operation takes a key and a grid. The key is the same for all pairs of a task, so
whatever an operation draws (a color, a direction, a table) is part of the rule. Colors
are 0 (background) to 9; drawn grids use 1 to 4. Directions are not drawn: a program
turns the grid, applies the operation and turns it back.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

Cells = Int[Array, "h w"]
Marks = Bool[Array, "h w"]
Operation = Callable[[PRNGKeyArray, Cells], Cells]

DRAWN_COLORS = 4


def draw_color(key: PRNGKeyArray, low: int = 1, high: int = 6) -> Int[Array, ""]:
    """Return a color from `low` to `high` - 1."""
    return jax.random.randint(key, (), low, high, jnp.int32)


def draw_flag(key: PRNGKeyArray, chance: float = 0.5) -> Bool[Array, ""]:
    """Return True with this chance."""
    return jax.random.bernoulli(key, chance)


def pick_one(key: PRNGKeyArray, *choices: Array) -> Array:
    """Return one of the choices, the same one for the same key."""
    index = jax.random.randint(key, (), 0, len(choices), jnp.int32)
    return jnp.stack(choices)[index]


def _shift(grid: Array, down: int, right: int, fill: int = 0) -> Array:
    """Move the content by fixed numbers of cells; what enters is `fill`."""
    height, width = grid.shape
    pad = ((max(down, 0), max(-down, 0)), (max(right, 0), max(-right, 0)))
    padded = jnp.pad(grid, pad, constant_values=fill)
    top, left = max(-down, 0), max(-right, 0)
    return padded[top : top + height, left : left + width]


def _move(grid: Cells, down: Array, right: Array, wrap: Array) -> Cells:
    """Move the content by traced numbers of cells, around the edge or out of it."""
    height, width = grid.shape
    rows = jnp.arange(height, dtype=jnp.int32) - down
    columns = jnp.arange(width, dtype=jnp.int32) - right
    taken = grid[rows % height][:, columns % width]
    inside = (rows == rows % height)[:, None] & (columns == columns % width)[None]
    return jnp.where(inside | wrap, taken, 0)


STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))


def around(grid: Array, steps: int = 4) -> Array:
    """Return the four or eight neighbors of every cell, stacked."""
    return jnp.stack([_shift(grid, *step) for step in STEPS[:steps]])


def _spread(start: Array, allowed: Callable[[Array], Array]) -> Array:
    """Repeat `allowed(largest of self and neighbors)` until everything is reached."""
    widen = lambda x: jnp.maximum(x, around(x).max(axis=0))
    rounds = (start.size + 1) // 2 + 1  # the longest snake in the grid
    return jax.lax.fori_loop(0, rounds, lambda _, x: allowed(widen(x)), start)


def _objects(grid: Cells) -> Cells:
    """Label connected cells of one color with a positive number, background with 0."""
    # Each round takes the largest label among neighbors of the same color.
    labels = jnp.arange(1, grid.size + 1, dtype=jnp.int32).reshape(grid.shape)
    same = jnp.stack([_shift(grid, *step) == grid for step in STEPS[:4]])

    def grow(_: int, label: Cells) -> Cells:
        near = jnp.where(same, around(label), 0)
        return jnp.maximum(label, near.max(axis=0))

    labels = jnp.where(grid > 0, labels, 0)
    same = same & (grid > 0)[None]
    return jax.lax.fori_loop(0, (grid.size + 1) // 2 + 1, grow, labels)


def _sizes(labels: Cells) -> Cells:
    """Return the number of cells of the object that each cell belongs to."""
    equal = labels.reshape(-1, 1) == labels.reshape(1, -1)
    size = jnp.sum(equal, axis=1, dtype=jnp.int32).reshape(labels.shape)
    return jnp.where(labels > 0, size, 0)


def _counts(grid: Cells) -> Int[Array, "10"]:
    """Return how many cells have each color; the background counts as none."""
    colors = jnp.arange(10, dtype=jnp.int32)
    equal = grid.reshape(1, -1) == colors[:, None]
    return jnp.sum(equal & (colors > 0)[:, None], axis=1, dtype=jnp.int32)


def has_property(key: PRNGKeyArray, grid: Cells) -> Bool[Array, ""]:
    """Return whether the grid has a property that the key stands for."""
    keys = jax.random.split(key, 3)
    many = jnp.sum(grid > 0) > jax.random.randint(keys[0], (), 2, 9, jnp.int32)
    has = (grid == draw_color(keys[1], 1, 4)).any()
    symmetric = (grid == grid[:, ::-1]).all()
    return pick_one(keys[2], many, has, has, symmetric, (grid[0] > 0).any())


def _first_cells(grid: Cells, number: Array, color: Array) -> Cells:
    """Color so many cells in reading order and clear the others."""
    order = jnp.arange(grid.size, dtype=jnp.int32).reshape(grid.shape)
    return jnp.where(order < number, color, 0)


def turn(symmetry: Int[Array, ""], grid: Cells) -> Cells:
    """Apply a symmetry of the square; of other rectangles one that keeps the shape."""
    flips = [grid, grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
    if grid.shape[0] == grid.shape[1]:
        flips += [flip.T for flip in flips]
    return jnp.stack(flips)[symmetry % len(flips)]


def unturn(symmetry: Int[Array, ""], grid: Cells) -> Cells:
    """Undo `turn`: transposing exchanges the two single flips."""
    inverse = jnp.asarray(np.array([0, 1, 2, 3, 4, 6, 5, 7], np.int32))[symmetry]
    return turn(jnp.where(symmetry < 4, symmetry, inverse), grid)


# Operations: whole grid


def reflect(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Turn or reflect the grid."""
    return turn(jax.random.randint(key, (), 1, 8, jnp.int32), grid)


def translate(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Move everything by a few cells, around the edge or out of the grid."""
    keys = jax.random.split(key, 3)
    step = lambda k: jax.random.randint(k, (), -2, 3, jnp.int32)
    return _move(grid, step(keys[0]), step(keys[1]), draw_flag(keys[2]))


def translate_color(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Move the cells of one color and leave the others."""
    keys = jax.random.split(key)
    color = draw_color(keys[1], 1, 3)
    moved = translate(keys[0], jnp.where(grid == color, grid, 0))
    return jnp.where(moved > 0, moved, jnp.where(grid == color, 0, grid))


def repeat_shifted(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Draw a moved copy of everything on the background."""
    return jnp.where(grid > 0, grid, translate(key, grid))


def fall(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Let every cell fall to the bottom of its column."""
    order = jnp.argsort(grid > 0, axis=0, stable=True)
    return jnp.take_along_axis(grid, order, axis=0)


def fall_together(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Move the content as a whole to an edge, a corner or the middle."""
    rows, columns = (grid > 0).any(axis=1), (grid > 0).any(axis=0)
    above, left = jnp.argmax(rows), jnp.argmax(columns)
    below, right = jnp.argmax(rows[::-1]), jnp.argmax(columns[::-1])
    wrap = jnp.zeros((), bool)
    to = lambda down, across: _move(
        grid, down.astype(jnp.int32), across.astype(jnp.int32), wrap
    )
    zero = jnp.zeros_like(above)
    middle = ((below - above) // 2, (right - left) // 2)
    return pick_one(key, to(below, zero), to(-above, -left), to(*middle))


def permute_rows(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Exchange rows in a fixed way."""
    return grid[jax.random.permutation(key, grid.shape[0])]


def shear(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Move each row by one cell more than the row above, around the edge."""
    height, width = grid.shape
    steps = jnp.arange(height, dtype=jnp.int32)[:, None]
    columns = (jnp.arange(width, dtype=jnp.int32)[None] - steps) % width
    return jnp.take_along_axis(grid, columns, axis=1)


def sort_rows(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Order the rows by how many cells they have."""
    return grid[jnp.argsort(jnp.sum(grid > 0, axis=1), stable=True)]


def symmetrize(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Complete the background by one or all reflections."""
    one = jnp.where(grid > 0, grid, grid[:, ::-1])
    both = jnp.where(one > 0, one, one[::-1])
    around = jnp.where(grid > 0, grid, grid[::-1, ::-1])
    return pick_one(key, one, both, around)


def mirror_half(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Copy the left half to the right, mirrored or moved."""
    width = grid.shape[1]
    half, column = (width + 1) // 2, jnp.arange(width, dtype=jnp.int32)
    mirrored = grid[:, jnp.where(column < half, column, width - 1 - column)]
    moved = grid[:, jnp.where(column < half, column, column - half)]
    return pick_one(key, mirrored, moved)


def tile(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Repeat the corner of side 1 to 3 over the grid."""
    side = jax.random.randint(key, (), 1, 4, jnp.int32)
    rows, columns = (jnp.arange(n, dtype=jnp.int32) % side for n in grid.shape)
    return grid[rows][:, columns]


def zoom(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Enlarge the corner to twice its size."""
    rows, columns = (jnp.arange(n, dtype=jnp.int32) // 2 for n in grid.shape)
    return grid[rows][:, columns]


def combine_halves(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Compare the left half with the right: and, or, exclusive or, neither, without."""
    keys = jax.random.split(key, 3)
    height, width = grid.shape
    half = width // 2
    one, other = grid[:, :half] > 0, grid[:, width - half :] > 0
    found = pick_one(
        keys[0], one & other, one | other, one ^ other, ~(one | other), one & ~other
    )
    left = jnp.where(found, draw_color(keys[1], 1, 9), 0)
    empty = jnp.zeros((height, width - 2 * half), jnp.int32)
    alone = jnp.concatenate([left, empty, jnp.zeros_like(left)], axis=1)
    twice = jnp.concatenate([left, empty, left], axis=1)
    return pick_one(keys[2], alone, alone, twice)


# Operations: colors


def recolor(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Give the cells of one color another, or exchange the two."""
    keys = jax.random.split(key, 3)
    old, new = draw_color(keys[0], 1, 4), draw_color(keys[1], 1, 9)
    back = jnp.where(draw_flag(keys[2]) & (grid == new), old, grid)
    return jnp.where(grid == old, new, back)


def map_colors(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Replace every color by a table."""
    table = jax.random.randint(key, (10,), 0, 10, jnp.int32)
    return table[grid]


def one_color(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Give all cells one color: a fixed one, the commonest, or the rarest."""
    counts = _counts(grid)
    most = jnp.argmax(counts).astype(jnp.int32)
    least = jnp.argmin(jnp.where(counts > 0, counts, grid.size)).astype(jnp.int32)
    keys = jax.random.split(key, 3)
    color = pick_one(keys[0], draw_color(keys[1], 1, 9), most, least)
    return jnp.where(draw_flag(keys[2], 0.7), jnp.where(grid > 0, color, 0), color)


def fill_background(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Color the background: all of it, every second cell, row or column."""
    keys = jax.random.split(key)
    row, column = (jnp.arange(n, dtype=jnp.int32) for n in grid.shape)
    row, column = row[:, None] + 0 * column[None], column[None] + 0 * row[:, None]
    every = jnp.ones(grid.shape, bool)
    where = pick_one(keys[0], every, (row + column) % 2 == 0, row % 2 == 0)
    return jnp.where((grid == 0) & where, draw_color(keys[1], 1, 9), grid)


def invert(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Exchange cells and background."""
    return jnp.where(grid == 0, draw_color(key, 1, 9), 0)


def keep_color(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Keep, or remove, one color: a fixed one, the commonest or the rarest."""
    keys = jax.random.split(key, 3)
    counts = _counts(grid)
    most = jnp.argmax(counts).astype(jnp.int32)
    least = jnp.argmin(jnp.where(counts > 0, counts, grid.size)).astype(jnp.int32)
    color = pick_one(keys[0], draw_color(keys[1], 1, 3), most, least)
    return jnp.where((grid == color) ^ draw_flag(keys[2], 0.3), grid, 0)


def fill_rows(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Fill each row with its commonest, its largest or its first color."""
    colors = jnp.arange(10, dtype=jnp.int32)
    equal = grid[:, :, None] == colors[None, None]
    counts = jnp.sum(equal & (colors > 0)[None, None], axis=1)
    common = jnp.argmax(counts, axis=1).astype(jnp.int32)
    row = pick_one(key, common, grid.max(axis=1), grid[:, 0])
    return jnp.broadcast_to(row[:, None], grid.shape)


def mark_lines(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Recolor cells in every second row, or in rows with a fixed number of cells."""
    keys = jax.random.split(key, 3)
    number = jnp.sum(grid > 0, axis=1)
    second = jnp.arange(grid.shape[0], dtype=jnp.int32) % 2 == 0
    many = number == jax.random.randint(keys[0], (), 1, 4, jnp.int32)
    rows = pick_one(keys[1], second, many, number == number.max())
    return jnp.where(rows[:, None] & (grid > 0), draw_color(keys[2], 1, 9), grid)


def overlay(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Draw a fixed pattern over or under the cells, or keep only what is in it."""
    keys = jax.random.split(key, 3)
    pattern = jax.random.bernoulli(keys[0], 0.35, grid.shape)
    color = draw_color(keys[1], 1, 9)
    over = jnp.where(pattern, color, grid)
    under = jnp.where(pattern & (grid == 0), color, grid)
    return pick_one(keys[2], over, under, jnp.where(pattern, grid, 0))


def count_cells(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Count the cells, those of one color, the colors, or the objects."""
    keys = jax.random.split(key, 3)
    labels, order = _objects(grid).reshape(-1), jnp.arange(1, grid.size + 1)
    objects = jnp.sum(labels == order)
    counts = _counts(grid)
    color = draw_color(keys[1], 1, 3)
    number = pick_one(
        keys[0], counts.sum(), counts[color], jnp.sum(counts > 0), objects, objects
    )
    return _first_cells(grid, number, draw_color(keys[2], 1, 6))


# Operations: neighborhoods, lines and objects


def local_table(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Replace a cell by a table of whether it is colored and how many neighbors are."""
    keys = jax.random.split(key, 5)
    near = lambda steps: jnp.sum(around((grid > 0).astype(jnp.int32), steps), axis=0)
    number = jnp.minimum(pick_one(keys[0], near(4), near(8)), 4)
    own = (grid > 0).astype(jnp.int32)
    table = jax.random.bernoulli(keys[1], 0.35, (2, 5))
    color = jnp.where(draw_flag(keys[2], 0.25), 0, draw_color(keys[3], 1, 9))
    return jnp.where(table[own, number], color, grid)


def outline(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Draw around the cells, in a fixed color or their own."""
    keys = jax.random.split(key, 3)
    near = pick_one(keys[0], around(grid).max(axis=0), around(grid, 8).max(axis=0))
    color = jnp.where(draw_flag(keys[1], 0.6), draw_color(keys[2], 1, 9), near)
    return jnp.where((grid == 0) & (near > 0), color, grid)


def hollow(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Clear or recolor the cells that have all neighbors, or those that do not."""
    keys = jax.random.split(key, 3)
    full = (around(grid) > 0).all(axis=0) & (grid > 0)
    color = jnp.where(draw_flag(keys[0]), 0, draw_color(keys[1], 1, 9))
    where = pick_one(keys[2], full, full, (grid > 0) & ~full)
    return jnp.where(where, color, grid)


def remove_single(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Remove or recolor the cells that touch none of their color, or keep only them."""
    keys = jax.random.split(key, 3)
    alone = (_sizes(_objects(grid)) == 1) & (grid > 0)
    color = jnp.where(draw_flag(keys[0]), 0, draw_color(keys[1], 1, 9))
    kept = jnp.where(alone, grid, 0)
    return pick_one(keys[2], jnp.where(alone, color, grid), kept)


def fill_enclosed(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Color the background that the edge of the grid cannot reach."""
    edge = jnp.pad(jnp.zeros([n - 2 for n in grid.shape], bool), 1, constant_values=1)
    free = (grid == 0).astype(jnp.int32)
    start = jnp.where(edge, free, 0)
    reached = _spread(start, lambda x: x * free)
    return jnp.where((free == 1) & (reached == 0), draw_color(key, 1, 9), grid)


def choose_object(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Keep, remove or recolor the largest or the smallest object."""
    keys = jax.random.split(key, 3)
    size = _sizes(_objects(grid))
    smallest = jnp.where(size > 0, size, grid.size).min()
    chosen = (size == pick_one(keys[0], size.max(), smallest)) & (size > 0)
    color = draw_color(keys[1], 1, 9)
    return pick_one(
        keys[2],
        jnp.where(chosen, grid, 0),
        jnp.where(chosen, 0, grid),
        jnp.where(chosen, color, grid),
    )


def color_by_size(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Color every object by its number of cells."""
    table = jax.random.randint(key, (7,), 1, 10, jnp.int32)
    size = _sizes(_objects(grid))
    return jnp.where(size > 0, table[jnp.minimum(size, 6)], grid)


def shoot(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Extend cells, all or of one color, to the right until something is met."""
    keys = jax.random.split(key, 3)
    color = draw_color(keys[0], 1, 3)
    ray = jnp.where(draw_flag(keys[1]), jnp.where(grid == color, grid, 0), grid)
    diagonal = draw_flag(keys[2], 0.3)
    for _ in range(max(grid.shape) - 1):
        step = jnp.where(diagonal, _shift(ray, 1, 1), _shift(ray, 0, 1))
        ray = jnp.where(grid == 0, jnp.maximum(ray, step), ray)
    return jnp.where(grid > 0, grid, ray)


def draw_lines(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Draw a row, a cross, a diagonal or both through cells, all or of one color."""
    keys = jax.random.split(key, 3)
    color = draw_color(keys[0], 1, 3)
    from_ = jnp.where(draw_flag(keys[1]), jnp.where(grid == color, grid, 0), grid)
    row = jnp.broadcast_to(from_.max(axis=1, keepdims=True), grid.shape)
    column = jnp.broadcast_to(from_.max(axis=0, keepdims=True), grid.shape)
    down = up = from_
    for _ in range(max(grid.shape) - 1):
        down = jnp.maximum(down, jnp.maximum(_shift(down, 1, 1), _shift(down, -1, -1)))
        up = jnp.maximum(up, jnp.maximum(_shift(up, 1, -1), _shift(up, -1, 1)))
    both, cross = jnp.maximum(down, up), jnp.maximum(row, column)
    return jnp.where(grid > 0, grid, pick_one(keys[2], row, cross, down, both))


def connect(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Fill between two cells of one color in a row, or in rows and columns."""
    keys = jax.random.split(key, 3)

    def between(cells: Cells) -> Cells:
        found = jnp.zeros_like(cells)
        for color in range(1, DRAWN_COLORS + 1):
            here = (cells == color).astype(jnp.int32)
            left = jax.lax.cummax(here, axis=1)
            right = jax.lax.cummax(here, axis=1, reverse=True)
            found = jnp.where((left * right > 0) & (found == 0), color, found)
        return found

    rows, columns = between(grid), between(grid.T).T
    line = pick_one(keys[0], rows, jnp.maximum(rows, columns))
    color = jnp.where(draw_flag(keys[1]), draw_color(keys[2], 1, 9), line)
    return jnp.where((grid == 0) & (line > 0), color, grid)


def fill_box(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Color the background, or the edge, of the box around all cells."""
    keys = jax.random.split(key)
    rows, columns = (grid > 0).any(axis=1), (grid > 0).any(axis=0)
    hull = lambda x: (
        (jnp.cumsum(x) > 0) & (jnp.cumsum(x[::-1])[::-1] > 0)  # between first and last
    )
    box = hull(rows)[:, None] & hull(columns)[None]
    inside = around(box.astype(jnp.int32)).min(axis=0) == 1
    where = pick_one(keys[0], box, box & ~inside)
    return jnp.where(where & (grid == 0), draw_color(keys[1], 1, 9), grid)


def frame(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Draw the edge of the grid."""
    inside = jnp.pad(jnp.zeros([n - 2 for n in grid.shape], bool), 1, constant_values=1)
    return jnp.where(inside, draw_color(key, 1, 9), grid)


def stamp(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Draw a fixed small pattern at every cell, all or of one color."""
    keys = jax.random.split(key, 4)
    color = draw_color(keys[0], 1, 3)
    marked = jnp.where(draw_flag(keys[1], 0.6), jnp.where(grid == color, grid, 0), grid)
    drawn = jax.random.bernoulli(keys[2], 0.45, (8,))
    near = around(marked, 8)
    ink = jnp.where(drawn[:, None, None], near, 0).max(axis=0)
    ink = jnp.where(draw_flag(keys[3]) & (ink > 0), draw_color(keys[2], 1, 9), ink)
    return jnp.where(grid > 0, grid, ink)


def answer_yes_no(key: PRNGKeyArray, grid: Cells) -> Cells:
    """Color the whole grid, or its cells, by whether the grid has a property."""
    keys = jax.random.split(key, 5)
    yes = has_property(keys[2], grid)
    one, other = jax.random.randint(keys[3], (2,), 1, 9, jnp.int32)
    color = jnp.where(yes, one, other)
    return jnp.where(draw_flag(keys[4]) | (grid > 0), color, 0)
