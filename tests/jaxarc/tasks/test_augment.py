"""Augmented tasks equal what NumPy makes of the cropped grids."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import row
from arc_samples import assert_holds, padded, random_raw_task, sizes
from jaxarc.tasks.augment import augment_task, random_augmentation
from jaxarc.tasks.packing import pack_tasks, stack_tasks
from jaxarc.tasks.task_json import RawTask
from jaxarc.types import JaxArcTask

IDENTITY = np.arange(10)


def oracle(raw, symmetry, permutation):
    def change(grid):
        if grid is None:
            return None
        flipped = np.fliplr(grid) if symmetry >= 4 else grid
        return permutation.astype(np.int8)[np.rot90(flipped, symmetry % 4)]

    pairs: Any = lambda part: tuple(tuple(map(change, pair)) for pair in part)
    return RawTask(raw.id, pairs(raw.train), pairs(raw.test))


augment = eqx.filter_jit(augment_task)


def one_task(raw, room, index=0):
    """A task of this room."""
    arrays = []
    for pairs, slots in (
        (raw.train, room.max_train_pairs),
        (raw.test, room.max_test_pairs),
    ):
        for side in (0, 1):
            grids = [pair[side] for pair in pairs]
            arrays += padded(grids, slots, room.max_grid_height, room.max_grid_width)
        arrays.append(len(pairs))
    return JaxArcTask(*arrays, task_index=index)


@pytest.mark.parametrize(("height", "width"), [(9, 20), (20, 9)])
def test_other_shapes_keep_height_and_width(height, width):
    rng = np.random.default_rng(1)
    room = sizes(height, width, 3, 2)
    raw = random_raw_task(rng, "t", 9)
    task = one_task(raw, room)
    for symmetry in (0, 2, 4, 6):
        assert_holds(
            augment(task, jnp.int32(symmetry), jnp.asarray(IDENTITY)),
            oracle(raw, symmetry, IDENTITY),
            room,
        )
    for symmetry in (1, 3, 5, 7):
        with pytest.raises(
            ValueError, match=f"symmetry {symmetry}: .* pad to a square"
        ):
            augment_task(task, symmetry, IDENTITY)
    with pytest.raises(eqx.EquinoxRuntimeError, match="symmetry is one of 0, 2, 4, 6"):
        augment(task, jnp.int32(1), jnp.asarray(IDENTITY))


@pytest.mark.parametrize("side", [32, 16, 5])
def test_symmetries_and_colors_on_squares(side):
    """Mapped over a stack: a task for each of the eight symmetries."""
    rng = np.random.default_rng(2)
    room = sizes(side, side, 4, 3)
    raw = [random_raw_task(rng, f"t{i}", side, answers=i % 2 == 0) for i in range(8)]
    stack = stack_tasks(pack_tasks(raw), room, range(8))
    permutations = np.stack([rng.permutation(10) for _ in raw]).astype(np.int32)
    mapped = eqx.filter_jit(jax.vmap(augment_task))
    changed = mapped(stack, jnp.arange(8), jnp.asarray(permutations))
    np.testing.assert_array_equal(changed.task_index, np.arange(8))
    for index, task in enumerate(raw):
        wanted = oracle(task, index, permutations[index])
        assert_holds(row(changed, index), wanted, room)


@pytest.mark.parametrize(
    "permutation", [np.arange(9), np.zeros(10, np.int32), np.arange(1, 11)]
)
def test_what_is_no_permutation_is_refused(permutation):
    raw = random_raw_task(np.random.default_rng(0), "t", 5)
    task = one_task(raw, sizes(5, 5, 3, 2))
    with pytest.raises(ValueError, match="permutation"):
        augment_task(task, 0, permutation)
    with pytest.raises(
        ValueError, match=r"symmetry 8: .* one of 0, 1, 2, 3, 4, 5, 6, 7"
    ):
        augment_task(task, 8, IDENTITY)


def test_random_augmentations_cover_what_is_allowed(key):
    keys = jax.random.split(key, 500)
    drawn = jax.jit(jax.vmap(random_augmentation))(keys)
    symmetry, permutation = jax.device_get(drawn)
    assert set(symmetry.tolist()) == set(range(8))
    assert (permutation[:, 0] == 0).all()
    assert (np.sort(permutation, axis=1) == IDENTITY).all()
    assert all(len(set(permutation[:, c].tolist())) == 9 for c in range(1, 10))
    flat = jax.vmap(lambda k: random_augmentation(k, transposing=False))
    symmetry, _ = jax.device_get(jax.jit(flat)(keys))
    assert set(symmetry.tolist()) == {0, 2, 4, 6}
    assert int(random_augmentation(key, symmetries=False)[0]) == 0
