import numpy as np
import pytest

from jaxtrace.analysis import analyze_trajectory_results, compute_trajectory_statistics
from jaxtrace.analysis.statistics import (
    cloud_spread,
    mixing_efficiency,
    validate_trajectory_data,
)
from jaxtrace.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

SEEDS = np.random.default_rng(3).random((50, 3))
TIMES = np.linspace(0, 2, 41)


@pytest.mark.parametrize("period", [None, (1, 1, 1)])
def test_uniform_motion_has_one_length_and_speed(period):
    stats = compute_trajectory_statistics(uniform([3, 4, 0], SEEDS, TIMES, period))
    for name, value in [("displacement", 10), ("path_length", 10), ("speed", 5)]:
        assert stats[name]["mean"] == pytest.approx(value)
        assert stats[name]["min"] == pytest.approx(stats[name]["max"])
        assert stats[name]["std"] == pytest.approx(0, abs=1e-10)
    assert stats["basic"]["num_particles"] == 50
    assert stats["basic"]["num_timesteps"] == 41
    assert stats["basic"]["duration"] == pytest.approx(2)
    assert stats["basic"]["dt_mean"] == pytest.approx(0.05)


def test_bounds_and_extent():
    stats = compute_trajectory_statistics(uniform([1, 0, 0], SEEDS, TIMES))
    wanted = np.ptp(SEEDS, axis=0) + np.array([2, 0, 0])
    np.testing.assert_allclose(stats["bounds"]["extent"], wanted)


def test_absorbed_particles_leave_the_figures_finite():
    trajectory = absorbing_channel(1.0, 1.0, np.linspace(0, 0.9, 10), TIMES)
    stats, validation = analyze_trajectory_results(trajectory, {"batch": 7})
    assert stats["strategy"] == {"batch": 7}
    assert validation["valid"]
    assert stats["basic"]["num_alive"] == 0
    for name in ("displacement", "path_length", "speed"):
        assert np.isfinite(list(stats[name].values())).all()
    assert np.isfinite(stats["spatial"]["final_spread"]).all()


def test_recycled_particles_are_counted():
    trajectory = recycling_channel(1.0, 1.0, [0.05, 0.55], TIMES)
    stats = compute_trajectory_statistics(trajectory)
    assert stats["basic"]["num_recycled"] == 2 + 2
    assert stats["speed"]["max"] == pytest.approx(1.0)


def test_figures_of_nothing_are_nan():
    empty = Trajectory(np.zeros((1, 0, 3)), [0.0])
    stats, _ = analyze_trajectory_results(empty)
    assert np.isnan(stats["speed"]["mean"])
    assert np.isnan(stats["spatial"]["mixing_efficiency"])
    assert np.isnan(stats["spatial"]["initial_spread"]).all()


def test_spread_of_a_stretching_cloud():
    stretch = np.array([2.0, 0.5, 1.0])
    positions = np.stack([SEEDS, SEEDS * stretch])
    positions[..., 2] = 0
    stats, _ = analyze_trajectory_results(Trajectory(positions, [0, 4]))
    spatial = stats["spatial"]
    np.testing.assert_allclose(spatial["initial_spread"][:2], SEEDS.std(axis=0)[:2])
    np.testing.assert_allclose(spatial["spread_change_percent"], [100, -50, 0])


def test_a_plane_that_opens_changes_without_bound():
    positions = np.zeros((2, 3, 3))
    positions[1, :, 0] = [1, 2, 3]
    stats, _ = analyze_trajectory_results(Trajectory(positions, [0, 1]))
    np.testing.assert_array_equal(
        stats["spatial"]["spread_change_percent"], [np.inf, 0, 0]
    )


@pytest.mark.parametrize("times", [TIMES, TIMES[::-1]])
def test_mixing_efficiency_is_displacement_per_time_and_particle(times):
    trajectory = uniform([3, 4, 0], SEEDS, times)
    assert mixing_efficiency(trajectory) == pytest.approx(5)


def test_a_wrap_does_not_change_the_spread():
    trajectory = uniform([0.5, 0, 0], 0.4 * SEEDS, TIMES, (1, 0, 0))
    np.testing.assert_allclose(
        cloud_spread(trajectory, -1), cloud_spread(trajectory, 0)
    )


FRAME_TIMES = np.linspace(0, 3, 13)


@pytest.mark.parametrize(
    "trajectory",
    [
        uniform([1, 0, 0], np.zeros((2, 3)), FRAME_TIMES),
        uniform([1, 0, 0], np.zeros((2, 3)), FRAME_TIMES[::-1]),
        absorbing_channel(1.0, 1.0, [0.0, 0.5], FRAME_TIMES),
        recycling_channel(1.0, 1.0, [0.0, 0.5], FRAME_TIMES),
        uniform([1, 0, 0], np.zeros((2, 3)), FRAME_TIMES[:1]),
    ],
    ids=["forward", "backward", "absorbed", "recycled", "one frame"],
)
def test_sound_records_pass(trajectory):
    found = validate_trajectory_data(trajectory)
    assert found == {"valid": True, "warnings": [], "errors": []}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"positions": np.full((3, 1, 3), np.inf)}, "positions that are not finite"),
        ({"velocities": np.full((3, 1, 3), np.nan)}, "velocities that are not finite"),
        ({"times": [0, np.nan, 1]}, "times are not finite"),
        ({"times": [0, 2, 1]}, "both forward and backward"),
        ({"generation": [2, 1, 1]}, "generations go down"),
    ],
)
def test_faults_are_named(changes, sentence):
    sound = {
        "positions": np.zeros((3, 1, 3)),
        "times": [0.0, 1.0, 2.0],
        "alive": [True, True, True],
    }
    found = validate_trajectory_data(Trajectory(**(sound | changes)))
    assert not found["valid"]
    (error,) = found["errors"]
    assert sentence in error


def test_oddities_are_warnings():
    trajectory = Trajectory(np.full((3, 1, 3), np.nan), [0, 0, 1])
    found = validate_trajectory_data(trajectory)
    assert found["valid"]
    assert found["warnings"] == [
        "1 frame intervals take no time",
        "no particle is alive at any frame",
    ]
