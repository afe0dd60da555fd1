"""The made-up tasks are what the documents say."""

import numpy as np
import pytest

from jaxarc.data.samples import create_demo_task, create_mock_task


@pytest.mark.parametrize("shape", [(30, 30), (5, 5), (12, 7), (3, 4)])
def test_the_demo_task_recolours_a_centred_block(shape):
    task = create_demo_task(*shape)
    given = np.asarray(task.input_grids_examples[0])
    rows, columns = np.nonzero(given == 1)
    assert len(rows) == 9
    for cells, side in ((rows, shape[0]), (columns, shape[1])):
        assert cells.max() - cells.min() == 2
        assert abs(cells.min() - (side - 1 - cells.max())) <= 1
    assert set(np.unique(given)) <= {0, 1}
    for name in ("output_grids_examples", "true_test_output_grids"):
        np.testing.assert_array_equal(getattr(task, name)[0], 2 * given)
    np.testing.assert_array_equal(task.test_input_grids[0], given)
    assert np.asarray(task.input_masks_examples).all()
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (1, 1)
    assert int(task.task_index) == 0


def test_the_demo_task_leaves_further_slots_empty():
    task = create_demo_task(6, 6, max_train_pairs=4, max_test_pairs=2)
    assert task.input_grids_examples.shape == (4, 6, 6)
    assert (np.asarray(task.output_grids_examples[1:]) == -1).all()
    assert not np.asarray(task.test_input_masks[1]).any()


def test_a_small_demo_task_keeps_what_fits_of_the_block():
    assert (np.asarray(create_demo_task(2, 2).input_grids_examples) == 1).all()


def test_the_mock_task_is_solved_as_given():
    task = create_mock_task()
    assert task.input_grids_examples.shape == (3, 30, 30)
    assert task.test_input_grids.shape == (1, 30, 30)
    assert (int(task.num_train_pairs), int(task.num_test_pairs)) == (3, 1)
    for part in ("input_{}_examples", "output_{}_examples", "test_input_{}"):
        assert not np.asarray(getattr(task, part.format("grids"))).any()
        assert np.asarray(getattr(task, part.format("masks"))).all()
