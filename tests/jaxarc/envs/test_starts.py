"""Parameters of environments are checked when they are made.

Starts of episodes: reproducible, uniform, in order on request, in range always.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc_environments import SHAPE, clipping, small_buffer, small_params
from arc_states import assert_same
from jaxarc.envs.starts import (
    EnvParams,
    auto_reset,
    choose_pair,
    choose_row,
    draw_augmentation,
    scaled,
    start_episode,
)
from jaxarc.tasks.samples import gather_task
from jaxarc.types import JaxArcTask
from jaxrig.keys import mix
from jaxrig.sharding import gather, make_mesh, shard_batch


def test_mode_and_rows_default_to_the_configuration_and_all():
    params = small_params()
    assert params.episode_mode == 0
    assert params.subset_indices is None
    assert params.choices == 4
    testing = small_params(clipping(episode={"episode_mode": 1}))
    assert testing.episode_mode == 1
    assert small_params(episode_mode=1).episode_mode == 1


def test_the_rows_behind_choices():
    params = small_params(subset_indices=[3, 1])
    assert params.choices == 2
    assert params.subset_indices is not None
    assert params.subset_indices.dtype == jnp.int32
    np.testing.assert_array_equal(params.row(jnp.arange(2)), [3, 1])
    everything = small_params()
    np.testing.assert_array_equal(everything.row(jnp.arange(4)), np.arange(4))


@pytest.mark.parametrize(
    "rows", [[], [[0, 1]], [0.5], ["a"], [4], [-1], np.zeros((2, 2), int)]
)
def test_rows_that_are_none_are_refused(rows):
    with pytest.raises(ValueError, match="subset_indices"):
        small_params(subset_indices=rows)


def test_rows_may_repeat_only_where_they_are_drawn():
    assert small_params(subset_indices=[1, 1, 2]).choices == 3
    ordered = {"dataset": {"shuffle_tasks": False} | sides()}
    with pytest.raises(ValueError, match="every row once"):
        EnvParams.from_config(ordered, small_buffer(), subset_indices=[1, 1, 2])


def sides():
    return {"max_grid_height": SHAPE[0], "max_grid_width": SHAPE[1]}


@pytest.mark.parametrize("mode", [2, -1, "eval", 0.5])
def test_modes_are_zero_and_one(mode):
    with pytest.raises(ValueError, match="episode_mode"):
        small_params(episode_mode=mode)


def test_a_buffer_is_a_stack_of_tasks():
    single: JaxArcTask = gather_task(small_buffer(), 0)
    with pytest.raises(ValueError, match="stack_task_list"):
        small_params(buffer=single)
    with pytest.raises(TypeError, match="a list"):
        EnvParams.from_config(clipping(), [single])


def test_rules_are_static_and_tasks_are_leaves():
    params = small_params(subset_indices=[0, 2])
    leaves = jax.tree.leaves(params)
    assert len(leaves) == len(jax.tree.leaves(params.buffer)) + 1
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    hash(jax.tree.structure(params))


WORDS = st.integers(0, 2**32 - 1)


def ordered(config=None):
    config = config or clipping()
    dataset = dataclasses.replace(config.dataset, shuffle_tasks=False)
    return dataclasses.replace(config, dataset=dataset)


def seeds(count, start=0):
    return mix(jnp.arange(start, start + count, dtype=jnp.uint32))


chosen_row = jax.jit(choose_row)
high_word = jax.jit(scaled)


@given(WORDS, st.integers(1, 2**31 - 1))
def test_scaled_is_the_high_word_of_the_product(number, count):
    assert int(high_word(np.uint32(number), np.int32(count))) == number * count >> 32


def test_rows_are_drawn_about_equally_often():
    params = small_params(buffer=small_buffer(7))
    rows = jax.jit(jax.vmap(lambda seed: choose_row(params, seed)))(seeds(7000))
    counts = np.bincount(np.asarray(rows), minlength=7)
    assert counts.min() > 900
    assert counts.max() < 1100


def test_pairs_are_drawn_about_equally_often_among_those_there_are():
    params = small_params()
    draw = jax.jit(jax.vmap(lambda s, r: choose_pair(params, s, r), in_axes=(0, None)))
    for row, demos in enumerate((1, 2, 3, 1)):
        drawn = draw(seeds(3000), jnp.int32(row))
        counts = np.bincount(np.asarray(drawn), minlength=demos)
        assert len(counts) == demos
        assert counts.min() > 0.9 * 3000 / demos


def test_the_strategy_of_the_mode_decides():
    config = clipping(
        episode={
            "demo_selection_strategy": "sequential",
            "test_selection_strategy": "random",
        }
    )
    for mode, kinds in ((0, {0}), (1, {0, 1, 2})):
        params = small_params(config, episode_mode=mode)
        draw = jax.vmap(lambda s, p=params: choose_pair(p, s, jnp.int32(2)))
        assert set(np.asarray(jax.jit(draw)(seeds(60))).tolist()) == kinds


def test_rows_are_walked_in_order():
    params = small_params(ordered())
    walk = [int(chosen_row(params, jnp.uint32(5), jnp.int32(r))) for r in range(4)]
    assert walk == [1, 2, 3, 0]


def test_rows_of_a_subset_are_walked_in_its_order():
    params = small_params(ordered(), subset_indices=[3, 0, 2])
    row, walk = jnp.int32(3), []
    for _ in range(4):
        row = chosen_row(params, jnp.uint32(5), row)
        walk.append(int(row))
    assert walk == [0, 2, 3, 0]
    assert int(chosen_row(params, jnp.uint32(5), jnp.int32(1))) == 3


def test_a_first_row_is_drawn_even_in_order():
    params = small_params(ordered(), subset_indices=[3, 0, 2])
    rows = jax.jit(jax.vmap(lambda seed: choose_row(params, seed)))(seeds(60))
    assert set(np.asarray(rows).tolist()) == {0, 2, 3}


def test_what_is_given_is_taken_and_what_does_not_exist_is_the_first():
    params = small_params()
    start = jax.jit(lambda s, row, pair: start_episode(params, s, None, row, pair))
    for row, pair, wanted in (
        (2, 1, (2, 1)),
        (2, 3, (2, 0)),
        (0, 1, (0, 0)),
        (9, 0, (0, 0)),
        (-1, -1, (0, 0)),
    ):
        episode = start(jnp.uint32(1), jnp.int32(row), jnp.int32(pair))
        found = int(episode.task_row), int(episode.current_example_idx)
        assert found == wanted


def test_a_given_row_limits_the_pair_that_is_drawn():
    params = small_params()
    start = jax.jit(jax.vmap(lambda s: start_episode(params, s, row=jnp.int32(0))))
    assert not np.asarray(start(seeds(50)).current_example_idx).any()


def augmentations(params):
    draw = jax.jit(jax.vmap(lambda seed: draw_augmentation(params, seed)))
    return jax.device_get(draw(seeds(60)))


def test_augmentations_are_drawn_only_on_request():
    assert draw_augmentation(small_params(), jnp.uint32(1)) is None
    drawn = augmentations(small_params(augment=True))
    assert set(drawn.symmetry.tolist()) == set(range(8))
    assert not drawn.permutation[:, 0].any()
    assert (np.sort(drawn.permutation) == np.arange(10)).all()


def test_grids_that_are_not_square_are_never_transposed():
    shape = (4, 6)
    config = clipping()
    dataset = dataclasses.replace(config.dataset, max_grid_height=4, max_grid_width=6)
    config = dataclasses.replace(config, dataset=dataset)
    params = small_params(config, small_buffer(shape=shape), augment=True)
    assert set(augmentations(params).symmetry.tolist()) == {0, 2, 4, 6}


@pytest.mark.parametrize("history", [True, False])
def test_only_what_is_done_begins_anew(history):
    params = small_params(clipping(history={"enabled": history}))
    start = jax.jit(lambda seed, last, row: start_episode(params, seed, last, row))
    before = start(jnp.uint32(1), None, jnp.int32(2))
    go = jax.jit(lambda e, s, d: auto_reset(params, e, s, d))
    assert_same(go(before, jnp.uint32(9), jnp.asarray(False)), before)
    after = go(before, jnp.uint32(9), jnp.asarray(True))
    assert_same(after, start(jnp.uint32(9), before.task_row, None))


COUNT = 40  # five blocks of the fewest rows


def renewed(params):
    """Episodes with records, seeds, and by hand what is renewed of them."""
    start = jax.jit(jax.vmap(lambda s, row: start_episode(params, s, row)))
    rows = jnp.arange(COUNT, dtype=jnp.int32) % 4
    episodes, numbers = start(seeds(COUNT), rows), seeds(COUNT, 1000)
    records = np.arange(episodes.action_history.size, dtype=np.float32)
    records = jnp.asarray(records.reshape(episodes.action_history.shape))
    keep = lambda e: eqx.tree_at(lambda e: e.action_history, e, records)
    episodes, fresh = keep(episodes), keep(start(numbers, episodes.task_row))

    def wanted(done):
        pick = lambda new, old: np.where(
            np.asarray(done).reshape(-1, *(1,) * (old.ndim - 1)), new, old
        )
        return jax.tree.map(pick, fresh, episodes)

    return episodes, numbers, wanted


def test_a_batch_is_reset_row_by_row_however_many_are_done():
    params = small_params(ordered(), augment=True)
    episodes, numbers, wanted = renewed(params)
    go = jax.jit(jax.vmap(lambda e, s, d: auto_reset(params, e, s, d)))
    for ended in (0, 1, 8, 9, COUNT):
        done = jax.random.permutation(jax.random.key(ended), jnp.arange(COUNT) < ended)
        assert_same(go(episodes, numbers, done), wanted(done))


def test_a_map_of_a_map_is_one_batch():
    params = small_params()
    episodes, numbers, wanted = renewed(params)
    done = jnp.arange(COUNT) % 3 == 0
    square = lambda tree: jax.tree.map(
        lambda x: x.reshape(5, COUNT // 5, *x.shape[1:]), tree
    )
    go = jax.jit(jax.vmap(jax.vmap(lambda e, s, d: auto_reset(params, e, s, d))))
    found = go(*square((episodes, numbers, done)))
    assert_same(found, square(wanted(done)))


def test_a_batch_over_several_devices_is_renewed_alike():
    params = small_params()
    episodes, numbers, wanted = renewed(params)
    done = jnp.arange(COUNT) % 3 == 0
    go = jax.jit(jax.vmap(lambda e, s, d: auto_reset(params, e, s, d)))
    found = go(*shard_batch((episodes, numbers, done), make_mesh()))
    assert_same(gather(found), wanted(done))


@pytest.mark.slow  # compiles a program of its own
def test_an_episode_that_is_not_mapped_is_the_same_for_all():
    params = small_params()
    episodes, numbers, _ = renewed(params)
    done = jnp.arange(COUNT) % 3 == 0
    one = jax.tree.map(lambda x: x[0], episodes)
    go = jax.jit(lambda s, d: auto_reset(params, one, s, d))
    found = jax.jit(jax.vmap(lambda s, d: auto_reset(params, one, s, d)))(numbers, done)
    for index in range(COUNT):
        row = jax.tree.map(lambda x, i=index: x[i], found)
        assert_same(row, go(numbers[index], done[index]))


@pytest.mark.slow  # compiles a program of its own
def test_parameters_may_be_mapped_too():
    params = small_params(subset_indices=[3, 0])
    episodes, numbers, _ = renewed(params)
    done = jnp.arange(COUNT) % 3 == 0
    subsets = jnp.asarray([[3, 0], [2, 1]], jnp.int32)

    def go(rows):
        chosen = eqx.tree_at(lambda p: p.subset_indices, params, rows)
        return jax.vmap(lambda e, s, d: auto_reset(chosen, e, s, d))(
            episodes, numbers, done
        )

    found = jax.jit(jax.vmap(go))(subsets)
    for index, rows in enumerate(subsets):
        assert_same(jax.tree.map(lambda x, i=index: x[i], found), go(rows))
