"""Starts of episodes: from a key at a reset, from a hash when one follows another.

Splitting a key for every environment at every step would cost more than a step at 5x5,
and only the few environments whose episode ended need anything new.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from jaxarc.data.augment import random_augmentation
from jaxarc.envs.episode import begin
from jaxarc.envs.initialize import initialize
from jaxarc.envs.params import EnvParams
from jaxarc.episode import Episode
from jaxarc.pairs import Augmentation, pair_counts
from jaxrig.keys import mix

# On a CPU this share of a batch is renewed in a round, but not fewer rows than eight.
BLOCKS, SMALLEST_BLOCK = 16, 8


def scaled(number: UInt[Array, ""], count: Int[Array, ""] | int) -> Int[Array, ""]:
    """A number of 32 bits as one of `count` choices: floor(number * count / 2^32)."""
    half, low = jnp.uint32(16), jnp.uint32(0xFFFF)
    count = jnp.asarray(count).astype(jnp.uint32)
    # The product has 64 bits, which are worked out in halves of 16.
    middle = (number >> half) * (count & low) + ((number & low) * (count & low) >> half)
    carried = (number & low) * (count >> half) + (middle & low)
    high = (number >> half) * (count >> half) + (middle >> half) + (carried >> half)
    return high.astype(jnp.int32)


def draw_augmentation(params: EnvParams, seed: UInt[Array, ""]) -> Augmentation | None:
    """How an episode shows its task, if tasks are augmented."""
    if not params.augment:
        return None
    square = params.buffer.height == params.buffer.width
    return Augmentation(*random_augmentation(_key(seed), transposing=square))


def choose_row(
    params: EnvParams, seed: UInt[Array, ""], last_row: Int[Array, ""] | None = None
) -> Int[Array, ""]:
    """The row of the buffer that an episode is about.

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


def choose_pair(
    params: EnvParams, seed: UInt[Array, ""], row: Int[Array, ""]
) -> Int[Array, ""]:
    """The pair of a task that an episode begins with, by the configured strategy."""
    rules = params.config.episode
    strategy = (
        rules.test_selection_strategy
        if params.episode_mode
        else rules.demo_selection_strategy
    )
    if strategy != "random":
        return jnp.zeros((), jnp.int32)
    count = pair_counts(params.buffer, row)[params.episode_mode]
    return scaled(mix(seed ^ jnp.uint32(0x5BD1E995)), count)


def start_episode(
    params: EnvParams,
    seed: UInt[Array, ""],
    last_row: Int[Array, ""] | None = None,
    row: Int[Array, ""] | None = None,
    pair: Int[Array, ""] | None = None,
    shown: Augmentation | None = None,
) -> Episode:
    """A fresh episode; what is not given is drawn, what does not exist is the first."""
    tasks, config = params.buffer, params.config
    if row is None:
        row = choose_row(params, seed, last_row)
    else:
        row = jnp.where((row >= 0) & (row < tasks.pairs.shape[0]), row, 0)
    if pair is None:
        pair = choose_pair(params, seed, row)
    else:
        count = pair_counts(tasks, row)[params.episode_mode]
        pair = jnp.where((pair >= 0) & (pair < count), pair, 0)
    if shown is None:
        shown = draw_augmentation(params, seed)
    mode = jnp.asarray(params.episode_mode, jnp.int32)
    episode = begin(tasks, row, mode, pair, config, shown)
    if config.grid_initialization is None:
        return episode
    key = _key(seed ^ jnp.uint32(0x27D4EB2F))
    return initialize(tasks, episode, key, config.grid_initialization)


@jax.custom_batching.custom_vmap
def renew(
    params: EnvParams,
    episode: Episode,
    seed: UInt[Array, "*batch"],
    done: Bool[Array, "*batch"],
) -> Episode:
    """The episode, or where it is done another one; any axes may lead.

    Records of the past are left where they are, since the length says how many count.
    """
    axes = done.ndim
    if axes == 0:
        return _renew_by_choice(params, episode, seed, done)
    join = lambda x: x.reshape(done.size, *x.shape[axes:])
    part = lambda x: x.reshape(*done.shape, *x.shape[1:])
    rows = jax.tree.map(join, (episode, seed, done))
    renewed = jax.lax.platform_dependent(
        params, *rows, cpu=_renew_by_rounds, default=_renew_all
    )
    return jax.tree.map(part, renewed)


@renew.def_vmap
def _renew_rule(axis_size, in_batched, params, episode, seed, done):
    """Mapped once more, it has one more leading axis, and is still one program."""
    args = (params, episode, seed, done)
    if any(jax.tree.leaves(in_batched[0])):
        choose = _renew_by_choice
        for _ in range(done.ndim - in_batched[3]):
            choose = jax.vmap(choose, in_axes=(None, 0, 0, 0))
        axes = jax.tree.map(lambda mapped: 0 if mapped else None, in_batched)
        renewed = jax.vmap(choose, axes, axis_size=axis_size)(*args)
    else:
        spread = lambda x, mapped: (
            x if mapped else jnp.broadcast_to(x[None], (axis_size, *x.shape))
        )
        renewed = renew(params, *jax.tree.map(spread, args[1:], tuple(in_batched[1:])))
    return renewed, jax.tree.map(lambda _: True, renewed)


def _renew_by_choice(
    params: EnvParams, episode: Episode, seed: UInt[Array, ""], done: Bool[Array, ""]
) -> Episode:
    """A start in any case, taken where the episode is done."""
    fresh = start_episode(params, seed, episode.task_row)
    merged = jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, episode)
    return _with_history(merged, episode.action_history)


_renew_all = jax.vmap(_renew_by_choice, in_axes=(None, 0, 0, 0))


def _renew_by_rounds(
    params: EnvParams,
    episodes: Episode,
    seeds: UInt[Array, " rows"],
    done: Bool[Array, " rows"],
) -> Episode:
    """Starts for the rows that are done alone, a block of them in each round.

    Few episodes end at a step, so there is mostly one round; nothing is lost where all
    end at once. The loop also keeps XLA from working out the step before it once more
    for every cell that it chooses.
    """
    count = done.shape[0]
    block = min(count, max(SMALLEST_BLOCK, count // BLOCKS))
    start = jax.vmap(lambda seed, last_row: start_episode(params, seed, last_row))

    def round_of(carry):
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
    renewed, _ = jax.lax.while_loop(
        lambda carry: jnp.any(carry[1]), round_of, (bare, done)
    )
    return _with_history(renewed, episodes.action_history)


def _with_history(episode: Episode, records: Float[Array, "..."]) -> Episode:
    return eqx.tree_at(lambda e: e.action_history, episode, records)


def _key(seed: UInt[Array, ""]) -> PRNGKeyArray:
    words = jnp.stack([seed, mix(seed)])
    return jax.random.wrap_key_data(words, impl="threefry2x32")
