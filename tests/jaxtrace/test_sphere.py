"""Tracking on the sphere, against closed forms (R = 6,371,008.8 m)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.analysis.flow_maps import Advection, FlowMap, ftle
from jaxtrace.analysis.statistics import cloud_spread
from jaxtrace.fields import StructuredGridSampler, UniformFlow, as_field
from jaxtrace.fields.analytic import AnalyticFlow, parameter
from jaxtrace.fields.grid import hold_levels, make_axis, make_grid_field
from jaxtrace.sphere import EARTH_RADIUS, angle, great_circle, sine
from jaxtrace.tracking.motion import Diffusion, Inertial
from jaxtrace.tracking.seeding import random_seeds
from jaxtrace.tracking.simulation import simulate
from jaxtrace.tracking.tracker import create_tracker
from jaxtrace.trajectory import Trajectory
from jaxtrace.types import ParticleStatus
from trace_runs import end

DAY = 86400.0
PERIOD = 12 * DAY
SPEED = 2 * np.pi * EARTH_RADIUS / PERIOD
SEEDS = np.array(
    [[0, 0, 0], [170, 30, 0], [-100, -60, 0], [45, 88, 0], [0, 90, 0], [3, -89.99, -5]]
)


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


class TiltedRotation(AnalyticFlow):
    """Solid rotation about an axis tilted by so many degrees, and a jet eastward."""

    tilt: Any = parameter(0.0)
    share: Any = parameter(1.0)  # of the rotation
    jet: Any = parameter(0.0)  # m/s

    def formula(self, x, y, z, t):
        lon, lat, tilt = (jnp.radians(angle) for angle in (x, y, self.tilt))
        u = jnp.cos(lat) * jnp.cos(tilt) + jnp.sin(lat) * jnp.cos(lon) * jnp.sin(tilt)
        speed = SPEED * self.share
        return speed * u + self.jet, -speed * jnp.sin(lon) * jnp.sin(tilt), 0


def rotation(tilt):
    return as_field(TiltedRotation(tilt), geometry="sphere")


@functools.partial(jax.jit, static_argnames=("times", "options"))
def _run(field, seeds, times, options):
    return simulate(field, seeds, np.array(times), **dict(options))


def run(field, seeds, times, **options):
    """Paths by one program for all fields of a kind."""
    options = tuple(options.items())
    return _run(as_field(field), jnp.asarray(seeds), tuple(times), options)


@pytest.mark.parametrize("tilt", [0.0, 85.0, 90.0])
def test_solid_rotation_returns_over_the_poles(double, tilt):
    paths = run(rotation(tilt), SEEDS, np.linspace(0, PERIOD, 3), substeps=576)
    ends = np.asarray(paths.positions)
    # 1e-10 of the radius is 0.6 mm, after a way of 40,000 km.
    assert great_circle(ends[-1], SEEDS).max() < 1e-10 * EARTH_RADIUS
    np.testing.assert_array_equal(ends[-1, :, 2], SEEDS[:, 2])
    assert ((ends[:, :, 0] >= -180) & (ends[:, :, 0] < 180)).all()
    half = great_circle(ends[1], SEEDS)
    axis = np.array([-np.sin(np.radians(tilt)), 0, np.cos(np.radians(tilt))])
    around = np.arccos(np.clip(unit(SEEDS) @ axis, -1, 1))
    expected = 2 * np.minimum(around, np.pi - around) * EARTH_RADIUS
    np.testing.assert_allclose(half, expected, atol=1.0)


def unit(positions):
    lon, lat = np.radians(positions[:, 0]), np.radians(positions[:, 1])
    parts = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return np.stack(parts, 1)


def test_single_precision_keeps_the_remainder():
    paths = run(
        rotation(85.0), np.float32(SEEDS), np.linspace(0, PERIOD, 2), substeps=3456
    )
    # Without the remainder of each sum this is 25 m off, and more with shorter steps.
    assert great_circle(np.asarray(paths.positions)[-1], SEEDS).max() < 5.0


def test_adaptive_steps_hold_their_error_in_meters(double):
    paths = run(rotation(90.0), SEEDS, np.linspace(0, PERIOD, 13), tolerance=1e-9)
    assert great_circle(np.asarray(paths.positions)[-1], SEEDS).max() < 1.0


def test_a_jet_follows_its_parallel_and_comes_back(double):
    jet = as_field(UniformFlow(u=10.0), geometry="sphere")
    start = np.array([[170.0, 80.0, 0.0]])
    paths = run(jet, start, np.array([0.0, DAY, 0.0]), substeps=24)
    east, back = np.asarray(paths.positions)[1:, 0]
    assert east[0] + 360 - 170 == pytest.approx(44.746383446, abs=3e-7)
    assert east[1] == pytest.approx(80.0, abs=2e-9)
    assert great_circle(back, start[0]) < 1e-3


def test_the_stream_function_is_conserved(double):
    rate = 7.848e-6  # of the frozen Rossby-Haurwitz wave number 4, per second

    def velocity(positions, t):
        lon, lat = (jnp.radians(positions[:, c]) for c in (0, 1))
        c, s = jnp.cos(lat), jnp.sin(lat)
        u = c + c**3 * (4 * s * s - c * c) * jnp.cos(4 * lon)
        v = -4 * c**3 * s * jnp.sin(4 * lon)
        return EARTH_RADIUS * rate * jnp.stack([u, v], 1)

    def stream(positions):
        lon, lat = np.radians(positions[:, 0]), np.radians(positions[:, 1])
        return -np.sin(lat) + np.cos(lat) ** 4 * np.sin(lat) * np.cos(4 * lon)

    draw = np.random.default_rng(0)
    lat = np.degrees(np.arcsin(draw.uniform(-1, 1, 300)))
    seeds = np.stack([draw.uniform(-180, 180, 300), lat, 0 * lat], 1)
    field = as_field(velocity, geometry="sphere")
    paths = run(field, seeds, np.array([0.0, 10 * DAY]), substeps=480)
    before, after = (stream(np.asarray(p)) for p in paths.positions)
    assert np.abs(after - before).max() / np.ptp(before) < 1e-7


def test_a_meter_per_second_along_parallels_and_meridians(double):
    """1 m/s for two hours at every latitude: ut / (R cos lat) and vt / R."""
    lat = np.linspace(0, 80, 9)
    seeds, hours = np.stack([0 * lat + 5, lat, 0 * lat], 1), 2 * 3600.0
    # As many nodes, instants and seeds as in the next test: one program for both.
    axes = (np.linspace(0, 10, 41), np.linspace(-10, 85, 71), np.zeros(1))
    degrees = np.degrees(hours / EARTH_RADIUS)
    for flow, way in ((0, degrees / np.cos(np.radians(lat))), (1, 0 * lat + degrees)):
        values = np.zeros((5, 41, 71, 1, 2))
        values[..., flow] = 1.0
        days = np.linspace(0, DAY, 5)
        field = make_grid_field(values, axes, days, radius=EARTH_RADIUS)
        found = end(field, seeds, np.linspace(0, hours, 289))
        wanted = seeds.copy()
        wanted[:, flow] += way
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_two_moving_eddies_forward_and_back(double):
    """Gaussian eddies that drift at 0.1 m/s; a day there and back, steps of 5 min."""
    lon, lat = np.linspace(0, 4, 41), np.linspace(45, 52, 71)
    times, degree = np.linspace(0, DAY, 5), np.radians(1) * EARTH_RADIUS
    across = np.cos(np.radians(lat))[None]
    values = np.zeros((5, 41, 71, 1, 2))
    for index, t in enumerate(times):
        psi = np.zeros((41, 71))
        for x, y, sign in ((1.0, 47.0, 1), (3.0, 50.0, -1)):
            east = (lon[:, None] - x - 0.1 * t / degree) * across
            north = lat[None] - y + sign * 0.1 * t / degree
            psi += sign * 3e4 * np.exp(-(east**2 + north**2) / (2 * 0.5**2))
        values[index, ..., 0, 0] = -np.gradient(psi, lat, axis=1) / degree
        values[index, ..., 0, 1] = np.gradient(psi, lon, axis=0) / (degree * across)
    field = make_grid_field(values, (lon, lat, np.zeros(1)), times, radius=EARTH_RADIUS)
    seeds = np.array([[1.3, 47.2, 0], [2.8, 49.6, 0], [2.0, 48.5, 0], [3.4, 50.2, 0]])
    seeds = np.concatenate([seeds, 0.99 * seeds + [0, 0.5, 0], seeds[:1]])
    clock = np.linspace(0, DAY, 289)
    there = end(field, seeds, clock)
    back = end(field, there, clock[::-1])
    assert great_circle(there, seeds).min() > 1e3
    np.testing.assert_allclose(back, seeds, atol=1e-7)


@pytest.mark.parametrize(
    ("one", "other", "meters"),
    [
        ((0, 0), (90, 0), 10007557.221),
        ((0, 0), (180, 0), 20015114.442),
        ((0, 60), (180, 60), 6671704.814),
        ((179, 0), (-179, 0), 222390.160),
        ((0, 89.9), (180, 89.9), 22239.016),
        ((10, 50), (10.0001, 50), 7.147482),
    ],
)
def test_great_circles(one, other, meters):
    assert great_circle(one, other) == pytest.approx(meters, abs=6e-4)


def test_angles_are_those_of_the_library(double):
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(2, 1000)) * 10.0 ** draw.uniform(-9, 0, (2, 1000))
    expected = np.degrees(np.arctan2(y, x))
    for dtype, digits in (("float32", 3e-7), ("float64", 1e-15)):
        found = jax.jit(angle)(jnp.asarray(y, dtype), jnp.asarray(x, dtype))
        np.testing.assert_allclose(found, expected, rtol=digits)
        latitudes = np.linspace(-90, 90, 181)
        found = jax.jit(sine)(jnp.asarray(latitudes, dtype))
        np.testing.assert_allclose(
            found, np.sin(np.radians(latitudes)), rtol=digits, atol=1e-17
        )
    assert float(jax.jit(angle)(jnp.zeros(1000), jnp.zeros(1000))[0]) == 0


LONGITUDES, LATITUDES = np.arange(0, 360, 5.0), np.arange(-87.5, 90, 5.0)


def grid(shift=0.0, roll=0, lat=LATITUDES, lon=LONGITUDES):
    field = rotation(85.0)
    x, y = np.meshgrid(lon, lat, indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], 1)
    values = np.asarray(field(points)).reshape(lon.size, lat.size, 1, 3)
    lon = np.roll(lon, -roll) + np.where(np.arange(lon.size) >= lon.size - roll, 360, 0)
    return StructuredGridSampler(
        np.roll(values, -roll, 0), lon + shift, lat, [0.0], geometry="sphere"
    )


def test_a_grid_closes_by_itself_and_is_held_to_the_poles(double):
    times = np.linspace(0, PERIOD, 2)
    seeds = np.array([[10.0, 40.0, 0.0], [0.0, 1.0, 0.0], [200.0, -30.0, 0.0]])
    steps = {"substeps": 192, "integrator": "rk2"}
    plain = run(grid(), seeds, times, **steps)
    ends = np.asarray(plain.positions)[-1]
    # Second order in the spacing: 4.6 km at 2 degrees, so 29 km at 5.
    assert great_circle(ends, seeds).max() < 60e3
    assert (np.asarray(plain.final.status) == ParticleStatus.ACTIVE).all()
    for other in (grid(shift=360.0), grid(roll=17)):
        moved = np.asarray(run(other, seeds, times, **steps).positions)[-1]
        assert great_circle(moved, ends).max() < 1e-3
        west = float(other.grid_x[0])
        assert ((moved[:, 0] >= west) & (moved[:, 0] < west + 360)).all()


def test_who_leaves_a_region_is_absorbed():
    region = grid(lat=np.arange(-20.0, 21, 5), lon=np.arange(340.0, 381, 5))
    seeds = np.array([[0.0, 15.0, 0.0], [15.0, 18.0, 0.0], [-100.0, 0.0, 0.0]])
    steps = {"substeps": 24, "integrator": "euler"}
    final = run(region, np.float32(seeds), np.linspace(0, 6 * DAY, 3), **steps).final
    assert final.status.tolist() == [ParticleStatus.ABSORBED] * 3
    assert region.contains(seeds).tolist() == [True, True, False]
    assert 260 < float(final.positions[2, 0]) < 261


def test_particles_stay_below_the_surface():
    axes = [0, 1, 2, 3], [0, 1, 2], [-25, -15, -5]
    level = StructuredGridSampler(np.ones((4, 3, 3, 3)), *axes, geometry="sphere")
    seeds = np.array([[0.5, 0.5, -3.0]], np.float32)
    paths = run(level, seeds, np.array([0.0, 10.0]), substeps=10, integrator="euler")
    assert paths.positions[-1, 0, 2] == 0
    assert paths.final.status.tolist() == [ParticleStatus.ACTIVE]
    for depth, top in ((-0.5, 0.0), (0.0, np.inf)):  # one level at a depth, or none
        assert hold_levels(make_axis(np.array([depth]), "z", "clamp"))[1] == top


def test_what_a_sphere_cannot_do_is_refused():
    with pytest.raises(ValueError, match="inertial particles need straight"):
        simulate(rotation(0.0), SEEDS, [0.0, 1.0], motion=Inertial(1.0))
    with pytest.raises(ValueError, match="more than one turn"):
        grid(lon=np.arange(0, 400, 5.0))
    axes, values = ([0, 1, 2], [0, 1]), np.ones((2, 3, 2, 3))
    dated = {"times": [0.0, 1.0], "geometry": "sphere"}
    with pytest.raises(ValueError, match=r"t = 2 lies beyond the record"):
        StructuredGridSampler(values, *axes, **dated)([[1.0, 0.5]], 2.0)
    longer = StructuredGridSampler(values, *axes, extrapolation="constant", **dated)
    np.testing.assert_array_equal(longer([[1.0, 0.5]], 2.0), [[1, 1, 1]])
    with pytest.raises(
        ValueError, match="geometry 'round': choose one of flat, sphere"
    ):
        as_field(UniformFlow(), geometry="round")
    with pytest.raises(ValueError, match="needs geometry='sphere'"):
        as_field(UniformFlow(), radius=1.0)


def test_lengths_and_spreads_are_in_meters():
    sphere = {"coordinate_system": "spherical", "period": [360.0, 0.0, 0.0]}
    positions = [
        [[179.0, 0.0, 0.0], [0.0, 89.9, 0.0]],
        [[-179.0, 0, 3.0], [180, 89.9, 0]],
    ]
    path = Trajectory(positions, [0.0, 10.0], metadata=sphere)
    expected = [np.hypot(222390.160, 3.0), 22239.016]
    np.testing.assert_allclose(path.compute_path_length(), expected, rtol=1e-8)
    np.testing.assert_allclose(path.compute_displacement(), expected, rtol=1e-8)
    np.testing.assert_allclose(path.compute_speeds()[0] * 10, expected, rtol=1e-8)
    pair = Trajectory([[[-179, 0, 0], [179.0, 0.0, 0.0]]], [0.0], metadata=sphere)
    np.testing.assert_allclose(cloud_spread(pair, 0)[0], 111195.08, rtol=1e-6)


def test_brownian_motion_and_seeds_per_area():
    # E[p . p0] = exp(-2 K t / R^2), over the pole too.
    still = as_field(UniformFlow(u=0.0), geometry="sphere")
    seeds = np.repeat([[10.0, 20.0, 0.0], [0.0, 89.0, 0.0]], 3000, 0)
    spread = 0.6  # 2 K t / R^2
    walk = Diffusion([EARTH_RADIUS**2 * spread / 2] * 2 + [0.0])
    steps = {"substeps": 60, "motion": walk, "integrator": "euler"}
    found = simulate(still, seeds.astype(np.float32), [0.0, 1.0], **steps)
    ends = np.asarray(found.positions[-1], np.float64)
    turned = (unit(ends) * unit(seeds)).sum(1).reshape(2, -1)
    error = turned.std(1) / np.sqrt(3000)
    assert (np.abs(turned.mean(1) - np.exp(-spread)) < 4 * error + 0.006).all()
    box = [[0.0, -90.0, 0.0], [360.0, 90.0, 0.0]]
    even = random_seeds(20_000, box, geometry="sphere")
    heights = np.sin(np.radians(even[:, 1].astype(float)))
    counts = np.histogram(heights, 10, (-1, 1))[0]
    np.testing.assert_allclose(counts, 2000, rtol=0.08)


def test_seeds_that_cannot_move_are_said():
    values = np.ones((6, 6, 2, 2), np.float32)
    land = np.zeros((6, 6, 2), bool)
    land[:2] = True
    axes = (np.arange(6.0), np.arange(6.0), np.array([-10.0, 0.0]))
    field = make_grid_field(values, axes, radius=EARTH_RADIUS, land=land)
    tracker = create_tracker("euler", field, None)
    seeds = [[3.0, 3, 0], [np.nan, 3, 0], [9.0, 3, 0], [0.5, 3, 0], [3, 3, 5]]
    with pytest.warns(UserWarning, match="seeds are") as said:
        found = tracker.track_particles(seeds, (0.0, 1.0), 2)
    words = [str(one.message) for one in said]
    assert [w.partition(",")[0] for w in words] == [
        "1 of 5 seeds are not finite",
        "1 of 5 seeds are outside the data",
        "1 of 5 seeds are on land",
        "1 of 5 seeds are above the highest level",
    ]
    assert found.status[[0, 4]].tolist() == [0, 0]


def test_steps_of_a_flow_map_on_a_sphere_follow_from_shear_per_second():
    # A degree counted as a meter made these 4,194,304 steps.
    flow = FlowMap(rotation(85.0), Advection(), (0.0, DAY), np.array([[20.0, 30, 0]]))
    assert flow._steps <= 4  # it turns once in 12 days


# With the compiler's usual settings: without its fusion emitters, XLA of jaxlib 0.10.2
# gets the tangents of this program wrong, though every part of it right.
@pytest.mark.bitwise
def test_stretching_is_meters_per_meter(double):
    # Rotation stretches nothing; a jet of constant speed shears by u t tan(lat) / R.
    axes = ([20.0, 100.0], [-30.0, 60.0])
    options = {"n_steps": 96, "dtype": "float64"}
    still = ftle(rotation(85.0), axes, 0.0, 3 * DAY, **options)
    assert np.abs(still * 3 * DAY).max() < 1e-6
    jet = as_field(TiltedRotation(85.0, 0.0, 10.0), geometry="sphere")
    found = ftle(jet, axes, 0.0, DAY, **options)[0]
    shear = 10 * DAY * np.tan(np.radians(axes[1])) / EARTH_RADIUS
    expected = np.arcsinh(np.abs(shear) / 2) / DAY
    np.testing.assert_allclose(found, expected, rtol=1e-6)
