"""Rules of our own: operations on grids, of which generated tasks are made.

The draws are the same for all pairs of a task, so whatever an operation draws (a color,
a number, a table) is part of the rule. Colors are 0 (background) to 9; drawn grids use
1 to 4. Directions are not drawn: a program turns the grid, applies the operation and
turns it back.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray

Cells = Int[Array, "h w"]
Marks = Bool[Array, "h w"]

DRAWN_COLORS = 4
MOST_DRAWS = 8


class Draws:
    """What a rule draws, one after another; the same key gives the same draws."""

    def __init__(self, key: PRNGKeyArray):
        self._keys, self._used = jax.random.split(key, MOST_DRAWS), 0

    def key(self) -> PRNGKeyArray:
        """Return the key of the next draw."""
        self._used += 1
        return self._keys[self._used - 1]

    def number(self, low: int, high: int, shape: tuple[int, ...] = ()) -> Array:
        """Return whole numbers from `low` to `high` - 1."""
        return jax.random.randint(self.key(), shape, low, high, jnp.int32)

    def color(self) -> Int[Array, ""]:
        """Return a color that need not be in the grid."""
        return self.number(1, 9)

    def flag(self, chance: float = 0.5, shape: tuple[int, ...] = ()) -> Array:
        """Return True with this chance."""
        return jax.random.bernoulli(self.key(), chance, shape)

    def pick(self, *choices: Array) -> Array:
        """Return one of the choices."""
        return jnp.stack(choices)[self.number(0, len(choices))]

    def some_cells(self, grid: Cells, chance: float = 0.5) -> Cells:
        """Return the cells of one color with this chance, otherwise all."""
        color = self.number(1, 3)
        return jnp.where(self.flag(chance), jnp.where(grid == color, grid, 0), grid)

    def color_of(self, grid: Cells, fixed: int) -> Int[Array, ""]:
        """Return a color below `fixed`, the commonest of the grid, or the rarest."""
        counts = _counts(grid)
        most = jnp.argmax(counts).astype(jnp.int32)
        least = jnp.argmin(jnp.where(counts > 0, counts, grid.size)).astype(jnp.int32)
        which = self.number(0, 3)
        return jnp.stack([self.number(1, fixed), most, least])[which]

    def property_of(self, grid: Cells) -> Bool[Array, ""]:
        """Return whether the grid has a property that is drawn."""
        many = jnp.sum(grid > 0) > self.number(2, 9)
        has = (grid == self.number(1, 4)).any()
        symmetric = (grid == grid[:, ::-1]).all()
        return self.pick(many, has, has, symmetric, (grid[0] > 0).any())


def _shift(grid: Array, down: int, right: int) -> Array:
    """Move the content by fixed numbers of cells; what enters is 0."""
    height, width = grid.shape
    pad = ((max(down, 0), max(-down, 0)), (max(right, 0), max(-right, 0)))
    top, left = max(-down, 0), max(-right, 0)
    return jnp.pad(grid, pad)[top : top + height, left : left + width]


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


def _spread(start: Cells, allowed: Bool[Array, "four h w"]) -> Cells:
    """Spread the largest numbers to neighbors, where allowed, as far as they go."""
    grow = lambda _, x: jnp.maximum(x, jnp.where(allowed, around(x), 0).max(axis=0))
    rounds = (start.size + 1) // 2 + 1  # the longest snake in the grid
    return jax.lax.fori_loop(0, rounds, grow, start)


def _objects(grid: Cells) -> Cells:
    """Label connected cells of one color with a positive number, background with 0."""
    labels = jnp.arange(1, grid.size + 1, dtype=jnp.int32).reshape(grid.shape)
    same = jnp.stack([_shift(grid, *step) == grid for step in STEPS[:4]])
    return _spread(jnp.where(grid > 0, labels, 0), same & (grid > 0)[None])


def _sizes(labels: Cells) -> Cells:
    """Return the number of cells of the object that each cell belongs to."""
    equal = labels.reshape(-1, 1) == labels.reshape(1, -1)
    size = jnp.sum(equal, axis=1, dtype=jnp.int32).reshape(labels.shape)
    return jnp.where(labels > 0, size, 0)


def _counts(grid: Cells) -> Int[Array, "10"]:
    """Return how many cells have each color; the background counts as none."""
    return jnp.bincount(grid.reshape(-1), length=10).at[0].set(0).astype(jnp.int32)


def _edge(grid: Cells) -> Marks:
    """Return the cells on the edge of the grid."""
    return jnp.pad(jnp.zeros([n - 2 for n in grid.shape], bool), 1, constant_values=1)


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


class Rules(Draws):
    """Draws with one method for each operation: a grid in, a grid of that shape out."""

    # The whole grid.
    def reflect(self, grid: Cells) -> Cells:
        """Turn or reflect the grid."""
        return turn(self.number(1, 8), grid)

    def translate(self, grid: Cells) -> Cells:
        """Move everything by a few cells, around the edge or out of the grid."""
        return _move(grid, self.number(-2, 3), self.number(-2, 3), self.flag())

    def translate_color(self, grid: Cells) -> Cells:
        """Move the cells of one color and leave the others."""
        moves, color = Rules(self.key()), self.number(1, 3)
        moved = moves.translate(jnp.where(grid == color, grid, 0))
        return jnp.where(moved > 0, moved, jnp.where(grid == color, 0, grid))

    def repeat_shifted(self, grid: Cells) -> Cells:
        """Draw a moved copy of everything on the background."""
        return jnp.where(grid > 0, grid, self.translate(grid))

    def fall(self, grid: Cells) -> Cells:
        """Let every cell fall to the bottom of its column."""
        order = jnp.argsort(grid > 0, axis=0, stable=True)
        return jnp.take_along_axis(grid, order, axis=0)

    def fall_together(self, grid: Cells) -> Cells:
        """Move the content as a whole to an edge, a corner or the middle."""
        rows, columns = (grid > 0).any(axis=1), (grid > 0).any(axis=0)
        free = [jnp.argmax(x) for x in (rows, columns, rows[::-1], columns[::-1])]
        above, left, below, right = (x.astype(jnp.int32) for x in free)
        to = lambda down, across: _move(grid, down, across, jnp.zeros((), bool))
        middle = to((below - above) // 2, (right - left) // 2)
        return self.pick(to(below, jnp.zeros_like(below)), to(-above, -left), middle)

    def permute_rows(self, grid: Cells) -> Cells:
        """Exchange rows in a fixed way."""
        return grid[jax.random.permutation(self.key(), grid.shape[0])]

    def shear(self, grid: Cells) -> Cells:
        """Move each row by one cell more than the row above, around the edge."""
        height, width = grid.shape
        steps = jnp.arange(height, dtype=jnp.int32)[:, None]
        columns = (jnp.arange(width, dtype=jnp.int32)[None] - steps) % width
        return jnp.take_along_axis(grid, columns, axis=1)

    def sort_rows(self, grid: Cells) -> Cells:
        """Order the rows by how many cells they have."""
        return grid[jnp.argsort(jnp.sum(grid > 0, axis=1), stable=True)]

    def symmetrize(self, grid: Cells) -> Cells:
        """Complete the background by one or all reflections."""
        one = jnp.where(grid > 0, grid, grid[:, ::-1])
        both = jnp.where(one > 0, one, one[::-1])
        turned = jnp.where(grid > 0, grid, grid[::-1, ::-1])
        return self.pick(one, both, turned)

    def mirror_half(self, grid: Cells) -> Cells:
        """Copy the left half to the right, mirrored or moved."""
        width = grid.shape[1]
        half, column = (width + 1) // 2, jnp.arange(width, dtype=jnp.int32)
        mirrored = grid[:, jnp.where(column < half, column, width - 1 - column)]
        moved = grid[:, jnp.where(column < half, column, column - half)]
        return self.pick(mirrored, moved)

    def tile(self, grid: Cells) -> Cells:
        """Repeat the corner of side 1 to 3 over the grid."""
        side = self.number(1, 4)
        rows, columns = (jnp.arange(n, dtype=jnp.int32) % side for n in grid.shape)
        return grid[rows][:, columns]

    def zoom(self, grid: Cells) -> Cells:
        """Enlarge the corner to twice its size."""
        rows, columns = (jnp.arange(n, dtype=jnp.int32) // 2 for n in grid.shape)
        return grid[rows][:, columns]

    def combine_halves(self, grid: Cells) -> Cells:
        """Compare the halves: and, or, exclusive or, neither, left without right."""
        height, width = grid.shape
        half = width // 2
        one, other = grid[:, :half] > 0, grid[:, width - half :] > 0
        found = self.pick(
            one & other, one | other, one ^ other, ~(one | other), one & ~other
        )
        left = jnp.where(found, self.color(), 0)
        empty = jnp.zeros((height, width - 2 * half), jnp.int32)
        alone = jnp.concatenate([left, empty, jnp.zeros_like(left)], axis=1)
        twice = jnp.concatenate([left, empty, left], axis=1)
        return self.pick(alone, alone, twice)

    # Colors.
    def recolor(self, grid: Cells) -> Cells:
        """Give the cells of one color another, or exchange the two."""
        old, new = self.number(1, 4), self.color()
        back = jnp.where(self.flag() & (grid == new), old, grid)
        return jnp.where(grid == old, new, back)

    def map_colors(self, grid: Cells) -> Cells:
        """Replace every color by a table."""
        return self.number(0, 10, (10,))[grid]

    def one_color(self, grid: Cells) -> Cells:
        """Give all cells one color: a fixed one, the commonest, or the rarest."""
        color = self.color_of(grid, fixed=9)
        return jnp.where(self.flag(0.7), jnp.where(grid > 0, color, 0), color)

    def fill_background(self, grid: Cells) -> Cells:
        """Color the background: all of it, every second cell, row or column."""
        row, column = jnp.indices(grid.shape, jnp.int32)
        every = jnp.ones(grid.shape, bool)
        where = self.pick(every, (row + column) % 2 == 0, row % 2 == 0)
        return jnp.where((grid == 0) & where, self.color(), grid)

    def invert(self, grid: Cells) -> Cells:
        """Exchange cells and background."""
        return jnp.where(grid == 0, self.color(), 0)

    def keep_color(self, grid: Cells) -> Cells:
        """Keep, or remove, one color: a fixed one, the commonest or the rarest."""
        color = self.color_of(grid, fixed=3)
        return jnp.where((grid == color) ^ self.flag(0.3), grid, 0)

    def fill_rows(self, grid: Cells) -> Cells:
        """Fill each row with its commonest, its largest or its first color."""
        common = jnp.argmax(jax.vmap(_counts)(grid[:, None]), axis=1).astype(jnp.int32)
        row = self.pick(common, grid.max(axis=1), grid[:, 0])
        return jnp.broadcast_to(row[:, None], grid.shape)

    def mark_lines(self, grid: Cells) -> Cells:
        """Recolor cells in every second row, or in rows with so many of them."""
        number = jnp.sum(grid > 0, axis=1)
        many = number == self.number(1, 4)
        second = jnp.arange(grid.shape[0], dtype=jnp.int32) % 2 == 0
        rows = self.pick(second, many, number == number.max())
        return jnp.where(rows[:, None] & (grid > 0), self.color(), grid)

    def overlay(self, grid: Cells) -> Cells:
        """Draw a fixed pattern over or under the cells, or keep only what is in it."""
        pattern, color = self.flag(0.35, grid.shape), self.color()
        over = jnp.where(pattern, color, grid)
        under = jnp.where(pattern & (grid == 0), color, grid)
        return self.pick(over, under, jnp.where(pattern, grid, 0))

    def count_cells(self, grid: Cells) -> Cells:
        """Count the cells, those of one color, the colors, or the objects."""
        order = jnp.arange(grid.size, dtype=jnp.int32)
        objects = jnp.sum(_objects(grid).reshape(-1) == order + 1)
        counts = _counts(grid)
        of_color, colors = counts[self.number(1, 3)], jnp.sum(counts > 0)
        number = self.pick(counts.sum(), of_color, colors, objects, objects)
        return jnp.where(order.reshape(grid.shape) < number, self.number(1, 6), 0)

    # Neighborhoods, lines and objects.
    def local_table(self, grid: Cells) -> Cells:
        """Replace a cell by a table of itself and its number of colored neighbors."""
        own = (grid > 0).astype(jnp.int32)
        near = [jnp.sum(around(own, steps), axis=0) for steps in (4, 8)]
        number = jnp.minimum(self.pick(*near), 4)
        table = self.flag(0.35, (2, 5))
        color = jnp.where(self.flag(0.25), 0, self.color())
        return jnp.where(table[own, number], color, grid)

    def outline(self, grid: Cells) -> Cells:
        """Draw around the cells, in a fixed color or their own."""
        near = self.pick(around(grid).max(axis=0), around(grid, 8).max(axis=0))
        color = jnp.where(self.flag(0.6), self.color(), near)
        return jnp.where((grid == 0) & (near > 0), color, grid)

    def hollow(self, grid: Cells) -> Cells:
        """Clear or recolor the cells that have all neighbors, or those that do not."""
        full = (around(grid) > 0).all(axis=0) & (grid > 0)
        color = jnp.where(self.flag(), 0, self.color())
        return jnp.where(self.pick(full, full, (grid > 0) & ~full), color, grid)

    def remove_single(self, grid: Cells) -> Cells:
        """Remove, recolor or keep only the cells that touch none of their color."""
        alone = (_sizes(_objects(grid)) == 1) & (grid > 0)
        color = jnp.where(self.flag(), 0, self.color())
        return self.pick(jnp.where(alone, color, grid), jnp.where(alone, grid, 0))

    def fill_enclosed(self, grid: Cells) -> Cells:
        """Color the background that the edge of the grid cannot reach."""
        free = grid == 0
        start = (_edge(grid) & free).astype(jnp.int32)
        reached = _spread(start, jnp.broadcast_to(free, (4, *grid.shape)))
        return jnp.where(free & (reached == 0), self.color(), grid)

    def choose_object(self, grid: Cells) -> Cells:
        """Keep, remove or recolor the largest or the smallest object."""
        size = _sizes(_objects(grid))
        smallest = jnp.where(size > 0, size, grid.size).min()
        chosen = (size == self.pick(size.max(), smallest)) & (size > 0)
        recolored = jnp.where(chosen, self.color(), grid)
        kept, removed = jnp.where(chosen, grid, 0), jnp.where(chosen, 0, grid)
        return self.pick(kept, removed, recolored)

    def color_by_size(self, grid: Cells) -> Cells:
        """Color every object by its number of cells."""
        table, size = self.number(1, 10, (7,)), _sizes(_objects(grid))
        return jnp.where(size > 0, table[jnp.minimum(size, 6)], grid)

    def shoot(self, grid: Cells) -> Cells:
        """Extend cells, all or of one color, to the right until something is met."""
        ray, diagonal = self.some_cells(grid), self.flag(0.3)
        for _ in range(max(grid.shape) - 1):
            step = jnp.where(diagonal, _shift(ray, 1, 1), _shift(ray, 0, 1))
            ray = jnp.where(grid == 0, jnp.maximum(ray, step), ray)
        return jnp.where(grid > 0, grid, ray)

    def draw_lines(self, grid: Cells) -> Cells:
        """Draw a row, a cross or diagonals through cells, all or of one color."""
        start = self.some_cells(grid)
        row = jnp.broadcast_to(start.max(axis=1, keepdims=True), grid.shape)
        cross = jnp.maximum(row, start.max(axis=0, keepdims=True))
        down = up = start
        for _ in range(max(grid.shape) - 1):
            down = jnp.maximum(
                down, jnp.maximum(_shift(down, 1, 1), _shift(down, -1, -1))
            )
            up = jnp.maximum(up, jnp.maximum(_shift(up, 1, -1), _shift(up, -1, 1)))
        lines = self.pick(row, cross, down, jnp.maximum(down, up))
        return jnp.where(grid > 0, grid, lines)

    def connect(self, grid: Cells) -> Cells:
        """Fill between two cells of one color in a row, or in rows and columns."""

        def between(cells: Cells) -> Cells:
            found = jnp.zeros_like(cells)
            for color in range(1, DRAWN_COLORS + 1):
                here = (cells == color).astype(jnp.int32)
                left = jax.lax.cummax(here, axis=1)
                right = jax.lax.cummax(here, axis=1, reverse=True)
                found = jnp.where((left * right > 0) & (found == 0), color, found)
            return found

        rows, columns = between(grid), between(grid.T).T
        line = self.pick(rows, jnp.maximum(rows, columns))
        color = jnp.where(self.flag(), self.color(), line)
        return jnp.where((grid == 0) & (line > 0), color, grid)

    def fill_box(self, grid: Cells) -> Cells:
        """Color the background, or the edge, of the box around all cells."""
        rows, columns = (grid > 0).any(axis=1), (grid > 0).any(axis=0)
        hull = lambda x: (
            (jnp.cumsum(x) > 0)
            & (jnp.cumsum(x[::-1])[::-1] > 0)  # between first and last
        )
        box = hull(rows)[:, None] & hull(columns)[None]
        inside = around(box.astype(jnp.int32)).min(axis=0) == 1
        where = self.pick(box, box & ~inside)
        return jnp.where(where & (grid == 0), self.color(), grid)

    def frame(self, grid: Cells) -> Cells:
        """Draw the edge of the grid."""
        return jnp.where(_edge(grid), self.color(), grid)

    def stamp(self, grid: Cells) -> Cells:
        """Draw a fixed small pattern at every cell, all or of one color."""
        marked, drawn = self.some_cells(grid, 0.6), self.flag(0.45, (8,))
        ink = jnp.where(drawn[:, None, None], around(marked, 8), 0).max(axis=0)
        ink = jnp.where(self.flag() & (ink > 0), self.color(), ink)
        return jnp.where(grid > 0, grid, ink)

    def answer_yes_no(self, grid: Cells) -> Cells:
        """Color the whole grid, or its cells, by whether the grid has a property."""
        one, other = self.number(1, 9, (2,))
        color = jnp.where(Draws(self.key()).property_of(grid), one, other)
        return jnp.where(self.flag() | (grid > 0), color, 0)


OPERATIONS = tuple(rule for name, rule in vars(Rules).items() if name[0] != "_")
