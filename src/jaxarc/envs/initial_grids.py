"""Other grids to begin with: the input, moved or recolored, an empty or random one."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from jaxarc import bits
from jaxarc.bits import PackedGrid, similarity
from jaxarc.config import GridInitializationConfig
from jaxarc.episode import Episode, current_pair, repack
from jaxarc.ops.canvas import blank_canvas
from jaxarc.tasks.augment import random_augmentation, transform_planes
from jaxarc.types import JaxArcTask

MODES = ("demo", "permutation", "empty", "random")
# Of a dense pattern: the share that is scattered, and how likely its neighbors join.
SCATTERED, GROWTH = 0.7, 0.3


def initialize(
    tasks: JaxArcTask,
    episode: Episode,
    key: PRNGKeyArray,
    config: GridInitializationConfig,
) -> Episode:
    """Return a fresh episode with a drawn grid inside its area.

    The similarity is that of the drawn grid; in test mode it stays hidden.
    """
    pair = current_pair(tasks, episode)
    grid = draw_grid(key, pair.given, config)
    seen = jnp.where(episode.episode_mode == 0, similarity(grid, pair.wanted), 0.0)
    return repack(episode, blank_canvas(grid), similarity_score=seen)


def draw_grid(
    key: PRNGKeyArray, given: PackedGrid, config: GridInitializationConfig
) -> PackedGrid:
    """Return one of the four kinds of grid, by the configured weights."""
    choice_key, grid_key = jax.random.split(key)
    shares = np.cumsum(config.probabilities)[:-1].astype(np.float32)
    drawn = jax.random.uniform(choice_key)
    # Inverse of the distribution function: the last share is left out, so that a sum
    # that rounding leaves below 1 draws no fifth kind.
    mode = jnp.sum((drawn >= jnp.asarray(shares)).astype(jnp.int32))
    makers = {
        "permutation": partial(permuted_grid, kinds=config.permutation_types),
        "empty": lambda key, given: replace(given, planes=jnp.zeros_like(given.planes)),
        "random": partial(
            random_grid,
            density=config.random_density,
            dense=config.random_pattern_type == "dense",
        ),
    }
    result = given
    for number, (name, weight) in enumerate(
        zip(MODES, config.probabilities, strict=True)
    ):
        # Kinds that are never drawn are left out of the compiled program.
        if weight and name in makers:
            made, chosen = makers[name](grid_key, given), mode == number
            choose = lambda new, old, chosen=chosen: jnp.where(chosen, new, old)
            result = jax.tree.map(choose, made, result)
    return result


def permuted_grid(
    key: PRNGKeyArray, given: PackedGrid, kinds: tuple[str, ...]
) -> PackedGrid:
    """Turn, mirror or recolor the grid, whichever is drawn; black stays black.

    Turns that exchange height and width need a square padded shape; without one only
    half turns are drawn.
    """
    if not kinds:
        return given
    kind_key, turn_key, color_key = jax.random.split(key, 3)
    kind = jax.random.randint(kind_key, (), 0, len(kinds), jnp.int32)
    turns = (1, 2, 3) if given.planes.shape[-1] == given.width else (2,)
    symmetries = {"rotate": turns, "reflect": (4, 6), "color_remap": (0,)}
    drawn = [
        jax.random.choice(turn_key, jnp.asarray(symmetries[name], jnp.int32))
        for name in kinds
    ]
    _, permutation = random_augmentation(color_key, symmetries=False)
    recolors = jnp.asarray([name == "color_remap" for name in kinds])[kind]
    unchanged = jnp.arange(permutation.shape[0], dtype=jnp.int32)
    permutation = jnp.where(recolors, permutation, unchanged)
    change = jnp.stack(drawn)[kind], permutation, given.width
    return PackedGrid(*transform_planes(given.planes, given.size, *change), given.width)


def random_grid(
    key: PRNGKeyArray, given: PackedGrid, density: float, dense: bool
) -> PackedGrid:
    """Draw colors 1 to 9 on a share of the cells; the rest is black.

    A dense pattern scatters fewer of them and lets them grow to their neighbors.
    """
    shape = (given.planes.shape[-1], given.width)
    cell_key, color_key, growth_key = jax.random.split(key, 3)
    share = density * SCATTERED if dense else density
    filled = jax.random.bernoulli(cell_key, share, shape)
    if dense:
        grows = jax.random.bernoulli(growth_key, GROWTH, shape)
        filled = filled | (_beside(filled) & grows)
    colors = jax.random.randint(color_key, shape, 1, 10, jnp.int32)
    drawn = bits.pack_grid(jnp.where(filled, colors, 0))
    return replace(given, planes=drawn & given.active()[None])


def _beside(cells: Bool[Array, "h w"]) -> Bool[Array, "h w"]:
    """Return the cells that have a filled neighbor."""
    padded = jnp.pad(cells, 1)
    across = padded[1:-1, :-2] | padded[1:-1, 2:]
    return across | padded[:-2, 1:-1] | padded[2:, 1:-1]
