"""Generate tasks: inputs of one kind, changed by one or two rules drawn at random."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt

from jaxarc import bits
from jaxarc.learning.solver import rules
from jaxarc.learning.solver.examples import PairBank
from jaxarc.learning.solver.rules import DRAWN_COLORS, OPERATIONS, Cells, Marks, Rules

SMALL = 5  # cells; smaller grids than these hardly show a rule
BLOCK = 4096  # tasks that are drawn by one call of the compiled generator


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
