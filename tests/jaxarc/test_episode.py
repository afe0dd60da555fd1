"""The packed episode gives back what it was packed from.

Records of actions: their size, their content, their order.

A pair of a task, of a row of a stack, and of a task shown otherwise.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arc_episode_reference import describe
from arc_play import random_puzzle
from jaxarc import bits, episode
from jaxarc.ops.canvas import select_rows
from jaxarc.tasks.augment import augment_task, random_augmentation
from jaxarc.tasks.samples import stack_task_list


@given(st.lists(st.booleans(), min_size=1, max_size=100))
def test_flags_survive_packing(flags):
    array = np.array(flags)
    words = episode.pack_flags(array)
    assert words.dtype == np.uint32
    assert len(words) == -(-len(flags) // 32)
    np.testing.assert_array_equal(episode.unpack_flags(words, len(flags)), array)


@pytest.mark.parametrize("form", ["point", "bbox", "mask"])
@pytest.mark.parametrize("shape", [(4, 1), (6, 11), (30, 30)])
def test_descriptions_equal_the_reference(form, shape):
    rng = np.random.default_rng(sum(shape))
    fields = len(describe(form, np.zeros(shape, bool)))
    told = jax.jit(
        lambda rows: episode.describe_selection(
            select_rows(rows), fields, shape[1], form
        )
    )
    for density in (0.0, 0.02, 0.3, 1.0):
        mask = rng.random(shape) < density
        got = told(jnp.asarray(bits.pack_rows(mask)))
        assert got.dtype == jnp.float32
        assert got.tolist() == describe(form, mask)


SHAPE = (6, 6)
ROOM = (4, 3)


@pytest.fixture(scope="module")
def puzzles():
    rng = np.random.default_rng(5)
    counts = ((1, 3), (4, 1), (2, 2))
    return [random_puzzle(rng, SHAPE, *c, room=ROOM, answered=0.5) for c in counts]


@jax.jit
def loaded(tasks, row, mode, index):
    """Both grids of a pair, and whether it has an answer."""
    pair = episode.load_pair(tasks, row, episode.slot_of(tasks, mode, index))
    return [grid.cells() for grid in pair], pair.has_answer


def every_pair(puzzle):
    for mode, pairs in enumerate((puzzle.demos, puzzle.tests)):
        for index, pair in enumerate(pairs):
            yield mode, index, pair


def test_pairs_of_a_task_and_of_a_stack(puzzles):
    stack = stack_task_list([puzzle.as_task() for puzzle in puzzles])
    assert episode.is_stack(stack)
    for row, puzzle in enumerate(puzzles):
        task = puzzle.as_task()
        assert not episode.is_stack(task)
        for tasks in (task, stack):
            counts = episode.pair_counts(tasks, jnp.int32(row))
            assert [*map(int, counts)] == [len(puzzle.demos), len(puzzle.tests)]
            for mode, index, wanted in every_pair(puzzle):
                place = map(jnp.int32, (row, mode, index))
                grids, answered = loaded(tasks, *place)
                for grid, expected in zip(grids, wanted, strict=True):
                    np.testing.assert_array_equal(grid, expected)
                assert answered == (wanted[1] >= 0).any()


def test_an_augmented_pair_is_the_pair_of_the_augmented_task(puzzles):
    task, row = puzzles[1].as_task(), jnp.int32(0)

    @jax.jit
    def both(key, slot):
        drawn = random_augmentation(key)
        shown, other = episode.Augmentation(*drawn), augment_task(task, *drawn)
        pair = (
            episode.load_pair(task, row, slot, shown),
            episode.load_start(task, row, slot, shown),
        )
        return pair, (
            episode.load_pair(other, row, slot),
            episode.load_start(other, row, slot),
        )

    for number in range(8):
        for slot in map(jnp.int32, range(5)):
            got, wanted = both(jax.random.key(number), slot)
            jax.tree.map(np.testing.assert_array_equal, got, wanted)
