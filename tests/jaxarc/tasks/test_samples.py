"""The made-up tasks are what the documents say.

A buffer gives back the tasks it was stacked from.

Ids and numbers go both ways, from many threads.
"""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_samples import documented, random_raw_task, sizes
from jaxarc.tasks import identity, samples
from jaxarc.tasks.packing import pack_tasks, unstacked_task


@pytest.mark.parametrize("shape", [(30, 30), (5, 5), (12, 7), (3, 4)])
def test_the_demo_task_recolors_a_centered_block(shape):
    task = samples.create_demo_task(*shape)
    held = jax.device_get(documented(task))
    given = held["input_grids_examples"][0]
    rows, columns = np.nonzero(given == 1)
    assert len(rows) == 9
    for cells, side in ((rows, shape[0]), (columns, shape[1])):
        assert cells.max() - cells.min() == 2
        assert abs(cells.min() - (side - 1 - cells.max())) <= 1
    assert set(np.unique(given)) <= {0, 1}
    for name in ("output_grids_examples", "true_test_output_grids"):
        np.testing.assert_array_equal(held[name][0], 2 * given)
    np.testing.assert_array_equal(held["test_input_grids"][0], given)
    assert held["input_masks_examples"].all()
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (1, 1)
    assert int(task.task_index) == identity.NOBODY  # 0 would be a parser's first


def test_the_demo_task_leaves_further_slots_empty():
    held = jax.device_get(documented(samples.create_demo_task(6, 6, 4, 2)))
    assert held["input_grids_examples"].shape == (4, 6, 6)
    assert (held["output_grids_examples"][1:] == -1).all()
    assert not held["test_input_masks"][1].any()


def test_a_small_demo_task_keeps_what_fits_of_the_block():
    held = documented(samples.create_demo_task(2, 2))
    assert (np.asarray(held["input_grids_examples"]) == 1).all()


def test_the_mock_task_is_solved_as_given():
    task = samples.create_mock_task()
    held = jax.device_get(documented(task))
    assert held["input_grids_examples"].shape == (3, 30, 30)
    assert held["test_input_grids"].shape == (1, 30, 30)
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (3, 1)
    for part in ("input_{}_examples", "output_{}_examples", "test_input_{}"):
        assert not held[part.format("grids")].any()
        assert held[part.format("masks")].all()


ROOM = sizes(7, 9, 3, 2)


def some_tasks(room=ROOM):
    rng = np.random.default_rng(0)
    packed = pack_tasks([random_raw_task(rng, f"t{i}", 7) for i in range(4)])
    return [unstacked_task(packed, row, room, 10 + row) for row in range(4)]


def test_tasks_come_back():
    tasks = some_tasks()
    buffer = samples.stack_task_list(tasks)
    assert samples.buffer_size(buffer) == 4
    for index, task in enumerate(tasks):
        assert eqx.tree_equal(samples.gather_task(buffer, index), task)
        assert eqx.tree_equal(
            jax.jit(samples.gather_task)(buffer, jnp.int32(index)), task
        )


def test_a_batch_of_tasks_is_gathered():
    buffer = samples.stack_task_list(some_tasks())
    rows = jax.vmap(samples.gather_task, (None, 0))(buffer, jnp.array([3, 0, 3, 99]))
    np.testing.assert_array_equal(rows.task_index, [13, 10, 13, 13])


def test_shapes_must_agree_and_nothing_cannot_be_stacked():
    with pytest.raises(ValueError, match="no tasks to stack"):
        samples.stack_task_list([])
    wide = some_tasks(sizes(7, 10, 3, 2))
    with pytest.raises(ValueError, match=r"task 1 has .*7 x 10.*task 0 has .*7 x 9"):
        samples.stack_task_list([some_tasks()[0], wide[0]])
    # As many slots, but shared out in another way.
    shared = [some_tasks(sizes(7, 9, *room))[0] for room in ((3, 3), (4, 2))]
    with pytest.raises(ValueError, match=r"4 \+ 2 pairs.*3 \+ 3 pairs"):
        samples.stack_task_list(shared)


def test_a_single_task_is_no_buffer():
    with pytest.raises(ValueError, match="a single task, not a buffer"):
        samples.buffer_size(some_tasks()[0])
    buffer = samples.stack_task_list(some_tasks())
    for index in (-1, 4, np.int64(4), jnp.int32(-1)):
        with pytest.raises(
            ValueError, match=f"index {index}: the buffer contains tasks 0"
        ):
            samples.gather_task(buffer, index)


def test_numbers_follow_registration():
    first, second, again = map(
        identity.register_task, ("follow a", "follow b", "follow a")
    )
    assert (second, again) == (first + 1, first)
    assert identity.registered_id(second) == "follow b"
    assert identity.registered_id(1_000_000) is identity.registered_id(-1) is None


def test_threads_get_one_number_per_id():
    found = [{} for _ in range(8)]

    def register(results, shift):
        for i in range(200):
            name = f"task{(i * 7 + shift) % 200}"
            results[name] = identity.register_task(name)

    threads = [
        threading.Thread(target=register, args=(results, 31 * i))
        for i, results in enumerate(found)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results == found[0] for results in found)
    assert len(set(found[0].values())) == 200


def test_numbers_and_ids_go_both_ways():
    array = identity.create_jax_task_index("identity-test")
    assert identity.extract_task_id_from_index(array) == "identity-test"
    assert identity.extract_task_id_from_index(np.int32(array)) == "identity-test"

    nobody = identity.create_jax_task_index(None)
    assert (int(nobody), nobody.dtype) == (-1, jnp.int32)
    assert identity.extract_task_id_from_index(nobody) is None


def test_numbers_nobody_has_are_refused():
    with pytest.raises(ValueError, match="task index 1000000 is not registered"):
        identity.extract_task_id_from_index(jnp.int32(1_000_000))
    with pytest.raises(ValueError, match="take one row of a batch"):
        identity.extract_task_id_from_index(jnp.zeros(3, jnp.int32))
    with pytest.raises(ValueError, match="one whole number"):
        identity.extract_task_id_from_index(jnp.float32(-1))
