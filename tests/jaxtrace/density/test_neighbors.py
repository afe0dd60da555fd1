import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtrace.density import HashGridNeighbors
from jaxtrace.density.neighbors import CellGrid
from trace_densities import clustered, naive_neighbors

pytestmark = pytest.mark.slow  # compiles many programs

RNG = np.random.default_rng(1)


def sets(indices):
    return [set(row[row >= 0].tolist()) for row in indices]


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.3, 0.5, 0.77, 2.0, 100.0])
def test_neighbors_are_exact_for_any_radius(radius, dims):
    positions = clustered(150, dims)
    points = np.concatenate([positions[:20], 3 * RNG.standard_normal((40, dims))])
    search = HashGridNeighbors(positions, 0.3)
    indices, distances = search.query_many(points, radius)
    expected = naive_neighbors(positions, points, radius)
    assert sets(indices) == expected
    assert indices.shape[1] == max(len(row) for row in expected)
    for row, at, point in zip(indices, distances, points, strict=True):
        own = row >= 0
        apart = np.linalg.norm(positions[row[own]] - point, axis=1)
        np.testing.assert_allclose(at[own], apart, rtol=1e-6)
        assert np.all(np.isinf(at[~own]))
        assert np.all(np.diff(at[own]) >= 0)


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 3]),
    st.floats(1e-9, 1e9),
    st.floats(0.01, 3),
    st.floats(0.01, 3),
)
def test_neighbors_are_exact_at_any_scale(seed, dims, scale, cell, radius):
    rng = np.random.default_rng(seed)
    # Lattice points: many pairs lie exactly at, or one rounding from, the radius.
    positions = rng.integers(0, 5, (40, dims)) * 0.25 * scale
    points = positions + rng.integers(-1, 2, (40, dims)) * 0.25 * scale
    search = HashGridNeighbors(positions, cell * scale)
    for reach in (radius * scale, 0.25 * scale):
        found = sets(search.query_many(points, reach)[0])
        assert found == naive_neighbors(positions, points, reach)


def test_the_memory_limit_does_not_change_the_answer():
    positions = clustered(300, 3)
    search = HashGridNeighbors(positions, 0.5)
    whole = search.query_many(positions, 0.5)
    parts = search.query_many(positions, 0.5, memory_limit_gb=1e-5)
    np.testing.assert_array_equal(whole, parts)


def test_a_far_particle_costs_nothing_and_hides_nobody():
    positions = np.concatenate([clustered(50, 3), [[1e12, 0, -1e12]]])
    search = HashGridNeighbors(positions, 0.1)
    found = sets(search.query_many(positions, 0.1)[0])
    assert found == naive_neighbors(positions, positions, 0.1)
    found = sets(search.query_many([[np.nan, 0, 0], [np.inf, 0, 0]], 0.1)[0])
    assert found == [set(), set()]


def test_absorbed_particles_are_nobodys_neighbors():
    positions = np.array([[0, 0], [np.nan, np.nan], [1, 0], [0.1, 0]])
    indices, distances = HashGridNeighbors(positions, 1.0).query_many([[0, 0]], 0.5)
    assert indices.tolist() == [[0, 3]]
    np.testing.assert_allclose(distances, [[0, 0.1]], rtol=1e-6)


def test_no_neighbors_at_all():
    search = HashGridNeighbors([[0.0, 0.0]], 1.0)
    assert search.query_many([[5.0, 5.0]], 1.0)[0].shape == (1, 0)
    assert search.query_many(np.zeros((0, 2)), 1.0)[0].shape == (0, 0)


def test_limits_of_the_user_raise_with_the_number_found():
    positions = np.zeros((7, 2)) + np.arange(7)[:, None] * 0.01
    search = HashGridNeighbors(positions, 1.0, per_cell_cap=7)
    with pytest.raises(ValueError, match=r"has 7 neighbors.*max_neighbors is 5"):
        search.query_many(positions, 1.0, max_neighbors=5)
    indices, distances = search.query_many([[0.0, 0.0]], 0.02, max_neighbors=4)
    assert indices.tolist() == [[0, 1, -1, -1]]
    assert distances[0, 2:].tolist() == [np.inf, np.inf]
    with pytest.raises(ValueError, match="cell holds 7 particles"):
        HashGridNeighbors(positions, 1.0, per_cell_cap=6)


def test_distances_have_the_dtype_of_the_positions():
    positions = clustered(10, 2)
    narrow = HashGridNeighbors(positions.astype(np.float32), 1.0)
    assert narrow.query_many(positions, 1.0)[1].dtype == np.float32
    with jax.enable_x64(True):
        wide = HashGridNeighbors(positions, 1.0)
        assert wide.query_many(positions, 1.0)[1].dtype == np.float64


@pytest.mark.parametrize("dims", [2, 3])
def test_ranges_hold_every_neighbor_once(dims):
    positions = clustered(80, dims)
    grid = CellGrid(positions, 0.2)
    starts, counts = grid.ranges(positions)
    expected = naive_neighbors(positions, positions, 0.2)
    for row in range(len(positions)):
        held = [
            grid.order[s : s + c] for s, c in zip(starts[row], counts[row], strict=True)
        ]
        held = np.concatenate(held).tolist()
        assert len(held) == len(set(held))
        assert expected[row] <= set(held)


def test_wrong_use_raises():
    with pytest.raises(ValueError, match="cell_size is 0"):
        HashGridNeighbors(np.zeros((3, 2)), 0.0)
    with pytest.raises(ValueError, match=r"shape \(3, 4\)"):
        HashGridNeighbors(np.zeros((3, 4)), 1.0)
    with pytest.raises(ValueError, match="none of the 2 positions"):
        HashGridNeighbors(np.full((2, 3), np.nan), 1.0)
    search = HashGridNeighbors(np.zeros((3, 2)), 1.0)
    with pytest.raises(ValueError, match="radius is -1"):
        search.query_many(np.zeros((1, 2)), -1.0)
    with pytest.raises(ValueError, match="3 columns, positions 2"):
        search.query_many(np.zeros((1, 3)), 1.0)
