import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.evaluation.scoring import Cell, Protocol, draw_task, task_keys
from causal_linear import edges, linear_scm


def bits(keys):
    return np.asarray(jax.random.key_data(keys))


def test_more_problems_extend_a_set():
    few, many = bits(task_keys(0, "chain", 5, 3)), bits(task_keys(0, "chain", 5, 8))
    np.testing.assert_array_equal(few, many[:3])


def test_seed_family_size_and_index_all_matter():
    sets = [(0, "chain", 5), (1, "chain", 5), (0, "fork", 5), (0, "chain", 8)]
    keys = np.concatenate([bits(task_keys(*each, 4)) for each in sets])
    assert len(np.unique(keys, axis=0)) == 16


def test_a_task_has_the_rows_of_its_cell_and_room_for_steps(key):
    scm, cell = linear_scm(edges(4, e01=1.0, e12=1.0), 2), Cell("chain", 4, 3, 2)
    task = jax.jit(lambda k: draw_task(k, scm, cell, steps=4, clip_to_range=True))(key)
    assert task.history.values.shape == (9, 4)
    assert int(task.history.count) == 5
    assert task.history.intervened.sum(1).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert not task.history.intervened[:, 2].any()
    others = task.history.values[:, jnp.array([0, 1, 3])]
    assert (others.min(), others.max()) >= (-2.0, -2.0)
    assert others.max() <= 3.0


def test_buckets():
    protocol = Protocol()
    assert [protocol.bucket(size) for size in (3, 4, 5, 8, 100)] == [4, 4, 8, 8, 128]
    with pytest.raises(ValueError, match="size=129 does not fit"):
        protocol.bucket(129)


def test_wrong_cells_and_protocols_are_refused():
    with pytest.raises(ValueError, match="need 2 variables"):
        Cell("chain", 1, 3, 2)
    with pytest.raises(ValueError, match="direction 'UP'"):
        Protocol(direction="UP")
    assert hash(Protocol()) == hash(Protocol())
    assert Cell("er1", 5, 20, 10).name == "er1 d=5 rows=20+10"
