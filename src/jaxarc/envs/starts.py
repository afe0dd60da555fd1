"""The parameters of an environment, and how its episodes start.

A reset turns its key into one 32-bit seed, and everything else is hashed from that:
splitting a key for every environment at every step would cost more than a step at 5x5,
and only the few environments whose episode ended need anything new. An episode begins
with the input of its pair, or by `GridInitializationConfig` with another grid: the
input moved or recolored, an empty or a random one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from jaxarc import bits
from jaxarc.bits import Flag, Index, PackedGrid, similarity
from jaxarc.config import GridInitializationConfig, JaxArcConfig
from jaxarc.envs.checks import (
    check_pairs,
    checked_config,
    checked_mode,
    find_rows,
    task_ids,
)
from jaxarc.envs.transition import begin
from jaxarc.episode import (
    Augmentation,
    Episode,
    current_pair,
    is_stack,
    pair_counts,
    repack,
)
from jaxarc.ops.canvas import blank_canvas
from jaxarc.tasks.augment import random_augmentation, transform_planes
from jaxarc.types import JaxArcTask
from jaxrig.keys import mix

Seed: TypeAlias = UInt[Array, ""]

# On a CPU this share of a batch is reset in a round, but not fewer rows than eight.
BLOCKS, SMALLEST_BLOCK = 16, 8

MODES = ("demo", "permutation", "empty", "random")
# Of a dense pattern: the share that is scattered, and how likely its neighbors join.
SCATTERED, GROWTH = 0.7, 0.3


class EnvParams(eqx.Module):
    """Tasks (arrays, held once) and rules (static).

    `subset_indices` are the rows of the buffer that episodes draw from; None: all.
    `augment` shows every episode's task in one of eight symmetries with its colors
    renamed (black stays black).
    """

    buffer: JaxArcTask
    subset_indices: Int[Array, " rows"] | None
    config: JaxArcConfig = eqx.field(static=True)
    episode_mode: int = eqx.field(static=True)
    augment: bool = eqx.field(static=True)

    @classmethod
    def from_config(
        cls,
        config: Any,
        buffer: Any,
        episode_mode: Any = None,
        subset_indices: Any = None,
        augment: bool = False,
    ) -> "EnvParams":
        """Return checked parameters; `environment.strict_validation` off only logs."""
        config = checked_config(config)
        if not isinstance(buffer, JaxArcTask):
            raise TypeError(
                f"the buffer is a {type(buffer).__name__}: pass tasks, for instance "
                "parser.buffer() or stack_task_list([...])"
            )
        if not is_stack(buffer):
            raise ValueError(
                "the buffer is a single task: stack it with stack_task_list([task])"
            )
        mode = checked_mode(episode_mode, config)
        rows = _checked_rows(subset_indices, buffer.pairs.shape[0])
        check_pairs(buffer, mode, rows)
        distinct = rows is None or len(np.unique(rows)) == len(rows)
        if rows is not None and not (distinct or config.dataset.shuffle_tasks):
            raise ValueError(
                f"subset_indices is {rows.tolist()}: list every row once, or set "
                "dataset.shuffle_tasks: repeated rows cannot be visited in order"
            )
        return cls(buffer, rows, config, mode, augment)

    @property
    def choices(self) -> int:
        """The number of tasks that episodes draw from."""
        if self.subset_indices is None:
            return self.buffer.pairs.shape[0] if is_stack(self.buffer) else 1
        return self.subset_indices.shape[0]

    @property
    def task_ids(self) -> tuple[str | None, ...]:
        """The id of every row of the buffer (host only)."""
        return task_ids(self.buffer)

    def rows_of(self, ids: Sequence[str]) -> Int[np.ndarray, " ids"]:
        """Return the rows of tasks by their ids (host only)."""
        return find_rows(self.buffer, [ids] if isinstance(ids, str) else list(ids))

    def row(self, choice: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
        """Return the row of the buffer behind a choice."""
        if self.subset_indices is None:
            return choice
        return self.subset_indices[choice]


def _checked_rows(indices: Any, count: int) -> Int[Array, " rows"] | None:
    if indices is None:
        return None
    rows = np.asarray(indices)
    whole = np.issubdtype(rows.dtype, np.integer)
    if rows.ndim != 1 or rows.size == 0 or not whole:
        raise ValueError(
            f"subset_indices is {indices!r}: give a list of rows of the buffer"
        )
    if rows.min() < 0 or rows.max() >= count:
        raise ValueError(
            f"subset_indices goes from {rows.min()} to {rows.max()}: the buffer has "
            f"rows 0 to {count - 1}"
        )
    return jnp.asarray(rows, jnp.int32)


def scaled(number: Seed, count: Index | int) -> Index:
    """Map 32 random bits to one of `count` choices: floor(number * count / 2^32)."""
    # Lemire, Fast Random Integer Generation in an Interval (2019), without rejection:
    # the bias is below count / 2^32.
    half, low = jnp.uint32(16), jnp.uint32(0xFFFF)
    count = jnp.asarray(count).astype(jnp.uint32)
    # The product has 64 bits, and JAX has 32 unless x64 is on: work in 16-bit halves.
    middle = (number >> half) * (count & low) + ((number & low) * (count & low) >> half)
    carried = (number & low) * (count >> half) + (middle & low)
    high = (number >> half) * (count >> half) + (middle >> half) + (carried >> half)
    return high.astype(jnp.int32)


def draw_seed(key: PRNGKeyArray | UInt[Array, " two"]) -> Seed:
    """Return the seed that a key starts an episode with."""
    return jax.random.bits(key, (), jnp.uint32)


def draw_augmentation(params: EnvParams, seed: Seed) -> Augmentation | None:
    """Draw how an episode shows its task, if tasks are augmented."""
    if not params.augment:
        return None
    square = params.buffer.height == params.buffer.width
    return Augmentation(*random_augmentation(_key(seed), transposing=square))


def choose_row(params: EnvParams, seed: Seed, last_row: Index | None = None) -> Index:
    """Return the row of the buffer that an episode is about.

    With `dataset.shuffle_tasks` off, an episode that follows another one takes the next
    row, after the last the first; where the last row is in no subset, the first too.
    """
    if last_row is None or params.config.dataset.shuffle_tasks:
        return params.row(scaled(seed, params.choices))
    if params.subset_indices is None:
        return (last_row + 1) % params.choices
    here = params.subset_indices == last_row
    following = (jnp.argmax(here) + 1) % params.choices
    return params.row(jnp.where(jnp.any(here), following, 0))


def choose_pair(params: EnvParams, seed: Seed, row: Index) -> Index:
    """Return the pair that an episode begins with, by the configured strategy."""
    rules = params.config.episode
    strategy = (
        rules.test_selection_strategy
        if params.episode_mode
        else rules.demo_selection_strategy
    )
    if strategy != "random":
        return jnp.zeros((), jnp.int32)
    count = pair_counts(params.buffer, row)[params.episode_mode]
    # Another constant for every use of the seed, so that row and pair are independent.
    return scaled(mix(seed ^ jnp.uint32(0x5BD1E995)), count)


def start_episode(
    params: EnvParams,
    seed: Seed,
    last_row: Index | None = None,
    row: Index | None = None,
    pair: Index | None = None,
    augmentation: Augmentation | None = None,
) -> Episode:
    """Return a fresh episode: what is not given is drawn from the seed.

    Rows and pairs that do not exist are replaced by the first.
    """
    tasks, config = params.buffer, params.config
    if row is None:
        row = choose_row(params, seed, last_row)
    else:
        count = tasks.pairs.shape[0] if is_stack(tasks) else 1
        row = jnp.where((row >= 0) & (row < count), row, 0)
    if pair is None:
        pair = choose_pair(params, seed, row)
    else:
        count = pair_counts(tasks, row)[params.episode_mode]
        pair = jnp.where((pair >= 0) & (pair < count), pair, 0)
    if augmentation is None:
        augmentation = draw_augmentation(params, seed)
    mode = jnp.asarray(params.episode_mode, jnp.int32)
    episode = begin(tasks, row, mode, pair, config, augmentation)
    if config.grid_initialization is None:
        return episode
    key = _key(seed ^ jnp.uint32(0x27D4EB2F))
    return initialize(tasks, episode, key, config.grid_initialization)


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


@jax.custom_batching.custom_vmap
def auto_reset(
    params: EnvParams,
    episode: Episode,
    seed: UInt[Array, "*batch"],
    done: Bool[Array, "*batch"],
) -> Episode:
    """Return the episode, or where it is done a fresh one; any axes may lead.

    Records of the past are left where they are, since the length says how many count.
    """
    # A custom rule for vmap: mapped plainly, every row would compute a start that it
    # does not need, and XLA would repeat the step for every cell it chooses, 1.4 times
    # the cost of a step without resets at 5x5.
    axes = done.ndim
    if axes == 0:
        return _reset_by_choice(params, episode, seed, done)
    join = lambda x: x.reshape(done.size, *x.shape[axes:])
    part = lambda x: x.reshape(*done.shape, *x.shape[1:])
    rows = jax.tree.map(join, (episode, seed, done))
    after = jax.lax.platform_dependent(
        params, *rows, cpu=_reset_by_rounds, default=_reset_all
    )
    return jax.tree.map(part, after)


@auto_reset.def_vmap
def _auto_reset_rule(
    axis_size: int, in_batched: Any, params: Any, episode: Any, seed: Any, done: Any
) -> tuple[Any, Any]:
    """Add a leading axis for every `vmap`, so that it stays one program."""
    args = (params, episode, seed, done)
    if any(jax.tree.leaves(in_batched[0])):
        choose = _reset_by_choice
        for _ in range(done.ndim - in_batched[3]):
            choose = jax.vmap(choose, in_axes=(None, 0, 0, 0))
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, in_batched)
        after = jax.vmap(choose, axes, axis_size=axis_size)(*args)
    else:
        spread = lambda x, mapped: (
            x if mapped else jnp.broadcast_to(x[None], (axis_size, *x.shape))
        )
        after = auto_reset(
            params, *jax.tree.map(spread, args[1:], tuple(in_batched[1:]))
        )
    return after, jax.tree.map(lambda _: True, after)


def _reset_by_choice(
    params: EnvParams, episode: Episode, seed: Seed, done: Flag
) -> Episode:
    """Compute a start in any case, and take it where the episode is done."""
    fresh = start_episode(params, seed, episode.task_row)
    merged = jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, episode)
    return _with_history(merged, episode.action_history)


_reset_all = jax.vmap(_reset_by_choice, in_axes=(None, 0, 0, 0))


def _reset_by_rounds(
    params: EnvParams,
    episodes: Episode,
    seeds: UInt[Array, " rows"],
    done: Bool[Array, " rows"],
) -> Episode:
    """Compute starts only for the rows that are done, a block of them in each round.

    Few episodes end at a step, so there is mostly one round; nothing is lost where all
    end at once. The loop also keeps XLA from recomputing the step before it for every
    cell that it chooses.
    """
    count = done.shape[0]
    block = min(count, max(SMALLEST_BLOCK, count // BLOCKS))
    start = jax.vmap(lambda seed, last_row: start_episode(params, seed, last_row))

    def round_of(carry: tuple[Episode, Array]) -> tuple[Episode, Array]:
        episodes, left = carry
        (rows,) = jnp.nonzero(left, size=block, fill_value=count)
        take = lambda x: x.at[rows].get(mode="clip")
        put = lambda x, new: x.at[rows].set(new, mode="drop")
        fresh = _with_history(
            start(take(seeds), take(episodes.task_row)), take(episodes.action_history)
        )
        return jax.tree.map(put, episodes, fresh), put(left, False)

    # Without its records an episode is small, and they need not go round.
    bare = _with_history(episodes, episodes.action_history[:, :0])
    after, _ = jax.lax.while_loop(
        lambda carry: jnp.any(carry[1]), round_of, (bare, done)
    )
    return _with_history(after, episodes.action_history)


def _with_history(episode: Episode, records: Float[Array, "..."]) -> Episode:
    return eqx.tree_at(lambda e: e.action_history, episode, records)


def _key(seed: Seed) -> PRNGKeyArray:
    words = jnp.stack([seed, mix(seed)])
    return jax.random.wrap_key_data(words, impl="threefry2x32")
