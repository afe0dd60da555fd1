"""Training examples and queries for the solver: pairs drawn, turned, recolored, hidden.

Only demonstrations and generated tasks, which are inputs of one kind changed by one or
two rules drawn at random, are put into a `PairBank`; the outputs of test pairs are not
copied here, and so training cannot see them.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt

from jaxarc import bits
from jaxarc.learning.solver import rules
from jaxarc.learning.solver.network import (
    ABSENT,
    HIDDEN,
    OUTSIDE,
    Example,
    NetworkConfig,
)
from jaxarc.learning.solver.rules import DRAWN_COLORS, OPERATIONS, Cells, Marks, Rules
from jaxarc.tasks.augment import (
    COLORS,
    SYMMETRIES,
    random_augmentation,
    transform_planes,
)
from jaxarc.types import JaxArcTask
from jaxrig.settings import Checked, Fraction

# A quarter turn is undone by the other one, a reflection by itself.
INVERSE_SYMMETRY = np.array([0, 3, 2, 1, 4, 5, 6, 7], np.int32)
UNKNOWN_SYMMETRY, UNKNOWN_COLOR = SYMMETRIES, COLORS
SMALL = 5  # cells; smaller grids than these hardly show a rule
BLOCK = 4096  # tasks that are drawn by one call of the compiled generator


class PairBank(eqx.Module):
    """The demonstrations of many tasks as bit planes, and how many each task has."""

    planes: UInt[Array, "tasks slots two planes h"]
    sizes: Int[Array, "tasks slots two two"]
    counts: Int[Array, " tasks"]
    width: int = eqx.field(static=True)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.counts.shape[0]

    @property
    def is_square(self) -> bool:
        """Whether grids may be transposed."""
        return self.planes.shape[-1] == self.width


class Queries(NamedTuple):
    """Inputs that ask for an output: the row of their task, planes and size."""

    rows: Int[Array, " queries"]
    planes: UInt[Array, "queries planes h"]
    sizes: Int[Array, "queries two"]


@dataclass(frozen=True)
class MixtureConfig(Checked):
    """What the examples of a batch are made of, as shares of one.

    `generated` of the examples come from generated tasks, the others from the
    demonstrations. Of these, `id_only` know the task by its learned id alone and
    `context_only` by other pairs alone; the rest know both. `composed` of those that
    know only other pairs have outputs turned and recolored by a map of their own,
    which makes them other tasks. `hide_more` of the examples hide several outputs.
    """

    generated: Fraction = 0.7
    id_only: Fraction = 0.25
    context_only: Fraction = 0.25
    composed: Fraction = 0.5
    hide_more: Fraction = 0.35

    def __post_init__(self):
        super().__post_init__()
        if self.id_only + self.context_only > 1:
            raise ValueError(
                f"id_only {self.id_only} and context_only {self.context_only} are "
                "more than 1 together: lower one of them"
            )


def demonstrations(buffer: JaxArcTask, pairs: int) -> PairBank:
    """Return the demonstrations of a stack of tasks, with room for `pairs` or more."""
    slots = buffer.max_train_pairs
    room = [(0, 0), (0, max(0, pairs - slots))]
    pad = lambda x: np.pad(np.asarray(x[:, :slots]), room + [(0, 0)] * (x.ndim - 2))
    return PairBank(
        jax.device_put(pad(buffer.pairs)),
        jax.device_put(pad(buffer.sizes)),
        buffer.num_train_pairs,
        buffer.width,
    )


def ask_tests(buffer: JaxArcTask) -> Queries:
    """Return the input of every test pair of a stack of tasks."""
    counts = np.asarray(buffer.num_test_pairs)
    rows = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    slots = buffer.max_train_pairs + np.concatenate([np.arange(n) for n in counts])
    at = (rows, slots, 0)
    found = (rows, np.asarray(buffer.pairs)[at], np.asarray(buffer.sizes)[at])
    return Queries(*jax.device_put(found))


def draw_batch(
    key: PRNGKeyArray,
    bank: PairBank,
    generated: PairBank | None,
    size: int,
    mixture: MixtureConfig,
    config: NetworkConfig,
) -> tuple[Example, Int[Array, "batch pairs h w"], Bool[Array, "batch pairs"]]:
    """Draw examples; return them, the outputs, and which of these are hidden."""
    keys = jax.random.split(key, size)
    other = 0 if generated is None else round(size * mixture.generated)
    known = lambda k: _draw(k, bank, mixture, config)
    parts = []
    if other < size:
        parts.append(jax.vmap(known)(keys[other:]))
    if generated is not None and other:
        always = MixtureConfig(0.0, 0.0, 1.0, 0.0, mixture.hide_more)
        drawn = lambda k: _draw(k, generated, always, config)
        parts.append(jax.vmap(drawn)(keys[:other]))
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def _draw(
    key: PRNGKeyArray, bank: PairBank, mixture: MixtureConfig, config: NetworkConfig
) -> tuple[Example, Int[Array, "pairs h w"], Bool[Array, " pairs"]]:
    """Draw one example of one task."""
    keys = jax.random.split(key, 9)
    row = jax.random.randint(keys[0], (), 0, bank.tasks, jnp.int32)
    planes, sizes, there, symmetry, colors = _draw_pairs(
        keys[1], keys[2], bank, row, config.pairs
    )
    kind = jax.random.uniform(keys[3])
    id_only = kind < mixture.id_only
    context_only = kind > 1 - mixture.context_only
    outputs, output_sizes = planes[:, 1], sizes[:, 1]
    if mixture.composed:
        composed = context_only & jax.random.bernoulli(keys[4], mixture.composed)
        turned, recolored = random_augmentation(keys[5], transposing=bank.is_square)
        plain = jax.random.bernoulli(keys[6], 0.5)
        recolored = jnp.where(plain, jnp.arange(COLORS, dtype=jnp.int32), recolored)
        other = jax.vmap(transform_planes, (0, 0, None, None, None))(
            outputs, output_sizes, turned, recolored, bank.width
        )
        outputs, output_sizes = jax.tree.map(
            lambda new, old: jnp.where(composed, new, old),
            other,
            (outputs, output_sizes),
        )
    answers = _cells(outputs, output_sizes, bank)
    more = jax.random.bernoulli(keys[7], mixture.hide_more)
    drawn = jax.random.randint(keys[8], (), 1, config.pairs + 1, jnp.int32)
    number = jnp.where(more, drawn, 1)
    number = jnp.where(context_only, jnp.minimum(number, jnp.sum(there) - 1), number)
    number = jnp.where(id_only, config.pairs, number)
    hidden = jnp.arange(config.pairs, dtype=jnp.int32) < number
    cells = lambda x: jnp.where(there[:, None, None], x, ABSENT)
    example = Example(
        cells(_cells(planes[:, 0], sizes[:, 0], bank)),
        cells(jnp.where(hidden[:, None, None], HIDDEN, answers)),
        jnp.where(context_only, config.tasks, row),
        jnp.where(context_only, UNKNOWN_SYMMETRY, symmetry),
        jnp.where(context_only, UNKNOWN_COLOR, colors),
    )
    return example, answers, hidden & there


def draw_query(
    key: PRNGKeyArray, bank: PairBank, query: Queries, config: NetworkConfig
) -> tuple[Example, Int[Array, ""], Int[Array, "10"]]:
    """Return one query and demonstrations under a random augmentation, and this."""
    keys = jax.random.split(key)
    planes, sizes, there, symmetry, colors = _draw_pairs(
        keys[0], keys[1], bank, query.rows, config.pairs - 1
    )
    asked, size = transform_planes(
        query.planes, query.sizes, symmetry, colors, bank.width
    )
    first = _cells(asked[None], size[None], bank)
    shown = lambda side: jnp.where(
        there[:, None, None], _cells(planes[:, side], sizes[:, side], bank), ABSENT
    )
    unknown = Example(
        jnp.concatenate([first, shown(0)]),
        jnp.concatenate([jnp.full_like(first, HIDDEN), shown(1)]),
        jnp.asarray(config.tasks, jnp.int32),
        jnp.asarray(UNKNOWN_SYMMETRY, jnp.int32),
        jnp.full_like(colors, UNKNOWN_COLOR),
    )
    return unknown, symmetry, colors


def undo_augmentation(
    cells: Int[Array, "h w"], symmetry: Int[Array, ""], colors: Int[Array, "10"]
) -> Int[Array, "h w"]:
    """Return a predicted grid as it was asked for, with -1 outside of it.

    The grid is the rows and columns in which some cell is not predicted outside.
    """
    height, width = cells.shape
    inside = cells != OUTSIDE
    size = jnp.stack([jnp.sum(inside.any(axis=1)), jnp.sum(inside.any(axis=0))])
    size = size.astype(jnp.int32)
    planes = bits.pack_grid(jnp.where(inside, cells, 0).astype(jnp.int32))
    back = jnp.argsort(colors).astype(jnp.int32)
    planes, size = transform_planes(
        planes, size, jnp.asarray(INVERSE_SYMMETRY)[symmetry], back, width
    )
    active = bits.active_rows(size, height, planes.dtype)
    return bits.unpack_grid(planes, active, width)


def _draw_pairs(
    key: PRNGKeyArray,
    way_key: PRNGKeyArray,
    bank: PairBank,
    row: Int[Array, ""],
    number: int,
) -> tuple[Array, Array, Bool[Array, " number"], Int[Array, ""], Int[Array, "10"]]:
    """Draw different pairs of a task in random order, under one random augmentation.

    Returns planes, sizes, which of them the task has, the symmetry and the colors.
    """
    slots, count = jnp.arange(bank.planes.shape[1], dtype=jnp.int32), bank.counts[row]
    order = jnp.where(slots < count, jax.random.uniform(key, slots.shape), 2.0)
    chosen = jnp.argsort(order)[:number]
    symmetry, colors = random_augmentation(way_key, transposing=bank.is_square)
    grid = lambda p, s: transform_planes(p, s, symmetry, colors, bank.width)
    planes, sizes = jax.vmap(jax.vmap(grid))(
        bank.planes[row, chosen], bank.sizes[row, chosen]
    )
    return planes, sizes, slots[:number] < count, symmetry, colors


def _cells(
    planes: UInt[Array, "pairs planes h"],
    sizes: Int[Array, "pairs two"],
    bank: PairBank,
) -> Int[Array, "pairs h w"]:
    """Return colors, `OUTSIDE` beyond each grid."""
    active = bits.active_rows(sizes, planes.shape[-1], planes.dtype)
    grid = bits.unpack_grid(planes, active, bank.width)
    return jnp.where(grid < 0, OUTSIDE, grid).astype(jnp.int32)


def _inputs(
    rule: PRNGKeyArray, key: PRNGKeyArray, height: int, width: int
) -> Int[Array, "h w"]:
    """Draw a grid; the rule's key decides its kind, the other key its content."""
    keys, ways = jax.random.split(key, 8), jax.random.split(rule, 5)
    shape = (height, width)
    # Each of two draws has its chance of a color, so that kinds range from one color
    # in single cells to all colors everywhere.
    used = jax.random.randint(ways[0], (), 1, DRAWN_COLORS + 1, jnp.int32)
    color = lambda k, s: 1 + jax.random.randint(k, s, 0, DRAWN_COLORS, jnp.int32) % used
    density = jax.random.uniform(ways[1], (), minval=0.05, maxval=0.7)
    noise = jax.random.bernoulli(keys[0], density, shape)
    scattered = jnp.where(noise, color(keys[1], shape), 0)
    full = color(keys[1], shape) - (used > 1).astype(jnp.int32)
    pixels = jnp.zeros(shape, jnp.int32)
    boxes, frames = pixels, pixels
    row, column = jnp.arange(height)[:, None], jnp.arange(width)[None]
    number = jax.random.randint(ways[2], (), 1, 4, jnp.int32)
    for nth in range(3):
        k = jax.random.split(jax.random.fold_in(keys[2], nth), 5)
        top = jax.random.randint(k[0], (), 0, height)
        left = jax.random.randint(k[1], (), 0, width)
        bottom = top + jax.random.randint(k[2], (), 0, 4)
        right = left + jax.random.randint(k[3], (), 0, 4)
        ink = jnp.where(nth < number, color(k[4], ()), 0)
        pixels = jnp.where((row == top) & (column == left), ink, pixels)
        inside = (row >= top) & (row <= bottom) & (column >= left) & (column <= right)
        edge = (row == top) | (row == bottom) | (column == left) | (column == right)
        boxes = jnp.where(inside & (ink > 0), ink, boxes)
        frames = jnp.where(inside & edge & (ink > 0), ink, frames)
    blob = _blob(keys[3], noise) * color(keys[4], ())
    split = jnp.where(column == width // 2, 5 * (width % 2), scattered)
    half = jnp.where(column < (width + 1) // 2, scattered, 0)
    side = jax.random.randint(keys[5], (), 1, 4)
    pattern = full[row % side, column % side]
    lines = jnp.where(noise[:, :1], jnp.broadcast_to(full[:, :1], shape), 0)
    # Some kinds are listed twice: they are twice as likely.
    kinds = [scattered, scattered, pixels, pixels, boxes, boxes, frames, blob, blob]
    kinds += [full, split, half, pattern, lines]
    kind = jax.random.randint(ways[3], (), 0, len(kinds), jnp.int32)
    return jnp.stack(kinds)[kind]


def _blob(key: PRNGKeyArray, noise: Marks) -> Cells:
    """Grow one connected object from a random cell."""
    size = noise.size
    start = jax.nn.one_hot(jax.random.randint(key, (), 0, size), size, dtype=jnp.int32)
    cells = start.reshape(noise.shape)
    for nth in range(3):
        grown = jnp.maximum(cells, rules.around(cells).max(axis=0))
        may = jax.random.bernoulli(jax.random.fold_in(key, nth), 0.5, noise.shape)
        cells = jnp.where(may, grown, cells)
    return cells


def _apply(rule: PRNGKeyArray, grid: Cells) -> Cells:
    """Apply one operation in one direction, both drawn by the key."""
    keys = jax.random.split(rule, 3)
    which = jax.random.randint(keys[0], (), 0, len(OPERATIONS), jnp.int32)
    symmetry = jax.random.randint(keys[1], (), 0, 8, jnp.int32)
    turned = rules.turn(symmetry, grid)
    ways = [lambda key, cells, op=op: op(Rules(key), cells) for op in OPERATIONS]
    return rules.unturn(symmetry, jax.lax.switch(which, ways, keys[2], turned))


def _pair(
    rule: PRNGKeyArray, key: PRNGKeyArray, height: int, width: int
) -> tuple[Cells, Cells]:
    """Draw one pair of the task that the rule's key is."""
    keys, way = jax.random.split(rule, 6), jax.random.split(key)
    given = _inputs(keys[0], way[0], height, width)
    kind = jax.random.uniform(keys[3])
    either = kind < 0.12  # which of two operations depends on the input

    # A scan, so that the operations are compiled once.
    def step(grid: Cells, k: PRNGKeyArray) -> tuple[Cells, Cells]:
        changed = _apply(k, grid)
        return jnp.where(either, given, changed), changed

    _, (one, two) = jax.lax.scan(step, given, keys[1:3])
    result = jnp.where(
        either & Rules(keys[5]).property_of(given) | (kind > 0.35), one, two
    )
    # Some tasks ask what was there: the result, damaged, is given.
    kinds = jax.random.split(keys[4])
    damaged = jnp.where(
        jax.random.bernoulli(way[1], 0.25, given.shape),
        jnp.where(jax.random.bernoulli(kinds[0], 0.7), 0, 9),
        result,
    )
    return jnp.where(jax.random.bernoulli(kinds[1], 0.12), damaged, given), result


def _draw_task(
    key: PRNGKeyArray, pairs: int, height: int, width: int
) -> tuple[Array, Array, Bool[Array, ""]]:
    """Draw the pairs of one task as planes, and say whether it asks for something."""
    rule, content = jax.random.split(key)
    draw = lambda k: _pair(rule, k, height, width)
    given, result = jax.vmap(draw)(jax.random.split(content, pairs))
    changed = (given != result).any(axis=(1, 2))
    varied = (result != result[:1]).any() & (given != given[:1]).any(axis=(1, 2))[1:]
    some = given.any(axis=(1, 2)).all()
    useful = some & (jnp.mean(changed) >= 0.5) & varied.all()
    return bits.pack_grid(given), bits.pack_grid(result), useful


def generate_tasks(
    key: PRNGKeyArray, number: int, pairs: int, height: int, width: int
) -> PairBank:
    """Draw tasks in which most inputs change and not all outputs are the same.

    With room for more than 5 x 5 cells, their grids have several shapes; larger ones
    are more frequent, by the square root of their area.
    """
    shapes = _shapes(height, width)
    weights = np.sqrt([h * w for h, w in shapes])
    ends = np.rint(number * np.cumsum(weights) / weights.sum()).astype(int)
    # Each shape is a program of its own; threads compile them at the same time.
    with ThreadPoolExecutor() as pool:
        drawn = pool.map(
            lambda nth, count, shape: _draw_tasks(
                jax.random.fold_in(key, nth), count, pairs, *shape
            ),
            range(len(shapes)),
            np.diff(ends, prepend=0).tolist(),
            shapes,
        )
        planes = [
            np.pad(found, [(0, 0)] * 4 + [(0, height - found.shape[-1])])
            for found in drawn
        ]
    sizes = np.repeat(np.array(shapes, np.int32), [len(found) for found in planes], 0)
    sizes = np.broadcast_to(sizes[:, None, None], (number, pairs, 2, 2))
    packed = np.concatenate(planes).astype(bits.word_type(height, width))
    counts = np.full(number, pairs, np.int32)
    placed = jax.device_put((packed, sizes, counts))
    return PairBank(placed[0], placed[1], placed[2], width)


def _shapes(height: int, width: int) -> list[tuple[int, int]]:
    """Return the shapes of grids to draw: few, because each is compiled."""
    if max(height, width) <= SMALL:
        return [(height, width)]
    part = lambda side, share: max(3, round(share * side))
    scaled = [(part(height, f), part(width, f)) for f in (0.25, 0.4, 0.6, 0.8, 1.0)]
    return [*dict.fromkeys([*scaled, (part(height, 0.5), width)])]


def _draw_tasks(
    key: PRNGKeyArray, number: int, pairs: int, height: int, width: int
) -> UInt[np.ndarray, "number pairs two planes h"]:
    draw = jax.jit(jax.vmap(lambda k: _draw_task(k, pairs, height, width)))
    useful_tasks: list[np.ndarray] = []
    block = 0
    while sum(map(len, useful_tasks)) < number:
        keys = jax.random.split(jax.random.fold_in(key, block), BLOCK)
        given, result, useful = map(np.asarray, draw(keys))
        useful_tasks.append(np.stack([given, result], axis=2)[useful])
        block += 1
    return np.concatenate(useful_tasks)[:number]
