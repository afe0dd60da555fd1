"""Starts of episodes: from a key at a reset, from a hash when one follows another.

Splitting a key for every environment at every step would cost more than a step at 5x5,
and only the few environments whose episode ended need anything new.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt

from jaxarc.data.augment import random_augmentation
from jaxarc.envs.episode import begin
from jaxarc.envs.params import EnvParams
from jaxarc.episode import Episode
from jaxarc.pairs import Augmentation, pair_counts


def mix(number: UInt[Array, ""]) -> UInt[Array, ""]:
    """A hash of 32 bits (the finaliser of MurmurHash3) of the next number."""
    number = number + jnp.uint32(0x9E3779B9)
    number = (number ^ number >> jnp.uint32(16)) * jnp.uint32(0x85EBCA6B)
    number = (number ^ number >> jnp.uint32(13)) * jnp.uint32(0xC2B2AE35)
    return number ^ number >> jnp.uint32(16)


def scaled(number: UInt[Array, ""], count: Int[Array, ""] | int) -> Int[Array, ""]:
    """A number of 32 bits as one of `count` choices, by its high bits."""
    high = number >> jnp.uint32(16)
    chosen = high * jnp.asarray(count).astype(jnp.uint32) >> jnp.uint32(16)
    return chosen.astype(jnp.int32)


def draw_augmentation(params: EnvParams, seed: UInt[Array, ""]) -> Augmentation | None:
    """How an episode shows its task, if tasks are augmented."""
    if not params.augment:
        return None
    square = params.buffer.height == params.buffer.width
    key = jax.random.wrap_key_data(jnp.stack([seed, mix(seed)]), impl="threefry2x32")
    return Augmentation(*random_augmentation(key, transposing=square))


def choose_start(
    params: EnvParams, seed: UInt[Array, ""], last_row: Int[Array, ""] | None
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Row and pair of an episode.

    With `dataset.shuffle_tasks` off, an episode that follows another one takes the next
    row; pairs follow the configured strategy.
    """
    config = params.config
    if last_row is None or config.dataset.shuffle_tasks:
        row = params.row(scaled(seed, params.choices))
    elif params.subset_indices is None:
        row = (last_row + 1) % params.choices
    else:
        here = jnp.argmax(params.subset_indices == last_row)
        row = params.row((here + 1) % params.choices)
    count = pair_counts(params.buffer, row)[params.episode_mode]
    strategy = (
        config.episode.test_selection_strategy
        if params.episode_mode
        else config.episode.demo_selection_strategy
    )
    drawn = scaled(mix(seed ^ jnp.uint32(0x5BD1E995)), count)
    return row, drawn if strategy == "random" else jnp.zeros_like(drawn)


def start_episode(
    params: EnvParams, seed: UInt[Array, ""], last_row: Int[Array, ""] | None = None
) -> Episode:
    """A fresh episode."""
    row, pair = choose_start(params, seed, last_row)
    mode = jnp.asarray(params.episode_mode, jnp.int32)
    shown = draw_augmentation(params, seed)
    return begin(params.buffer, row, mode, pair, params.config, shown)


def renew(
    params: EnvParams, episode: Episode, seed: UInt[Array, ""], done: Bool[Array, ""]
) -> Episode:
    """The episode, or where it is done another one.

    Records of the past are left where they are, since the length says how many count.
    """
    fresh = start_episode(params, seed, episode.task_row)
    merged = jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, episode)
    return eqx.tree_at(lambda e: e.action_history, merged, episode.action_history)
