"""Densities per area of a sphere, against closed forms."""

import jax
import numpy as np
import pytest

from jaxtrace.analysis import KDEEstimator
from jaxtrace.analysis.density import (
    cell_areas,
    count_per_area,
    density_per_area,
)
from jaxtrace.sphere import EARTH_RADIUS
from jaxtrace.tracking.seeding import random_seeds

LON, LAT = np.linspace(-180, 180, 181), np.linspace(-90, 90, 91)
MIDDLES = [(edges[1:] + edges[:-1]) / 2 for edges in (LON, LAT)]
GRID = np.stack(np.meshgrid(*MIDDLES, indexing="ij"), -1).reshape(-1, 2)
# Over a pole, over the date line, and anywhere.
CLOUD = np.concatenate([[[10.0, 89.0], [179.5, 0.0], [-60.0, 35.0]], GRID[::4001]])


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def test_areas_are_those_of_the_sphere():
    areas = cell_areas(LON, LAT)
    assert areas.sum() == pytest.approx(4 * np.pi * EARTH_RADIUS**2, rel=1e-12)
    one = cell_areas([10.0, 11.0], [59.5, 60.5])[0, 0]
    assert one == pytest.approx(111195.080**2 * 0.5, rel=1e-4)
    with pytest.raises(ValueError, match="lon_edges must rise, over 360"):
        cell_areas([0, 400], LAT)


def test_counts_lose_nobody_and_are_even_for_even_seeds():
    seeds = random_seeds(200_000, [[0, -90, 0], [360, 90, 0]], geometry="sphere")
    lon, lat = np.linspace(-180, 180, 7), np.linspace(-90, 90, 7)
    found = count_per_area(seeds, lon, lat)
    assert (found * cell_areas(lon, lat)).sum() == 200_000
    even = 200_000 / (4 * np.pi * EARTH_RADIUS**2)
    error = 5 / np.sqrt(even * cell_areas(lon, lat))
    assert (np.abs(found / even - 1) < error).all()
    gone = np.concatenate([CLOUD, [[np.nan, 0.0]]])
    assert (count_per_area(gone, lon, lat) * cell_areas(lon, lat)).sum() == len(CLOUD)


@pytest.mark.parametrize("bandwidth", [6e5, 2e6, 2e7])
def test_kernels_integrate_to_the_number_of_particles(bandwidth):
    density = density_per_area(CLOUD, GRID, bandwidth)
    total = (density * cell_areas(LON, LAT).ravel()).sum()
    assert total == pytest.approx(len(CLOUD), rel=2e-3)


def test_a_rotation_of_everything_changes_nothing():
    def turned(places):
        """Turn by 90 degrees about the x axis: the pole goes to the equator."""
        lon, lat = np.radians(places).T
        y, z = np.cos(lat) * np.sin(lon), np.sin(lat)
        x = np.cos(lat) * np.cos(lon)
        return np.degrees(np.stack([np.arctan2(-z, x), np.arcsin(y)], 1))

    points = GRID[::777]
    before = density_per_area(CLOUD, points, 8e5)
    after = density_per_area(turned(CLOUD), turned(points), 8e5)
    np.testing.assert_allclose(after, before, rtol=1e-6)
    turn = np.array([360.0, 0.0])
    shifted = density_per_area(CLOUD + turn, points - turn, 8e5)
    np.testing.assert_allclose(shifted, before, rtol=1e-9)


def test_a_small_cloud_is_that_of_the_plane():
    """A cloud of some kilometers at 60 degrees north, against its map in meters."""
    meters = np.random.default_rng(0).normal(0, 5e3, (300, 2))
    degree = np.radians(1) * EARTH_RADIUS
    places = np.array([20.0, 60.0]) + meters / (degree * np.array([0.5, 1.0]))
    flat = KDEEstimator(meters, 2e3)
    found = density_per_area(places, places[:50], 2e3)
    np.testing.assert_allclose(found, 300 * flat.evaluate(meters[:50]), rtol=2e-2)
    # Scott's rule on distances is that of the plane, but for the mean over axes.
    by_rule = density_per_area(places, places[:50])
    wanted = 300 * KDEEstimator(meters).evaluate(meters[:50])
    np.testing.assert_allclose(by_rule, wanted, rtol=2e-2)


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="bandwidth is 0"):
        density_per_area(CLOUD, GRID, 0.0)
    with pytest.raises(ValueError, match=r"shape \(1, 4\)"):
        density_per_area([[1.0, 2, 3, 4]], GRID, 1.0)
