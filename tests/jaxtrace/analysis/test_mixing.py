import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxtrace import paths
from jaxtrace.analysis import (
    completed_residence_times,
    compute_mixing_metrics,
    dispersion,
    mean_squared_displacement,
    residence_times,
)
from jaxtrace.analysis.statistics import close_pairs, start_separations
from jaxtrace.sphere import EARTH_RADIUS
from jaxtrace.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

RATE = 0.7
TIMES = np.linspace(0, 2, 9)
SEEDS = np.random.default_rng(7).random((400, 3))


def saddle(scale=1.0, dtype: type = np.float64):
    """Pure strain: x grows and y shrinks at the same rate."""
    growth = np.exp(RATE * TIMES)[:, None]
    x, y, z = scale * SEEDS.T
    paths = np.stack([x * growth, y / growth, z + 0 * growth], axis=-1)
    return Trajectory(paths.astype(dtype), TIMES)


def stretching():
    """Every separation grows at one rate."""
    return Trajectory(SEEDS * np.exp(RATE * TIMES)[:, None, None], TIMES)


def test_uniform_growth_has_its_rate_as_exponent():
    metrics = compute_mixing_metrics(stretching(), pair_fraction=0.3)
    assert metrics["lyapunov_approximation"] == pytest.approx(RATE)
    before, after = SEEDS.var(axis=0).sum(), SEEDS.var(axis=0).sum() * np.exp(4 * RATE)
    assert metrics["final_variance"] == pytest.approx(after)
    assert metrics["variance_growth_rate"] == pytest.approx((after - before) / 2)


@pytest.mark.parametrize("scale", [1e-6, 1e7])
def test_the_unit_of_length_does_not_matter(scale):
    one, other = (
        compute_mixing_metrics(saddle(factor), pair_fraction=0.3)
        for factor in (1.0, scale)
    )
    for name in ("lyapunov_approximation", "poincare_return_ratio"):
        assert other[name] == pytest.approx(one[name])
    for name in ("variance_growth_rate", "final_variance"):
        assert other[name] == pytest.approx(one[name] * scale**2)
    assert other["mixing_efficiency"] == pytest.approx(one["mixing_efficiency"] * scale)


def test_translation_mixes_nothing():
    metrics = compute_mixing_metrics(uniform([1, 0, 0], SEEDS, TIMES), 0.3)
    assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-12)
    assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-12)
    assert metrics["poincare_return_ratio"] == 0
    assert metrics["mixing_efficiency"] == pytest.approx(1)


def test_a_periodic_translation_returns_and_mixes_nothing():
    times = np.linspace(0, 2, 21)
    metrics = compute_mixing_metrics(uniform([1, 0, 0], SEEDS, times, (1, 1, 1)), 0.3)
    assert metrics["poincare_return_ratio"] == 1
    assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-12)
    assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-12)


def test_absorbed_pairs_count_to_their_last_common_frame():
    whole = stretching()
    alive = np.ones(whole.alive.shape, bool)
    alive[4:, ::3] = False
    cut = np.where(alive[..., None], whole.positions, np.nan)
    metrics = compute_mixing_metrics(Trajectory(cut, TIMES), pair_fraction=0.3)
    assert metrics["lyapunov_approximation"] == pytest.approx(RATE)
    left = SEEDS[alive[-1]] * np.exp(2 * RATE)
    assert metrics["final_variance"] == pytest.approx(left.var(axis=0).sum())


def test_all_absorbed_or_recycled_leaves_finite_measures():
    starts, times = np.linspace(0, 0.95, 200), np.linspace(0, 2, 41)
    for make in (absorbing_channel, recycling_channel):
        metrics = compute_mixing_metrics(make(1.0, 1.0, starts, times), 0.5)
        assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-10)
        assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-10)
        assert metrics["poincare_return_ratio"] == 0


def test_measures_of_nothing_are_nan():
    apart = Trajectory(SEEDS[None, :2] * np.ones((3, 1, 1)), np.arange(3.0))
    assert np.isnan(compute_mixing_metrics(apart)["lyapunov_approximation"])
    nobody = Trajectory(np.full((3, 2, 3), np.nan), np.arange(3.0))
    empty = Trajectory(np.zeros((3, 0, 3)), np.arange(3.0))
    assert np.isnan(compute_mixing_metrics(nobody)["final_variance"])
    assert np.isnan(list(compute_mixing_metrics(empty).values())).all()
    assert np.isnan(compute_mixing_metrics(stretching()[0])["variance_growth_rate"])


def test_single_precision_paths_are_measured_in_double():
    one, other = (
        compute_mixing_metrics(saddle(dtype=dtype), 0.3)
        for dtype in (np.float64, np.float32)
    )
    assert other["final_variance"] == pytest.approx(one["final_variance"], rel=1e-6)
    assert other["lyapunov_approximation"] == pytest.approx(
        one["lyapunov_approximation"], rel=1e-4
    )


PAIR_SEEDS = np.random.default_rng(5).random((60, 3))


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
    trajectory = uniform([0, 0, 0], PAIR_SEEDS, [0.0, 1.0], period)
    pairs = close_pairs(trajectory, radius=0.2, neighbors=60)
    assert list(map(tuple, pairs)) == naive_pairs(PAIR_SEEDS, 0.2, np.array(period))
    apart = np.linalg.norm(start_separations(trajectory, pairs), axis=-1)
    assert (apart < 0.2).all()


def test_periodic_seeds_may_lie_anywhere():
    seeds = np.array([[-0.01, 5, 0], [1.0, 5, 0], [0.5, 5, 0]])
    trajectory = Trajectory(seeds[None], [0.0], metadata={"period": (1, 0, 0)})
    np.testing.assert_array_equal(close_pairs(trajectory, 0.1, 2), [[0, 1]])


def test_neighbors_bound_the_number_of_pairs():
    trajectory = uniform([0, 0, 0], PAIR_SEEDS, [0.0, 1.0])
    assert len(close_pairs(trajectory, np.inf, 2)) <= 2 * len(PAIR_SEEDS)


def test_absent_and_coincident_particles_make_no_pairs():
    seeds = np.array([[0, 0, 0], [np.nan] * 3, [0, 0, 0], [0.1, 0, 0]])
    trajectory = Trajectory(seeds[None], [0.0])
    np.testing.assert_array_equal(close_pairs(trajectory, 1.0, 3), [[0, 3], [2, 3]])
    assert close_pairs(trajectory[:, :1], 1.0, 3).shape == (0, 2)


LONG_TIMES = np.linspace(0, 4, 81)
CLOUD = np.random.default_rng(11).random((30, 3))


@pytest.mark.parametrize("period", [None, (1, 1, 1), (0, 1, 0)])
def test_uniform_motion_is_ballistic(period):
    msd = mean_squared_displacement(uniform([1, 2, 2], CLOUD, LONG_TIMES, period))
    np.testing.assert_allclose(msd, (3 * LONG_TIMES) ** 2, atol=1e-20)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_random_walk_spreads_as_twice_dimensions_times_diffusivity(dimensions):
    rng = np.random.default_rng(13)
    particles, diffusivity = 4000, 50.0
    steps = rng.normal(size=(40, particles, 3)) * np.sqrt(2 * diffusivity * 0.1)
    steps[..., dimensions:] = 0
    walk = np.concatenate([np.zeros((1, particles, 3)), np.cumsum(steps, axis=0)])
    times = 0.1 * np.arange(41)
    msd = mean_squared_displacement(Trajectory(walk, times))
    # The squared length of a Gaussian step varies by sqrt(2 / d) of its mean.
    error = 5 * np.sqrt(2 / dimensions / particles)
    np.testing.assert_allclose(msd, 2 * dimensions * diffusivity * times, rtol=error)


def test_recycled_particles_do_not_fall_back():
    trajectory = recycling_channel(1.0, 1.0, np.linspace(0.025, 0.975, 20), LONG_TIMES)
    msd = mean_squared_displacement(trajectory)
    left = LONG_TIMES < 0.97
    np.testing.assert_allclose(msd[left], LONG_TIMES[left] ** 2, atol=1e-12)
    assert np.isnan(msd[LONG_TIMES > 1]).all()


def test_only_the_particles_still_there_are_averaged():
    trajectory = absorbing_channel(1.0, 2.05, [0.0, 1.0], LONG_TIMES)
    msd = mean_squared_displacement(trajectory)
    np.testing.assert_allclose(
        msd[LONG_TIMES < 2.05],
        LONG_TIMES[LONG_TIMES < 2.05] ** 2,
        atol=1e-12,
    )
    assert np.isnan(msd[LONG_TIMES > 2.1]).all()


def test_blocks_do_not_change_the_averages(monkeypatch):
    trajectory = uniform([1, 2, 2], CLOUD, LONG_TIMES, (1, 1, 1))
    whole = mean_squared_displacement(trajectory), dispersion(trajectory)
    monkeypatch.setattr(paths, "BLOCK_POSITIONS", 300)
    np.testing.assert_allclose(mean_squared_displacement(trajectory), whole[0])
    np.testing.assert_allclose(dispersion(trajectory), whole[1])


def test_pairs_part_with_the_shear():
    heights = np.array([0.0, 0.1])
    positions = np.zeros((len(LONG_TIMES), 2, 3))
    positions[..., 0] = np.mod(heights * LONG_TIMES[:, None] + [0.95, 1.05], 1.0)
    positions[..., 1] = heights
    trajectory = Trajectory(positions, LONG_TIMES, metadata={"period": (1, 0, 0)})
    wanted = (0.1 + 0.1 * LONG_TIMES) ** 2 + 0.1**2
    np.testing.assert_allclose(dispersion(trajectory), wanted)
    np.testing.assert_allclose(dispersion(trajectory, np.array([[1, 0]])), wanted)


def on_globe(directions, times):
    """Paths of unit vectors (T, N, 3) over the Earth, in degrees."""
    x, y, z = np.moveaxis(directions, -1, 0)
    places = np.degrees([np.arctan2(y, x), np.arcsin(z)])
    facts = {"coordinate_system": "spherical", "radius": EARTH_RADIUS}
    places = np.moveaxis(np.stack([*places, 0 * z]), 0, -1)
    return Trajectory(places, times, metadata={**facts, "period": (360, 0, 0)})


@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 0, 0), (0.6, 0, 0.8)])
def test_a_rotation_of_the_globe_mixes_nothing(axis):
    """A cloud stays as it is, over the date line and a pole too."""
    times, rate = np.linspace(0, 4, 9), np.radians(10)
    start = np.random.default_rng(4).normal([-1, 0.1, 0], 0.01, (60, 3))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    turns = Rotation.from_rotvec(rate * times[:, None] * np.array(axis))
    run = on_globe(np.stack([turn.apply(start) for turn in turns]), times)
    metrics = compute_mixing_metrics(run, pair_fraction=0.5)
    size = (0.01 * EARTH_RADIUS) ** 2
    assert metrics["final_variance"] == pytest.approx(2 * size, rel=0.3)
    assert metrics["variance_growth_rate"] == pytest.approx(0, abs=1e-3 * size)
    assert metrics["lyapunov_approximation"] == pytest.approx(0, abs=1e-3)
    assert metrics["poincare_return_ratio"] == 0
    again = np.concatenate([run.positions, run.positions[:1]])
    back = Trajectory(again, [*times, 5.0], metadata=run.metadata)
    assert compute_mixing_metrics(back)["poincare_return_ratio"] == 1
    np.testing.assert_allclose(dispersion(run), dispersion(run)[0], rtol=1e-3)
    # A place goes along a great circle, as far as its chord says.
    chords = np.linalg.norm([t.apply(start) - start for t in turns], axis=-1)
    ways = 2 * EARTH_RADIUS * np.arcsin(chords / 2)
    np.testing.assert_allclose(
        mean_squared_displacement(run), np.mean(ways**2, axis=1), rtol=1e-9
    )


def test_pairs_on_the_globe_are_near_in_meters():
    """At 80 degrees north a degree of longitude is a sixth of one of latitude."""
    places = np.radians([[0.0, 80.0], [1.0, 80.0], [0.0, 80.5], [179.9, 80.0]]).T
    cos = np.cos(places[1])
    vectors = np.stack(
        [cos * np.cos(places[0]), cos * np.sin(places[0]), np.sin(places[1])], -1
    )
    run = on_globe(vectors[None], [0.0])
    np.testing.assert_array_equal(close_pairs(run, 30e3, 3), [[0, 1]])
    apart = np.linalg.norm(start_separations(run, np.array([[0, 2]])), axis=1)
    np.testing.assert_allclose(apart, np.radians(0.5) * EARTH_RADIUS)


def test_residence_in_a_uniform_channel():
    starts = np.array([0.0, 0.33, 0.9, -10.0])
    trajectory = absorbing_channel(0.5, 1.0, starts, LONG_TIMES)
    wanted = (1.0 - starts) / 0.5
    wanted[-1] = np.nan
    np.testing.assert_allclose(residence_times(trajectory), wanted)
    np.testing.assert_allclose(trajectory.residence_time, wanted)


def test_residence_counts_from_the_first_frame_seen():
    trajectory = absorbing_channel(0.5, 1.0, [0.0], LONG_TIMES)
    np.testing.assert_allclose(residence_times(trajectory[20:]), 1.0)
    assert np.isnan(residence_times(trajectory[:20])).all()


def test_backward_residence_is_positive():
    trajectory = absorbing_channel(0.5, 1.0, [0.0, 0.5], LONG_TIMES)
    backward = Trajectory(
        trajectory.positions, -LONG_TIMES, exit_time=-trajectory.exit_time
    )
    np.testing.assert_allclose(residence_times(backward), [2, 1])


def test_without_exit_times_the_frames_decide():
    trajectory = absorbing_channel(0.5, 1.0, [0.01], LONG_TIMES)
    bare = Trajectory(trajectory.positions, LONG_TIMES)
    late = residence_times(bare) - residence_times(trajectory)
    assert 0 <= late < LONG_TIMES[1]


def test_a_recycled_slot_counts_its_first_particle_and_lists_all_stays():
    trajectory = recycling_channel(1.0, 1.0, [0.125, 0.525], LONG_TIMES)
    spacing = LONG_TIMES[1]
    np.testing.assert_allclose(residence_times(trajectory), [0.9, 0.5])
    stays = completed_residence_times(trajectory)
    assert len(stays) == 4 + 4
    full = np.delete(stays, [0, 4])
    np.testing.assert_allclose(full, 1.0, atol=spacing)


def test_a_slot_filled_late_counts_from_its_filling():
    alive = np.array([0, 0, 1, 1, 0, 1, 1], bool)
    generation = [0, 0, 0, 0, 0, 1, 1]
    trajectory = Trajectory(
        np.zeros((7, 3)), np.arange(7.0), alive=alive, generation=generation
    )
    np.testing.assert_array_equal(residence_times(trajectory), [2.0])
    np.testing.assert_array_equal(completed_residence_times(trajectory), [2.0])
    np.testing.assert_array_equal(
        mean_squared_displacement(trajectory), np.full(7, np.nan)
    )
