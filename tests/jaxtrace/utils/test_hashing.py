"""Oracle: cells compared as tuples, sums in a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtrace.utils.hashing import bincount_sum, grid_hash, segment_sum, unique_ids


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]), st.floats(1e-9, 1e9))
def test_keys_are_equal_exactly_where_cells_are(seed, axes, scale):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, (40, axes)) * scale + rng.random((40, axes)) * scale
    keys, cells = grid_hash(points, scale)
    same_cell = (cells[:, None] == cells[None]).all(axis=-1)
    np.testing.assert_array_equal(keys[:, None] == keys[None], same_cell)
    np.testing.assert_array_equal(cells, np.floor(points / scale))


def test_far_cells_do_not_collide():
    reach = 2**20
    corners = np.array(np.meshgrid(*[[-reach, -1, 0, 1, reach - 1]] * 3)).reshape(3, -1)
    keys, cells = grid_hash(corners.T + 0.5, 1.0)
    np.testing.assert_array_equal(cells, corners.T)
    assert len(np.unique(keys)) == 125
    assert (keys >= 0).all()


def test_sizes_and_origins_per_axis():
    _, cells = grid_hash([[1.0, 1.0]], [0.5, 2.0], origin=[-1.0, 0.0])
    np.testing.assert_array_equal(cells, [[4, 0]])


@pytest.mark.parametrize(
    ("points", "size", "words"),
    [
        ([[0, 0, 1e9]], 1.0, "larger cells"),
        ([[0, 0, np.nan]], 1.0, "finite"),
        ([[0, 0]], 0.0, "above 0"),
        ([0, 0], 1.0, r"shape \(2,\)"),
    ],
)
def test_what_cannot_be_hashed_is_said(points, size, words):
    with pytest.raises(ValueError, match=words):
        grid_hash(points, size)


def test_unique_ids():
    different, which = unique_ids([7, 3, 7, 9])
    assert different.tolist() == [3, 7, 9]
    assert different[which].tolist() == [7, 3, 7, 9]


def test_sums_over_segments():
    values = np.random.default_rng(0).normal(size=(30, 2))
    ids = np.random.default_rng(1).integers(0, 5, 30)
    expected = np.stack([values[ids == i].sum(axis=0) for i in range(7)])
    np.testing.assert_allclose(segment_sum(values, ids, 7), expected)
    np.testing.assert_allclose(segment_sum(values, ids), expected[:5])
    np.testing.assert_allclose(bincount_sum(ids, values[:, 0], 7), expected[:, 0])
    assert bincount_sum([1, 1, 3]).tolist() == [0, 2, 0, 1]
    assert segment_sum(np.zeros((0, 2)), []).shape == (0, 2)
    with pytest.raises(ValueError, match="not below num_segments=2"):
        segment_sum(values, ids, 2)
    with pytest.raises(ValueError, match="whole numbers from 0"):
        segment_sum([1.0], [-1])
    with pytest.raises(ValueError, match="whole numbers from 0"):
        bincount_sum([0.5])
