"""A pair of a task, of a row of a stack, and of a task shown otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import random_puzzle
from jaxarc import bits
from jaxarc.episode import (
    Augmentation,
    has_answer,
    is_stack,
    load_pair,
    load_start,
    pair_counts,
    slot_of,
)
from jaxarc.tasks.augment import augment_task, random_augmentation
from jaxarc.tasks.samples import stack_task_list

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
    pair = load_pair(tasks, row, slot_of(tasks, mode, index))
    sides = ((pair.given, pair.given_size), (pair.wanted, pair.wanted_size))
    grids = [
        bits.unpack_grid(planes, bits.active_rows(size, SHAPE[0], planes.dtype), 6)
        for planes, size in sides
    ]
    return grids, has_answer(pair)


def every_pair(puzzle):
    for mode, pairs in enumerate((puzzle.demos, puzzle.tests)):
        for index, pair in enumerate(pairs):
            yield mode, index, pair


def test_demonstrations_come_first(puzzles):
    task = puzzles[0].as_task()
    assert slot_of(task, jnp.int32(0), jnp.int32(2)) == 2
    assert slot_of(task, jnp.int32(1), jnp.int32(2)) == ROOM[0] + 2


def test_pairs_of_a_task_and_of_a_stack(puzzles):
    stack = stack_task_list([puzzle.as_task() for puzzle in puzzles])
    assert is_stack(stack)
    for row, puzzle in enumerate(puzzles):
        task = puzzle.as_task()
        assert not is_stack(task)
        for tasks in (task, stack):
            counts = pair_counts(tasks, jnp.int32(row))
            assert [*map(int, counts)] == [len(puzzle.demos), len(puzzle.tests)]
            for mode, index, wanted in every_pair(puzzle):
                place = map(jnp.int32, (row, mode, index))
                grids, answered = loaded(tasks, *place)
                for grid, expected in zip(grids, wanted, strict=True):
                    np.testing.assert_array_equal(grid, expected)
                assert answered == (wanted[1] >= 0).any()


def test_a_start_is_the_input_of_its_pair(puzzles):
    task = puzzles[1].as_task()
    for slot in range(4):
        planes, size, alike = load_start(task, jnp.int32(0), jnp.int32(slot))
        pair = load_pair(task, jnp.int32(0), jnp.int32(slot))
        np.testing.assert_array_equal(planes, pair.given)
        np.testing.assert_array_equal(size, pair.given_size)
        assert alike == task.start_similarity[slot]


def test_an_augmented_pair_is_the_pair_of_the_augmented_task(puzzles):
    task, row = puzzles[1].as_task(), jnp.int32(0)

    @jax.jit
    def both(key, slot):
        drawn = random_augmentation(key)
        shown, other = Augmentation(*drawn), augment_task(task, *drawn)
        pair = load_pair(task, row, slot, shown), load_start(task, row, slot, shown)
        return pair, (load_pair(other, row, slot), load_start(other, row, slot))

    for number in range(8):
        for slot in map(jnp.int32, range(5)):
            got, wanted = both(jax.random.key(number), slot)
            jax.tree.map(np.testing.assert_array_equal, got, wanted)
