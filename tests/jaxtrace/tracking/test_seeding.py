"""Counts, places and statistics of seeds on shapes, at several scales."""

import itertools
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.compile_cache import record_compilations
from jaxtrace.config import configure, reset_config
from jaxtrace.fields.curved_grid import CurvilinearGrid
from jaxtrace.fields.curvilinear import make_curvilinear_field
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.sphere import EARTH_RADIUS
from jaxtrace.tracking.boundaries.box import periodic_boundary
from jaxtrace.tracking.seeding import (
    as_seeds,
    boundary_seeds,
    circle_seeds,
    custom_distribution_seeds,
    gaussian_cluster_seeds,
    line_seeds,
    random_seeds,
    sphere_seeds,
    uniform_grid_seeds,
    warn_of_seeds,
)

BOX = np.array([[0.0, -1.0, 2.0], [4.0, 1.0, 3.0]])
SCALES = [1e-9, 1.0, 1e7]


def inside(seeds, bounds):
    lo, hi = np.asarray(bounds, np.float64).astype(seeds.dtype)
    return ((seeds >= lo) & (seeds <= hi)).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda n: random_seeds(n, BOX),
        lambda n: line_seeds([0, 0], [1, 1], n),
        lambda n: circle_seeds([0, 0], 1, n),
        lambda n: sphere_seeds([0, 0, 0], 1, n),
        lambda n: boundary_seeds(BOX, n),
        lambda n: gaussian_cluster_seeds([[0, 0, 0]], 1.0, n),
        lambda n: uniform_grid_seeds((n, 2, 2), BOX),
    ],
)
def test_none_asked_for_none_given(make):
    for n in (0, -3):
        seeds = make(n)
        assert seeds.shape == (0, 3)
        assert seeds.dtype == np.float32


def test_seeds_come_in_the_working_dtype():
    configure(dtype="float64")
    try:
        assert random_seeds(2, BOX).dtype == np.float64
        assert uniform_grid_seeds(2, BOX).dtype == np.float64
        assert random_seeds(2, BOX, dtype=np.float32).dtype == np.float32
    finally:
        reset_config()


def test_the_documented_grid():
    seeds = uniform_grid_seeds(
        resolution=(30, 25, 10), bounds=[BOX[0], BOX[1]], include_boundaries=True
    )
    assert seeds.shape == (7500, 3)
    axes = [np.linspace(BOX[0, a], BOX[1, a], n) for a, n in enumerate((30, 25, 10))]
    expected = list(itertools.product(*axes))  # x slowest, z fastest
    np.testing.assert_allclose(seeds, expected, rtol=1e-6)


@pytest.mark.parametrize("resolution", [2.5, (3, 4.5), (1, 2, 3, 4)])
def test_counts_are_whole_numbers(resolution):
    with pytest.raises(ValueError, match="one, two or three whole numbers"):
        uniform_grid_seeds(resolution, BOX)


def test_a_grid_inside():
    seeds = uniform_grid_seeds((3, 1, 2), BOX, include_boundaries=False)
    expected = list(itertools.product([1, 2, 3], [0], [2 + 1 / 3, 2 + 2 / 3]))
    np.testing.assert_allclose(seeds, expected, rtol=1e-6)


@pytest.mark.parametrize("include", [True, False])
def test_a_single_layer_lies_at_the_lower_end(include):
    flat = uniform_grid_seeds((4, 3), BOX, include)
    assert len(flat) == 12
    assert set(flat[:, 2]) == {2}
    np.testing.assert_array_equal(flat, uniform_grid_seeds((4, 3, 1), BOX, include))


def test_grids_in_two_dimensions_and_on_flat_boxes():
    assert uniform_grid_seeds(5, [0, 1, 0, 2]).shape == (25, 3)
    planar = uniform_grid_seeds(5, [[0, 0, 7], [1, 1, 7]])
    assert planar.shape == (25, 3)
    assert set(planar[:, 2]) == {7}
    with pytest.warns(UserWarning, match="zero length along z, so its 4 layers"):
        assert len(uniform_grid_seeds((2, 2, 4), [[0, 0, 7], [1, 1, 7]])) == 16


@pytest.mark.parametrize("scale", SCALES)
def test_random_seeds_fill_the_box(scale):
    seeds = random_seeds(4000, BOX * scale, rng_seed=1)
    assert inside(seeds, BOX * scale)
    unit = (seeds.astype(np.float64) / scale - BOX[0]) / (BOX[1] - BOX[0])
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=0.03)
    np.testing.assert_allclose(unit.var(axis=0), 1 / 12, atol=0.01)


def test_random_seeds_depend_on_their_seed_only():
    np.testing.assert_array_equal(random_seeds(9, BOX), random_seeds(9, BOX, 0))
    assert not np.array_equal(random_seeds(9, BOX), random_seeds(9, BOX, 1))
    assert set(random_seeds(9, [[0, 1], [0, 2]])[:, 2]) == {0}


def test_lines():
    seeds = line_seeds([0, 0, 1], [2, 4, 1], 5)
    np.testing.assert_allclose(
        seeds, [[0, 0, 1], [0.5, 1, 1], [1, 2, 1], [1.5, 3, 1], [2, 4, 1]]
    )
    np.testing.assert_array_equal(line_seeds([1, 2], [3, 4], 1), [[1, 2, 0]])
    with pytest.raises(ValueError, match="2 or 3 coordinates"):
        line_seeds([1, 2, 3, 4], [0, 0], 2)


@pytest.mark.parametrize(("plane", "normal"), [("xy", 2), ("xz", 1), ("yz", 0)])
def test_circles(double, plane, normal):
    center = np.array([1.0, 2.0, 3.0])
    seeds = circle_seeds(center, 2.0, 8, plane, 0.5)
    np.testing.assert_allclose(np.linalg.norm(seeds - center, axis=1), 2)
    np.testing.assert_array_equal(seeds[:, normal], center[normal])
    gaps = np.linalg.norm(seeds - np.roll(seeds, 1, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 4 * np.sin(np.pi / 8))  # equal, the last too
    first = np.delete(seeds[0] - center, normal)
    np.testing.assert_allclose(first, [2 * np.cos(0.5), 2 * np.sin(0.5)])


def test_wrong_circles():
    with pytest.raises(ValueError, match="xy, xz, yz"):
        circle_seeds([0, 0], 1, 3, "zz")
    with pytest.raises(ValueError, match="radius=-1"):
        circle_seeds([0, 0], -1, 3)


@pytest.mark.parametrize("scale", SCALES)
def test_spheres(double, scale):
    center = np.array([1.0, 2.0, 3.0]) * scale
    ball = sphere_seeds(center, 2 * scale, 4000, rng_seed=3)
    radius = np.linalg.norm(ball - center, axis=1) / (2 * scale)
    assert radius.max() <= 1 + 1e-9
    np.testing.assert_allclose((radius**3).mean(), 0.5, atol=0.02)  # even in volume
    shell = sphere_seeds(center, 2 * scale, 4000, "surface", 3)
    directions = (shell - center) / (2 * scale)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    np.testing.assert_allclose(directions.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose((directions**2).mean(axis=0), 1 / 3, atol=0.02)
    again = sphere_seeds(center, 2 * scale, 4000, rng_seed=4)
    assert not np.array_equal(ball, again)
    with pytest.raises(ValueError, match="uniform, surface"):
        sphere_seeds(center, 1.0, 3, "middle")


@pytest.mark.parametrize("scale", SCALES)
def test_the_boundary_of_a_box_is_covered_evenly(double, scale):
    bounds = BOX * scale
    seeds = boundary_seeds(bounds, 6000, 5)
    lo, hi = bounds
    on_face = np.concatenate([seeds == lo, seeds == hi], axis=1)
    assert on_face.any(axis=1).all()
    assert inside(seeds, bounds)
    x, y, z = hi / scale - lo / scale
    areas = np.array([y * z, x * z, x * y] * 2)
    np.testing.assert_allclose(on_face.mean(axis=0), areas / areas.sum(), atol=0.02)


def test_the_boundary_of_a_rectangle_is_its_edge():
    seeds = boundary_seeds([0, 3, 0, 1], 2000)
    x, y = seeds[:, 0], seeds[:, 1]
    short = (x == 0) | (x == 3)
    assert (short | (y == 0) | (y == 1)).all()
    assert abs(short.mean() - 0.25) < 0.03  # 2 of 8 lengths
    assert set(seeds[:, 2]) == {0}
    point = [[1, 1, 1], [1, 1, 1]]
    np.testing.assert_array_equal(boundary_seeds(point, 2), [[1] * 3] * 2)


def test_boundaries_of_other_things(double):
    class Domain:
        def get_spatial_bounds(self):
            return BOX[0], BOX[1]

    np.testing.assert_array_equal(boundary_seeds(Domain(), 5), boundary_seeds(BOX, 5))
    ball = {"center": [0, 0, 0], "radius": 2.0}
    shell = boundary_seeds(ball, 5)
    np.testing.assert_allclose(np.linalg.norm(shell, axis=1), 2)
    with pytest.raises(ValueError, match="'center' and 'radius'"):
        boundary_seeds({"middle": 0}, 5)


def test_clusters(double):
    centers = np.array([[0.0, 0, 0], [10, 20, 30]])
    seeds = gaussian_cluster_seeds(centers, [1.0, 2.0], 3000, 1)
    clouds = seeds.reshape(2, 3000, 3)
    np.testing.assert_allclose(clouds.mean(axis=1), centers, atol=0.15)
    np.testing.assert_allclose(clouds[0].std(axis=0), 1, atol=0.05)
    np.testing.assert_allclose(clouds[1].std(axis=0), 2, atol=0.1)
    stretched = gaussian_cluster_seeds([[0, 0, 0]], [[1, 0, 3]], 500)
    assert set(stretched[:, 1]) == {0}
    assert stretched[:, 2].std() > 2 * stretched[:, 0].std()
    plane = gaussian_cluster_seeds([[0, 0], [5, 5]], 1.0, 4)
    assert plane.shape == (8, 3)
    assert set(plane[:, 2]) == {0}
    with pytest.raises(ValueError, match="one per center"):
        gaussian_cluster_seeds(centers, [1, 2, 3], 4)
    with pytest.raises(ValueError, match="not be negative"):
        gaussian_cluster_seeds(centers, -1.0, 4)


def test_rows_become_seeds():
    np.testing.assert_array_equal(as_seeds([1, 2]), [[1, 2, 0]])
    assert as_seeds([]).shape == (0, 3)
    with pytest.raises(ValueError, match=r"shape \(2, 4\)"):
        as_seeds(np.ones((2, 4)))


UNIT = [[0, 0, 0], [1, 1, 1]]


def test_a_density_is_followed():
    seeds = custom_distribution_seeds(UNIT, 6000, lambda x: x[:, 0] ** 2, rng_seed=1)
    assert seeds.shape == (6000, 3)
    # Density 3 x^2: mean 3/4, mean square 3/5; even along y and z.
    np.testing.assert_allclose(seeds[:, 0].mean(), 0.75, atol=0.01)
    np.testing.assert_allclose((seeds[:, 0] ** 2).mean(), 0.6, atol=0.01)
    np.testing.assert_allclose(seeds[:, 1:].mean(axis=0), 0.5, atol=0.02)


def test_a_peak_that_the_probes_miss_is_not_cut_off():
    narrow, met = 5e-4, []

    def pdf(x):
        peak = x[:, 0] < narrow
        met.append(peak.any())
        return 1.0 + peak / narrow

    seeds = custom_distribution_seeds(UNIT, 3000, pdf, 3000, rng_seed=6)
    assert met[:3] == [False, False, True]  # so that seeds taken are thinned
    assert abs((seeds[:, 0] < narrow).mean() - 0.5) < 0.04


def test_what_cannot_be_reached_is_said():
    tiny = lambda x: (x < 1e-3).all(axis=1).astype(float)
    with pytest.raises(ValueError, match=r"only 0 of 10 seeds .* in 3 rounds"):
        custom_distribution_seeds(UNIT, 10, tiny, max_iterations=3)
    with pytest.raises(ValueError, match="one density per row"):
        custom_distribution_seeds(UNIT, 10, lambda x: x)
    with pytest.raises(ValueError, match="not negative"):
        custom_distribution_seeds(UNIT, 10, lambda x: x[:, 0] - 0.5)
    assert custom_distribution_seeds(UNIT, 0, tiny).shape == (0, 3)


def test_seeds_among_cells_are_checked_without_a_search():
    lon, lat = np.meshgrid(np.arange(5.0), np.arange(4.0))
    grid = CurvilinearGrid(lon, lat, np.zeros(1), EARTH_RADIUS)
    field = make_curvilinear_field(grid, np.zeros((*lon.shape, 1, 3), np.float32))
    seeds = jnp.asarray([[1.5, 1.5, 0.0], [9.0, 9.0, 0.0]])
    with record_compilations() as log:
        warn_of_seeds(field, seeds)
    assert log.compilations == []


@pytest.mark.parametrize("rule", ["clamp", "zero", "periodic"])
def test_seeds_outside_of_flat_data_are_named(rule):
    axis = np.linspace(0, 1, 3)
    values, axes = np.ones((3, 3, 1, 3)), (axis, axis, np.zeros(1))
    field = make_grid_field(values, axes, outside=rule)
    seeds = jnp.asarray([[0.5, 0.5, 9.0], [1.000001, 0.0, 0.0], [0.5, 500.0, 0.0]])
    told = r"1 of 3 seeds are outside the data, the first at \[0\.5, 500\.0, 0\.0\]"
    saying = pytest.warns(match=f"{told}: they move as outside='{rule}' says")
    with nullcontext() if rule == "periodic" else saying:
        warn_of_seeds(field, seeds)
    warn_of_seeds(field, seeds, periodic_boundary([[0, 0], [1, 1]]).wrap)


def test_data_far_from_the_origin_are_said_to_need_more_digits():
    axis = np.linspace(0, 1e4, 3)
    values, north = np.ones((3, 3, 1, 3)), axis + 5.4e6
    field = make_grid_field(values, (axis + 5e5, north, np.zeros(1)))
    seeds = np.array([[5.01e5, 5.401e6, 0.0]])
    with pytest.warns(match=r"y from 5\.4e\+06 to .* rounded to 0\.64 in float32"):
        warn_of_seeds(field, jnp.asarray(seeds, np.float32))
    with jax.enable_x64(True):
        warn_of_seeds(field, jnp.asarray(seeds, np.float64))
