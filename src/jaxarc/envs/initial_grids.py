"""Other grids to begin with: the input, moved or recolored, an empty or random one."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt

from jaxarc import bits
from jaxarc.bits import similarity
from jaxarc.config import GridInitializationConfig
from jaxarc.episode import Episode, load_pair, repack, slot_of
from jaxarc.ops.canvas import blank_canvas
from jaxarc.tasks.augment import random_augmentation, transform_planes
from jaxarc.types import JaxArcTask

MODES = ("demo", "permutation", "empty", "random")
# Of a dense pattern: the share that is scattered, and how likely its neighbors join.
SCATTERED, GROWTH = 0.7, 0.3

Grid = tuple[UInt[Array, "planes h"], Int[Array, " two"]]


def initialize(
    tasks: JaxArcTask,
    episode: Episode,
    key: PRNGKeyArray,
    config: GridInitializationConfig,
) -> Episode:
    """Return a fresh episode with a drawn grid inside its area.

    The similarity is that of the drawn grid; in test mode it stays hidden.
    """
    canvas = episode.canvas
    planes, size = draw_grid(key, canvas.planes, canvas.size, canvas.width, config)
    slot = slot_of(tasks, episode.episode_mode, episode.current_example_idx)
    pair = load_pair(tasks, episode.task_row, slot, episode.augmentation)
    alike = similarity(planes, size, pair.wanted, pair.wanted_size)
    return repack(
        episode,
        blank_canvas(planes, size, canvas.width),
        similarity_score=jnp.where(episode.episode_mode == 0, alike, 0.0),
    )


def draw_grid(
    key: PRNGKeyArray,
    planes: UInt[Array, "planes h"],
    size: Int[Array, " two"],
    width: int,
    config: GridInitializationConfig,
) -> Grid:
    """Return one of the four kinds of grid, by the configured weights."""
    choice_key, grid_key = jax.random.split(key)
    shares = np.cumsum(config.probabilities)[:-1].astype(np.float32)
    drawn = jax.random.uniform(choice_key)
    # Inverse of the distribution function: the last share is left out, so that a sum
    # that rounding leaves below 1 draws no fifth kind.
    mode = jnp.sum((drawn >= jnp.asarray(shares)).astype(jnp.int32))
    weights = dict(zip(MODES, config.probabilities, strict=True))
    result = planes, size
    # Kinds that are never drawn are left out of the compiled program.
    if weights["permutation"]:
        moved = permuted_grid(grid_key, planes, size, width, config.permutation_types)
        result = _where(mode == MODES.index("permutation"), moved, result)
    if weights["empty"]:
        empty = jnp.zeros_like(planes), size
        result = _where(mode == MODES.index("empty"), empty, result)
    if weights["random"]:
        dense = config.random_pattern_type == "dense"
        grid = random_grid(grid_key, planes, size, width, config.random_density, dense)
        result = _where(mode == MODES.index("random"), grid, result)
    return result


def permuted_grid(
    key: PRNGKeyArray,
    planes: UInt[Array, "planes h"],
    size: Int[Array, " two"],
    width: int,
    kinds: tuple[str, ...],
) -> Grid:
    """Turn, mirror or recolor the grid, whichever is drawn; black stays black.

    Turns that exchange height and width need a square padded shape; without one only
    half turns are drawn.
    """
    if not kinds:
        return planes, size
    kind_key, turn_key, color_key = jax.random.split(key, 3)
    kind = jax.random.randint(kind_key, (), 0, len(kinds), jnp.int32)
    turns = (1, 2, 3) if planes.shape[-1] == width else (2,)
    symmetries = {"rotate": turns, "reflect": (4, 6), "color_remap": (0,)}
    drawn = [
        jax.random.choice(turn_key, jnp.asarray(symmetries[name], jnp.int32))
        for name in kinds
    ]
    _, permutation = random_augmentation(color_key, symmetries=False)
    recolors = jnp.asarray([name == "color_remap" for name in kinds])[kind]
    unchanged = jnp.arange(permutation.shape[0], dtype=jnp.int32)
    permutation = jnp.where(recolors, permutation, unchanged)
    symmetry = jnp.stack(drawn)[kind]
    return transform_planes(planes, size, symmetry, permutation, width)


def random_grid(
    key: PRNGKeyArray,
    planes: UInt[Array, "planes h"],
    size: Int[Array, " two"],
    width: int,
    density: float,
    dense: bool,
) -> Grid:
    """Draw colors 1 to 9 on a share of the cells; the rest is black.

    A dense pattern scatters fewer of them and lets them grow to their neighbors.
    """
    shape = (planes.shape[-1], width)
    cell_key, color_key, growth_key = jax.random.split(key, 3)
    share = density * SCATTERED if dense else density
    filled = jax.random.bernoulli(cell_key, share, shape)
    if dense:
        grows = jax.random.bernoulli(growth_key, GROWTH, shape)
        filled = filled | (_beside(filled) & grows)
    colors = jax.random.randint(color_key, shape, 1, 10, jnp.int32)
    drawn = bits.pack_grid(jnp.where(filled, colors, 0))
    active = bits.active_rows(size, shape[0], planes.dtype)
    return drawn & active[None], size


def _beside(cells: Bool[Array, "h w"]) -> Bool[Array, "h w"]:
    """Return the cells that have a filled neighbor."""
    padded = jnp.pad(cells, 1)
    across = padded[1:-1, :-2] | padded[1:-1, 2:]
    return across | padded[:-2, 1:-1] | padded[2:, 1:-1]


def _where(chosen: Bool[Array, ""], one: Grid, other: Grid) -> Grid:
    return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), one, other)
