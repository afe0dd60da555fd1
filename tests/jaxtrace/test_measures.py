import numpy as np
import pytest

from jaxtrace import paths
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform

SEEDS = [[0.1, 0.2, 0.3], [0.5, 0.6, 0.7], [0.9, 0.9, 0.9]]


@pytest.mark.parametrize("period", [None, (1, 1, 1), (1, 0, 0)])
def test_uniform_motion_covers_speed_times_time(period):
    record = uniform([3, 4, 12], SEEDS, np.linspace(0, 2, 101), period)
    np.testing.assert_allclose(paths.displacements(record), 26)
    np.testing.assert_allclose(paths.path_lengths(record), 26)
    np.testing.assert_allclose(paths.speeds(record), 13)


def test_a_periodic_channel_of_path_four_returns():
    record = uniform([0.1, 0, 0], [[0.5, 0, 0]], np.linspace(0, 40, 41), (2, 0, 0))
    assert record.positions[-1, 0, 0] == pytest.approx(0.5)
    np.testing.assert_allclose(paths.path_lengths(record), 4.0, rtol=1e-12)


def test_a_circle_returns_and_has_its_circumference():
    angle = np.linspace(0, 2 * np.pi, 2001)
    circle = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
    record = Trajectory(circle, angle)
    np.testing.assert_allclose(paths.displacements(record), 0, atol=1e-12)
    np.testing.assert_allclose(paths.path_lengths(record), 2 * np.pi, rtol=1e-6)


def test_a_recycled_jump_is_no_motion():
    times = np.linspace(0, 5, 51)
    record = recycling_channel(1.0, 2.0, [0.05, 1.55], times)
    steps = paths.moving_steps(record).sum(axis=0)
    assert (steps < 50).all()
    np.testing.assert_allclose(paths.path_lengths(record), steps * 0.1)
    np.testing.assert_allclose(paths.displacements(record), [5.05 - 4.05, 6.55 - 6.05])
    speeds = paths.speeds(record)
    np.testing.assert_array_equal(np.isnan(speeds), ~paths.moving_steps(record))
    np.testing.assert_allclose(speeds[~np.isnan(speeds)], 1.0)


def test_absorbed_particles_count_to_their_last_alive_frame():
    record = absorbing_channel(2.0, 1.0, [0.0, 0.55], np.linspace(0, 1, 11))
    np.testing.assert_allclose(paths.displacements(record), [0.8, 0.4])
    np.testing.assert_allclose(paths.path_lengths(record), [0.8, 0.4])
    assert np.isnan(paths.speeds(record)[4:]).all()


def test_a_particle_never_seen_has_no_motion_figures():
    positions = np.zeros((3, 2, 3))
    positions[:, 1] = np.nan
    record = Trajectory(positions, np.arange(3.0))
    for figures in (paths.displacements, paths.path_lengths):
        np.testing.assert_array_equal(figures(record), [0, np.nan])


def test_recorded_velocities_give_the_speed_at_the_start_of_an_interval():
    velocities = np.zeros((3, 2, 3))
    velocities[:, :, 0] = [[1, 2], [3, 4], [5, 6]]
    alive = [[True, True], [True, False], [True, False]]
    record = Trajectory(np.zeros((3, 2, 3)), np.arange(3.0), velocities, alive=alive)
    np.testing.assert_array_equal(paths.speeds(record), [[1, 2], [3, np.nan]])


def test_backward_tracking_has_positive_speeds_and_true_velocities():
    record = uniform([2, 0, 0], SEEDS, np.linspace(1, 0, 11))
    np.testing.assert_allclose(paths.speeds(record), 2)
    velocities = paths.frame_velocities(record)
    np.testing.assert_allclose(velocities[..., 0], 2)
    np.testing.assert_allclose(velocities[..., 1:], 0)


def test_frame_velocities_stay_within_a_life():
    record = recycling_channel(1.0, 2.0, [0.05, 1.55], np.linspace(0, 5, 51))
    np.testing.assert_allclose(paths.frame_velocities(record)[..., 0], 1.0)
    alone = record[0]
    np.testing.assert_array_equal(paths.frame_velocities(alone), np.zeros((1, 2, 3)))


def test_a_repeated_time_gives_no_speed():
    record = Trajectory(np.arange(9.0).reshape(3, 1, 3), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(np.isnan(paths.speeds(record)), [[True], [False]])


def test_blocks_do_not_change_the_figures(monkeypatch):
    record = recycling_channel(1.0, 2.0, np.linspace(0, 1.9, 13), np.linspace(0, 5, 30))
    record.metadata["period"] = (2.0, 0, 0)
    names = "displacements", "path_lengths", "speeds"
    whole = [getattr(paths, name)(record) for name in names]
    monkeypatch.setattr(paths, "BLOCK_POSITIONS", 70)
    for name, expected in zip(names, whole, strict=True):
        np.testing.assert_array_equal(getattr(paths, name)(record), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_figures_keep_the_dtype_of_the_positions(dtype):
    seeds = np.random.default_rng(0).random((20, 4, 3)).astype(dtype)
    record = Trajectory(seeds, np.arange(20.0), metadata={"period": (1, 1, 1)})
    for figures in (
        paths.displacements,
        paths.path_lengths,
        paths.speeds,
        paths.frame_velocities,
    ):
        assert figures(record).dtype == dtype


def test_bounds_leave_out_what_is_not_alive():
    record = absorbing_channel(2.0, 1.0, [0.0, 0.55], np.linspace(0, 1, 11))
    lowest, highest = paths.bounds(record)
    np.testing.assert_allclose(lowest, 0)
    np.testing.assert_allclose(highest, [0.95, 0, 0])
    nobody = Trajectory(np.zeros((2, 3, 3)), [0, 1], alive=np.zeros((2, 3), bool))
    assert np.isnan(paths.bounds(nobody)).all()


def test_a_summary_speaks_of_finite_values():
    summary = paths.summarize(np.array([1.0, np.nan, 3.0]))
    assert summary == {"mean": 2.0, "std": 1.0, "min": 1.0, "max": 3.0}
    assert all(np.isnan(list(paths.summarize(np.array([np.nan])).values())))


def test_memory_counts_generations_only_when_they_are_held():
    plain = Trajectory(np.zeros((4, 8, 3), np.float32), np.arange(4, dtype=np.float32))
    held = 4 * 8 * (12 + 1) + 4 * 4
    assert paths.memory_mb(plain) == held / 1024**2
    counted = Trajectory(plain.positions, plain.times, generation=np.zeros((4, 8), int))
    assert paths.memory_mb(counted) == (held + 4 * 8 * 4) / 1024**2
