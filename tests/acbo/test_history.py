import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.history import History, append, start_history

APPEND = jax.jit(append)
ROWS = np.arange(14, dtype=np.float32).reshape(7, 2)
FLAGS = np.array([[0, 0], [1, 0], [0, 1], [0, 0], [1, 1], [0, 1], [1, 0]], bool)


def begin(rows, capacity=4):
    return start_history(jnp.asarray(ROWS[:rows]), jnp.asarray(FLAGS[:rows]), capacity)


@pytest.mark.parametrize("rows", [0, 3, 4])
def test_a_history_starts_with_its_rows_and_empty_room(rows):
    history = begin(rows)
    assert history.values.shape == (4, 2)
    np.testing.assert_array_equal(history.values[:rows], ROWS[:rows])
    np.testing.assert_array_equal(history.intervened[:rows], FLAGS[:rows])
    np.testing.assert_array_equal(history.row_mask, np.arange(4) < rows)
    assert not history.values[rows:].any()
    assert not history.intervened[rows:].any()
    with pytest.raises(ValueError, match="7 rows do not fit into a capacity of 4"):
        begin(7)


def test_appending_fills_the_room_and_then_forgets_the_oldest():
    """Against a list that keeps its last four."""
    history = begin(1)
    for count in range(2, 8):
        row, flag = ROWS[count - 1], FLAGS[count - 1]
        history = APPEND(history, jnp.asarray(row), jnp.asarray(flag))
        kept = slice(max(count - 4, 0), count)
        filled = min(count, 4)
        assert int(history.count) == filled
        np.testing.assert_array_equal(history.values[:filled], ROWS[kept])
        np.testing.assert_array_equal(history.intervened[:filled], FLAGS[kept])
        np.testing.assert_array_equal(history.row_mask, np.arange(4) < filled)


def test_the_mask_follows_a_stack_of_histories():
    counts = jnp.asarray([0, 2, 4])
    stack = History(jnp.zeros((3, 4, 2)), jnp.zeros((3, 4, 2), bool), counts)
    np.testing.assert_array_equal(stack.row_mask.sum(axis=1), counts)
