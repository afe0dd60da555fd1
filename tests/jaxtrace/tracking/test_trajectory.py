import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxtrace.analysis import residence_times
from jaxtrace.trajectory import Trajectory, as_floats, as_paths, merge_trajectories
from jaxtrace.types import ParticleStatus
from trace_records import absorbing_channel, recycling_channel, uniform

T, N = 6, 4


@pytest.fixture
def trajectory():
    positions = np.arange(T * N * 3, dtype=np.float32).reshape(T, N, 3)
    return Trajectory(
        positions,
        np.linspace(0, 1, T),
        velocities=-positions,
        metadata={"integrator": "rk4"},
        generation=np.arange(T * N).reshape(T, N) // N,
    )


def test_sizes_and_clock(trajectory):
    assert (trajectory.T, trajectory.N) == (T, N)
    assert len(trajectory) == T
    assert trajectory.duration == pytest.approx(1.0)
    assert trajectory.dt_mean == pytest.approx(0.2)
    assert "T=6, N=4" in repr(trajectory)


def test_each_array_keeps_its_own_precision(trajectory):
    assert trajectory.positions.dtype == np.float32
    assert trajectory.times.dtype == np.float64
    assert trajectory.metadata["dtype"] == "float32"
    assert trajectory.metadata["integrator"] == "rk4"
    assert trajectory.metadata["format_version"] == "1.0"
    assert trajectory.metadata["coordinate_system"] == "cartesian"


def test_the_callers_metadata_is_left_alone():
    metadata = {"integrator": "rk4"}
    Trajectory(np.zeros((2, 1, 3)), [0, 1], metadata=metadata).metadata["more"] = 1
    assert metadata == {"integrator": "rk4"}
    assert "more" not in Trajectory(np.zeros((2, 1, 3)), [0, 1]).metadata


def test_defaults_follow_from_the_positions():
    positions = np.zeros((4, 3, 3))
    positions[2:, 1] = np.nan
    positions[:, 2] = np.nan
    trajectory = Trajectory(positions, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(trajectory.alive, np.isfinite(positions[..., 0]))
    np.testing.assert_array_equal(trajectory.generation, np.zeros((4, 3)))
    assert trajectory.generation.dtype == np.int32
    assert trajectory.status.dtype == np.int8
    wanted = [ParticleStatus.ACTIVE, ParticleStatus.ABSORBED, ParticleStatus.LOST]
    assert trajectory.status.tolist() == wanted
    np.testing.assert_array_equal(trajectory.exit_time, [np.nan, 2, np.nan])
    np.testing.assert_array_equal(residence_times(trajectory), [np.nan, 2, np.nan])


def test_a_single_particle_takes_flat_flags():
    trajectory = Trajectory(
        np.zeros((3, 2)), [0, 1, 2], alive=[True, True, False], generation=[0, 1, 1]
    )
    assert trajectory.alive[:, 0].tolist() == [True, True, False]
    assert trajectory.generation[:, 0].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("times", np.zeros(5)),
        ("velocities", np.zeros((6, 3, 3))),
        ("alive", np.ones((4, 6), bool)),
        ("generation", np.zeros(6)),
        ("status", np.zeros(6)),
        ("exit_time", np.zeros(6)),
    ],
)
def test_shapes_that_do_not_match_are_refused(name, value):
    arguments = {"positions": np.zeros((T, N, 3)), "times": np.zeros(T), name: value}
    with pytest.raises(ValueError, match=f"{name} has shape"):
        Trajectory(**arguments)


def test_a_wrong_period_is_refused_at_once():
    with pytest.raises(ValueError, match="period"):
        Trajectory(np.zeros((2, 1, 3)), [0, 1], metadata={"period": (1, 2, 3, 4)})


@pytest.mark.parametrize(
    ("key", "frames", "particles"),
    [
        (-1, [5], range(N)),
        (2, [2], range(N)),
        (slice(1, 4), [1, 2, 3], range(N)),
        (slice(None, None, 2), [0, 2, 4], range(N)),
        ((3, 2), [3], [2]),
        ((0, slice(None, 2)), [0], [0, 1]),
        ((slice(None), -1), range(T), [3]),
        ((slice(2), [3, 0]), [0, 1], [3, 0]),
        ((np.array([4, 1]), np.array([True, False, True, False])), [4, 1], [0, 2]),
        (slice(3, 3), [], range(N)),
        ((slice(None), []), range(T), []),
    ],
)
def test_indexing_picks_frames_and_particles(trajectory, key, frames, particles):
    part = trajectory[key]
    pick = np.ix_(list(frames), list(particles)) if len(part) and part.N else None
    assert (len(frames), len(particles)) == (part.T, part.N)
    np.testing.assert_array_equal(part.times, trajectory.times[list(map(int, frames))])
    for name in ("positions", "velocities", "alive", "generation") if pick else ():
        np.testing.assert_array_equal(
            getattr(part, name), getattr(trajectory, name)[pick]
        )
    assert part.metadata["integrator"] == "rk4"


@pytest.mark.parametrize("key", [6, -7, (0, 4), (0, 0, 0), np.zeros((2, 2), int)])
def test_indices_outside_are_refused(trajectory, key):
    with pytest.raises(IndexError):
        trajectory[key]


def test_exits_after_the_last_chosen_frame_have_not_happened():
    trajectory = absorbing_channel(1.0, 1.0, [0.0, 0.5], np.linspace(0, 2, 21))
    early = trajectory[:8]
    np.testing.assert_allclose(early.exit_time, [np.nan, 0.5])
    assert early.status.tolist() == [ParticleStatus.ACTIVE, ParticleStatus.EXITED]
    np.testing.assert_allclose(trajectory.exit_time, [1.0, 0.5])


def test_iteration_ends_and_yields_frames(trajectory):
    frames = list(trajectory)
    assert len(frames) == T
    np.testing.assert_array_equal(frames[3].positions[0], trajectory.positions[3])


def test_numpy_and_jax_read_the_positions(trajectory):
    assert np.asarray(trajectory) is trajectory.positions
    assert np.asarray(trajectory, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(trajectory), trajectory.positions)
    assert np.stack([trajectory, trajectory]).shape == (2, T, N, 3)
    np.testing.assert_array_equal(jnp.asarray(trajectory), trajectory.positions)
    with pytest.raises(ValueError, match="copy=False"):
        trajectory.__array__(np.float64, copy=False)


def test_motion_is_unwrapped_and_within_lives():
    periodic = uniform([1, 0, 0], [[0.2, 0, 0]], np.linspace(0, 3, 31), (1, 0, 0))
    np.testing.assert_allclose(periodic.compute_displacement(), 3)
    np.testing.assert_allclose(periodic.compute_path_length(), 3)
    np.testing.assert_allclose(periodic.compute_speeds(), np.ones((30, 1)))
    recycled = recycling_channel(1.0, 1.0, [0.25], np.linspace(0, 3, 31))
    assert np.nanmax(recycled.compute_speeds()) == pytest.approx(1.0)
    assert recycled.compute_displacement() == pytest.approx(0.2)


def test_one_frame_has_no_motion(trajectory):
    np.testing.assert_array_equal(trajectory[0].compute_displacement(), np.zeros(N))
    np.testing.assert_array_equal(trajectory[0].compute_path_length(), np.zeros(N))
    assert trajectory[0].compute_speeds().shape == (0, N)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (ml_dtypes.bfloat16, np.float32),
        (np.int16, np.float32),
        (np.int32, np.float64),
    ],
)
def test_no_digit_is_lost(given, kept):
    assert as_floats(np.ones(3, given), "values").dtype == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((3,), (1, 1, 3)),
        ((2,), (1, 1, 3)),
        ((5, 2), (5, 1, 3)),
        ((5, 3), (5, 1, 3)),
        ((5, 4, 2), (5, 4, 3)),
        ((5, 4, 3), (5, 4, 3)),
        ((0, 4, 3), (0, 4, 3)),
        ((5, 0, 2), (5, 0, 3)),
    ],
)
def test_points_become_frames_particles_and_three(given, kept):
    values = np.arange(np.prod(given), dtype=float).reshape(given)
    points = as_paths(values, "positions")
    assert points.shape == kept
    flat = values.reshape(-1, given[-1])
    np.testing.assert_array_equal(points.reshape(-1, 3)[:, : given[-1]], flat)
    np.testing.assert_array_equal(points[..., given[-1] :], 0)


FIELDS = ("positions", "times", "alive", "generation", "status", "exit_time")
TIMES = np.linspace(0, 3, 13)


def assert_same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("make", [absorbing_channel, recycling_channel])
def test_parts_in_time_merge_to_the_whole(make, overlap):
    whole = make(1.0, 2.0, [0.1, 0.6, 1.7], TIMES)
    parts = [whole[:5], whole[5 - overlap : 9], whole[9 - overlap :]]
    merged = merge_trajectories(parts)
    assert_same(merged, whole)
    assert merged.metadata["merged_axis"] == "time"
    assert merged.metadata["merged_count"] == 3


@pytest.mark.parametrize("make", [absorbing_channel, recycling_channel])
def test_parts_of_the_cloud_merge_to_the_whole(make):
    whole = make(1.0, 2.0, [0.1, 0.6, 1.7], TIMES)
    assert_same(merge_trajectories([whole[:, :1], whole[:, 1:]], "particles"), whole)


def test_generations_counted_anew_are_counted_on():
    whole = recycling_channel(1.0, 1.0, [0.1, 0.6], TIMES)
    later = whole[6:]
    later.generation = later.generation - later.generation[0]
    assert_same(merge_trajectories([whole[:7], later]), whole)


def test_velocities_are_kept_when_all_have_them():
    bare = uniform([1, 0, 0], np.zeros((2, 3)), TIMES)
    full = uniform([1, 0, 0], np.zeros((2, 3)), TIMES, velocities=bare.positions)
    for axis, shape in {"particles": (13, 4, 3), "time": (26, 2, 3)}.items():
        velocities = merge_trajectories([full, full], axis).velocities
        assert velocities is not None
        assert velocities.shape == shape
    assert merge_trajectories([full, bare], "particles").velocities is None


def test_one_part_is_copied():
    whole = uniform([1, 0, 0], np.zeros((2, 3)), TIMES)
    merged = merge_trajectories([whole])
    merged.positions[:] = 7
    assert whole.positions.max() == 3
    assert "merged_count" not in whole.metadata


@pytest.mark.parametrize(
    ("axis", "other", "message"),
    [
        ("time", uniform([1, 0, 0], np.zeros((3, 3)), TIMES), "same number"),
        ("particles", uniform([1, 0, 0], np.zeros((2, 3)), TIMES[:4]), "share"),
        ("particles", uniform([1, 0, 0], np.zeros((2, 3)), 2 * TIMES), "share"),
        ("time", uniform([1, 0, 0], np.zeros((2, 3)), TIMES, (1, 0, 0)), "periods"),
        ("frames", uniform([1, 0, 0], np.zeros((2, 3)), TIMES), "time, particles"),
    ],
)
def test_parts_that_do_not_fit_are_refused(axis, other, message):
    first = uniform([1, 0, 0], np.zeros((2, 3)), TIMES)
    with pytest.raises(ValueError, match=message):
        merge_trajectories([first, other], axis)


def test_nothing_does_not_merge():
    with pytest.raises(ValueError, match="nothing to merge"):
        merge_trajectories([])
