import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtrace import paths
from jaxtrace.tracking.trajectory import Trajectory
from trace_records import recycling_channel, uniform


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
    record = uniform(
        [1, 2, 3],
        np.random.default_rng(0).random((7, 3)),
        np.arange(9.0) / 9,
        (1, 1, 1),
    )
    monkeypatch.setattr(paths, "BLOCK_POSITIONS", 20)
    particles, frames = np.array([6, 0, 3, 3]), np.array([8, 0, 4, 7])
    np.testing.assert_array_equal(
        paths.unwrapped_at(record, particles, frames),
        paths.unwrap(record)[frames, particles],
    )


@given(st.integers(1, 50), st.integers(0, 40))
def test_blocks_cover_every_column_once(frames, count):
    covered = [
        i for block in paths.column_blocks(frames, count) for i in range(count)[block]
    ]
    assert covered == list(range(count))


@pytest.mark.parametrize("period", [(1, 2), (1, 2, 0), None])
def test_periods_are_three_lengths(period):
    expected = [0, 0, 0] if period is None else [1, 2, 0]
    np.testing.assert_array_equal(paths.read_period({"period": period}), expected)


@pytest.mark.parametrize("period", [(1,), (1, -2, 0), (1, np.nan, 0), 3.0])
def test_other_periods_are_refused(period):
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
    record = Trajectory(
        np.zeros((4, 3, 3)),
        np.arange(4.0),
        alive=alive,
        exit_time=[1.25, np.nan, 3.5],
    )
    entered, left = paths.first_stays(record)
    np.testing.assert_array_equal(entered, [0, 0, 0])
    np.testing.assert_array_equal(left, [1.25, 2, 2])


def test_records_without_frames_or_particles_have_no_lives():
    for shape in [(0, 3, 3), (4, 0, 3), (1, 0, 3)]:
        record = Trajectory(np.zeros(shape), np.arange(float(shape[0])))
        assert paths.find_lives(record).particle.size == 0
        assert paths.latest_lives(record).particle.size == 0
        assert paths.seeded_frames(record).shape == shape[:2]
        assert paths.unwrap(record).shape == shape
