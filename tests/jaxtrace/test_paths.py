import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtrace import paths
from jaxtrace.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform


def random_record(seed, frames=7, particles=5):
    rng = np.random.default_rng(seed)
    alive = rng.random((frames, particles)) < 0.7
    generation = np.cumsum(rng.random((frames, particles)) < 0.2, axis=0)
    return Trajectory(
        rng.normal(size=(frames, particles, 3)),
        np.arange(float(frames)),
        alive=alive,
        generation=generation,
    )


def naive_lives(record):
    found = []
    for particle in range(record.N):
        for frame in range(record.T):
            if not record.alive[frame, particle]:
                continue
            same = (
                frame > 0
                and record.alive[frame - 1, particle]
                and record.generation[frame - 1, particle]
                == record.generation[frame, particle]
            )
            if same:
                found[-1][2] = frame
            else:
                found.append([particle, frame, frame])
    return np.array(found).reshape(-1, 3)


@given(st.integers(0, 1000))
@settings(max_examples=25)
def test_lives_are_runs_of_one_generation(seed):
    record = random_record(seed)
    expected = naive_lives(record)
    np.testing.assert_array_equal(np.stack(paths.find_lives(record), axis=1), expected)
    latest = {row[0]: row for row in expected}
    np.testing.assert_array_equal(
        np.stack(paths.latest_lives(record), axis=1),
        np.array(list(latest.values())).reshape(-1, 3),
    )


@given(st.integers(0, 1000))
@settings(max_examples=25)
def test_seeded_frames_end_with_the_first_life_of_frame_zero(seed):
    record = random_record(seed)
    expected = np.zeros(record.alive.shape, bool)
    for particle, first, last in naive_lives(record):
        if first == 0:
            expected[: last + 1, particle] = True
    np.testing.assert_array_equal(paths.seeded_frames(record), expected)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_unwrapping_undoes_wraps_on_the_axes_that_wrap(dtype, atol):
    times = np.linspace(0, 4, 81)
    seeds = [[0.1, 0.2, 0.3], [1.9, 0.7, -5.0]]
    wrapped = uniform([1.3, -0.9, 2.0], seeds, times, period=(2, 1, 0))
    record = Trajectory(
        wrapped.positions.astype(dtype), times, metadata=wrapped.metadata
    )
    straight = uniform([1.3, -0.9, 2.0], seeds, times).positions
    unwrapped = paths.unwrap(record)
    assert unwrapped.dtype == dtype
    np.testing.assert_allclose(unwrapped, straight, atol=atol)


def test_without_a_period_paths_are_not_copied():
    record = random_record(0)
    assert np.shares_memory(paths.unwrap(record), record.positions)


def test_a_life_starts_where_it_was_recorded():
    record = recycling_channel(1.0, 2.0, [0.5], np.linspace(0, 6, 25))
    record.metadata["period"] = (2.0, 0, 0)
    starts = paths.life_starts(record)
    assert starts.sum() == 4
    unwrapped = paths.unwrap(record)
    np.testing.assert_array_equal(unwrapped[starts], record.positions[starts])


def test_chosen_points_equal_the_whole_unwrapped_record(monkeypatch):
    seeds = np.random.default_rng(0).random((7, 3))
    record = uniform([1, 2, 3], seeds, np.arange(9.0) / 9, (1, 1, 1))
    monkeypatch.setattr(paths, "BLOCK_POSITIONS", 20)
    particles, frames = np.array([6, 0, 3, 3]), np.array([8, 0, 4, 7])
    np.testing.assert_array_equal(
        paths.unwrapped_at(record, particles, frames),
        paths.unwrap(record)[frames, particles],
    )


@given(st.integers(1, 50), st.integers(0, 40))
@settings(max_examples=25)
def test_blocks_cover_every_column_once(frames, count):
    covered = [
        i for block in paths.column_blocks(frames, count) for i in range(count)[block]
    ]
    assert covered == list(range(count))


def test_periods_are_three_lengths():
    for period, expected in (((1, 2), (1, 2, 0)), ((1, 2, 0),) * 2, (None, (0, 0, 0))):
        np.testing.assert_array_equal(paths.read_period({"period": period}), expected)
    for period in ((1,), (1, -2, 0), (1, np.nan, 0), 3.0):
        with pytest.raises(ValueError, match="period"):
            paths.read_period({"period": period})


def test_minimum_image_is_the_shortest():
    vectors = np.array([[0.9, 0.9, 0.9], [-0.6, 2.4, -7.0]])
    np.testing.assert_allclose(
        paths.minimum_image(vectors, np.array([1.0, 2.0, 0.0])),
        [[-0.1, 0.9, 0.9], [0.4, 0.4, -7.0]],
    )


def test_exit_times_between_frames_are_used_and_others_are_not():
    alive = np.array([[True] * 3, [True] * 3, [False] * 3, [False] * 3])
    exits = {"alive": alive, "exit_time": [1.25, np.nan, 3.5]}
    record = Trajectory(np.zeros((4, 3, 3)), np.arange(4.0), **exits)
    np.testing.assert_array_equal(paths.residence_times(record), [1.25, 2, 2])


def test_records_without_frames_or_particles_have_no_lives():
    for shape in [(0, 3, 3), (4, 0, 3), (1, 0, 3)]:
        record = Trajectory(np.zeros(shape), np.arange(float(shape[0])))
        assert paths.find_lives(record).particle.size == 0
        assert paths.latest_lives(record).particle.size == 0
        assert paths.seeded_frames(record).shape == shape[:2]
        assert paths.unwrap(record).shape == shape


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


def test_backward_tracking_has_positive_speeds_and_a_repeated_time_none():
    record = uniform([2, 0, 0], SEEDS, np.linspace(1, 0, 11))
    np.testing.assert_allclose(paths.speeds(record), 2)
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
    for figures in (paths.displacements, paths.path_lengths, paths.speeds):
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
