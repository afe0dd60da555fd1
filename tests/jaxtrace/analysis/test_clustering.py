import numpy as np
import pytest

from jaxtrace.analysis import cluster_points

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


@pytest.mark.parametrize(("count", "n_clusters"), [(9, 0), (0, 3)])
def test_nothing_to_cluster_is_refused(count, n_clusters):
    with pytest.raises(ValueError, match="at least one each"):
        cluster_points(np.zeros((count, 3)), n_clusters)
