import numpy as np
import pytest

from jaxtrace.analysis import analyze_particle_clustering, cluster_points
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import absorbing_channel

CENTERS = np.array([[0, 0, 0], [5, 0, 0], [0, 5, 0], [0, 0, 5], [5, 5, 5]], float)


def blobs(seed=0, size=40, scale=1.0):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(5), size)
    return scale * (CENTERS[owner] + rng.normal(size=(5 * size, 3)) * 0.2), owner


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e5])
def test_separated_blobs_are_found(scale):
    points, owner = blobs(scale=scale)
    centers, labels = cluster_points(points, 5)
    means = np.stack([points[owner == i].mean(axis=0) for i in range(5)])
    for i in range(5):
        (label,) = np.unique(labels[owner == i])
        np.testing.assert_allclose(centers[label], means[i])


def test_the_same_seed_gives_the_same_clusters():
    points = np.random.default_rng(1).random((200, 3))
    first, second = cluster_points(points, 7), cluster_points(points, 7)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_every_point_is_with_its_nearest_center_and_centers_are_means():
    points = np.random.default_rng(2).random((300, 3))
    centers, labels = cluster_points(points, 6)
    distance = np.linalg.norm(points[:, None] - centers, axis=-1)
    np.testing.assert_array_equal(labels, distance.argmin(axis=1))
    for i in range(6):
        np.testing.assert_allclose(centers[i], points[labels == i].mean(axis=0))


def test_fewer_places_than_clusters():
    points = np.repeat(np.eye(3), 4, axis=0)
    centers, labels = cluster_points(points, 5)
    assert len(centers) == 3
    np.testing.assert_allclose(centers[labels], points)


def test_a_cloud_that_moves_as_one_keeps_its_clusters():
    points, _ = blobs()
    drift = np.linspace(0, 10, 5)[:, None, None]
    trajectory = Trajectory(points + drift, np.arange(5.0))
    result = analyze_particle_clustering(trajectory)
    assert result["available"]
    assert result["cluster_stability"] == 1.0
    assert [result[name]["frame"] for name in ("initial", "middle", "final")] == [
        0,
        2,
        4,
    ]
    for name in ("initial", "middle", "final"):
        assert result[name]["cluster_sizes"].tolist() == [40] * 5
        assert result[name]["cluster_size_variance"] == 0
        assert 0 < result[name]["mean_intra_distance"] < 0.5


def test_a_shuffled_cloud_loses_its_clusters():
    points, _ = blobs()
    shuffled = np.random.default_rng(3).permutation(points)
    trajectory = Trajectory(np.stack([points, shuffled]), [0, 1])
    assert analyze_particle_clustering(trajectory)["cluster_stability"] < 0.5


def test_absent_particles_have_no_cluster():
    starts, times = np.linspace(0, 0.95, 20), np.linspace(0, 2, 41)
    trajectory = absorbing_channel(1.0, 1.0, starts, times)
    result = analyze_particle_clustering(trajectory, n_clusters=3)
    final = result["final"]
    assert final["frame"] == np.nonzero(trajectory.alive.any(axis=1))[0][-1]
    np.testing.assert_array_equal(
        final["cluster_labels"] < 0, ~trajectory.alive[final["frame"]]
    )
    assert final["n_clusters"] == 1
    assert np.isfinite(result["cluster_stability"])


@pytest.mark.parametrize("n_clusters", [0, 201])
def test_a_number_of_clusters_that_cannot_be_is_refused(n_clusters):
    trajectory = Trajectory(blobs()[0][None], [0.0])
    with pytest.raises(ValueError, match="1 to 200"):
        analyze_particle_clustering(trajectory, n_clusters)


def test_nobody_alive_is_refused():
    with pytest.raises(ValueError, match="nothing to group"):
        analyze_particle_clustering(Trajectory(np.full((2, 9, 3), np.nan), [0, 1]))
