import numpy as np
import pytest

from jaxtrace.analysis.mixing import close_pairs, start_separations
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import uniform

SEEDS = np.random.default_rng(5).random((60, 3))


def naive_pairs(points, radius, period):
    found = []
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            apart = points[j] - points[i]
            length = np.where(period > 0, period, 1)
            apart -= np.where(period > 0, length * np.round(apart / length), 0)
            if 0 < np.linalg.norm(apart) < radius:
                found.append((i, j))
    return found


@pytest.mark.parametrize("period", [(0, 0, 0), (1, 1, 1), (1, 0, 0)])
def test_all_pairs_within_the_radius_are_found(period):
    trajectory = uniform([0, 0, 0], SEEDS, [0.0, 1.0], period)
    pairs = close_pairs(trajectory, radius=0.2, neighbors=60)
    assert list(map(tuple, pairs)) == naive_pairs(SEEDS, 0.2, np.array(period))
    apart = np.linalg.norm(start_separations(trajectory, pairs), axis=-1)
    assert (apart < 0.2).all()


def test_periodic_seeds_may_lie_anywhere():
    seeds = np.array([[-0.01, 5, 0], [1.0, 5, 0], [0.5, 5, 0]])
    trajectory = Trajectory(seeds[None], [0.0], metadata={"period": (1, 0, 0)})
    np.testing.assert_array_equal(close_pairs(trajectory, 0.1, 2), [[0, 1]])


def test_neighbors_bound_the_number_of_pairs():
    trajectory = uniform([0, 0, 0], SEEDS, [0.0, 1.0])
    assert len(close_pairs(trajectory, np.inf, 2)) <= 2 * len(SEEDS)


def test_absent_and_coincident_particles_make_no_pairs():
    seeds = np.array([[0, 0, 0], [np.nan] * 3, [0, 0, 0], [0.1, 0, 0]])
    trajectory = Trajectory(seeds[None], [0.0])
    np.testing.assert_array_equal(close_pairs(trajectory, 1.0, 3), [[0, 3], [2, 3]])
    assert close_pairs(trajectory[:, :1], 1.0, 3).shape == (0, 2)
