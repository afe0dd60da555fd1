"""A buffer gives back the tasks it was stacked from."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_samples import random_raw_task
from jaxarc.tasks.packing import Dimensions, pack_tasks, unstacked_task
from jaxarc.tasks.samples import buffer_size, gather_task, stack_task_list

ROOM = Dimensions(7, 9, 3, 2)


def some_tasks(room=ROOM):
    rng = np.random.default_rng(0)
    packed = pack_tasks([random_raw_task(rng, f"t{i}", 7) for i in range(4)])
    return [unstacked_task(packed, row, room, 10 + row) for row in range(4)]


def test_tasks_come_back():
    tasks = some_tasks()
    buffer = stack_task_list(tasks)
    assert buffer_size(buffer) == 4
    for index, task in enumerate(tasks):
        assert eqx.tree_equal(gather_task(buffer, index), task)
        assert eqx.tree_equal(jax.jit(gather_task)(buffer, jnp.int32(index)), task)


def test_a_batch_of_tasks_is_gathered():
    buffer = stack_task_list(some_tasks())
    rows = jax.vmap(gather_task, (None, 0))(buffer, jnp.array([3, 0, 3, 99]))
    np.testing.assert_array_equal(rows.task_index, [13, 10, 13, 13])


def test_nothing_cannot_be_stacked():
    with pytest.raises(ValueError, match="no tasks to stack"):
        stack_task_list([])


def test_shapes_must_agree():
    wide = some_tasks(Dimensions(7, 10, 3, 2))
    with pytest.raises(ValueError, match=r"task 1 has .*7 x 10.*task 0 has .*7 x 9"):
        stack_task_list([some_tasks()[0], wide[0]])
    # As many slots, but shared out in another way.
    shared = (
        some_tasks(Dimensions(7, 9, 3, 3))[0],
        some_tasks(Dimensions(7, 9, 4, 2))[0],
    )
    with pytest.raises(ValueError, match=r"4 \+ 2 pairs.*3 \+ 3 pairs"):
        stack_task_list(shared)


def test_a_single_task_is_no_buffer():
    with pytest.raises(ValueError, match="a single task, not a buffer"):
        buffer_size(some_tasks()[0])
    buffer = stack_task_list(some_tasks())
    for index in (-1, 4):
        with pytest.raises(
            ValueError, match=f"index {index}: the buffer holds tasks 0"
        ):
            gather_task(buffer, index)
