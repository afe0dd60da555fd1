"""The made-up tasks are what the documents say."""

import jax
import numpy as np
import pytest

from arc_samples import documented
from jaxarc.tasks.samples import create_demo_task, create_mock_task

# Compiled whole: eagerly, every shape would compile every operation anew.
demo_task = jax.jit(create_demo_task, static_argnums=(0, 1, 2, 3))
mock_task = jax.jit(create_mock_task)


@pytest.mark.parametrize("shape", [(30, 30), (5, 5), (12, 7), (3, 4)])
def test_the_demo_task_recolors_a_centered_block(shape):
    task = demo_task(*shape)
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
    assert int(task.task_index) == 0


def test_the_demo_task_leaves_further_slots_empty():
    held = jax.device_get(documented(demo_task(6, 6, 4, 2)))
    assert held["input_grids_examples"].shape == (4, 6, 6)
    assert (held["output_grids_examples"][1:] == -1).all()
    assert not held["test_input_masks"][1].any()


def test_a_small_demo_task_keeps_what_fits_of_the_block():
    held = documented(create_demo_task(2, 2))
    assert (np.asarray(held["input_grids_examples"]) == 1).all()


def test_the_mock_task_is_solved_as_given():
    task = mock_task()
    held = jax.device_get(documented(task))
    assert held["input_grids_examples"].shape == (3, 30, 30)
    assert held["test_input_grids"].shape == (1, 30, 30)
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (3, 1)
    for part in ("input_{}_examples", "output_{}_examples", "test_input_{}"):
        assert not held[part.format("grids")].any()
        assert held[part.format("masks")].all()
