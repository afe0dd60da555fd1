import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.trajectory import Trajectory
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
    assert (trajectory.T, trajectory.N, trajectory.D) == (T, N, 3)
    assert (trajectory.num_timesteps, trajectory.num_particles) == (T, N)
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
    np.testing.assert_array_equal(trajectory.residence_time, [np.nan, 2, np.nan])


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


def test_positions_at_a_time_are_copies(trajectory):
    frame = trajectory.get_positions_at_time(2)
    np.testing.assert_array_equal(frame, trajectory.positions[2])
    frame[:] = 0
    path, times = trajectory.get_particle_trajectory(1)
    np.testing.assert_array_equal(path, trajectory.positions[:, 1])
    path[:], times[:] = 0, 0
    assert trajectory.positions[2].any()
    assert trajectory.times.any()
    with pytest.raises(IndexError):
        trajectory.get_positions_at_time(T)
    with pytest.raises(IndexError):
        trajectory.get_particle_trajectory(N)


@pytest.mark.parametrize(("plane", "axis"), [("xy", 2), ("XZ", 1), ("yz", 0)])
def test_a_slice_zeroes_the_component_off_the_plane(trajectory, plane, axis):
    flat = trajectory.extract_2d_slice(plane)
    kept = [i for i in range(3) if i != axis]
    assert not flat.positions[..., axis].any()
    assert not flat.velocities[..., axis].any()
    np.testing.assert_array_equal(
        flat.positions[..., kept], trajectory.positions[..., kept]
    )
    assert flat.metadata["extracted_plane"] == plane.lower()
    assert trajectory.positions[..., axis].any()


def test_a_slice_leaves_absorbed_particles_absorbed():
    trajectory = absorbing_channel(1.0, 1.0, [0.0, 0.5], np.linspace(0, 2, 21))
    flat = trajectory.extract_2d_slice("xy")
    np.testing.assert_array_equal(flat.alive, trajectory.alive)
    assert np.isnan(flat.positions[~flat.alive]).all()
    with pytest.raises(ValueError, match="xy, xz, yz"):
        trajectory.extract_2d_slice("zx")


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
    assert trajectory[0].analyze_convergence()["status"] == "insufficient_data"


def test_device_arrays_pass_into_compiled_code(trajectory):
    arrays = trajectory.to_jax()
    assert isinstance(arrays.positions, jax.Array)
    assert arrays.times.dtype == arrays.positions.dtype
    mean = jax.jit(lambda paths: paths.positions.mean())(arrays)
    assert mean == pytest.approx(trajectory.positions.mean())
    np.testing.assert_array_equal(arrays.generation, trajectory.generation)


def test_double_precision_is_not_cut_unasked():
    trajectory = Trajectory(np.zeros((2, 1, 3)), [0.0, 1.0])
    with pytest.raises(ValueError, match="float64"):
        trajectory.to_jax()
    with jax.enable_x64(True):
        assert trajectory.to_jax().positions.dtype == jnp.float64


def test_copies_are_independent(trajectory):
    copy = trajectory.to_numpy()
    copy.positions[:], copy.generation[:], copy.metadata["integrator"] = 0, 0, "euler"
    assert trajectory.positions.any()
    assert trajectory.generation.any()
    assert trajectory.metadata["integrator"] == "rk4"


def test_thinning_keeps_every_kth_frame(trajectory):
    thinned = trajectory.subsample_time(4)
    np.testing.assert_array_equal(thinned.times, trajectory.times[[0, 4]])
    assert thinned.metadata["subsampled"] == 4
    assert trajectory.subsample_time().T == 3
    with pytest.raises(ValueError, match="step is 0"):
        trajectory.subsample_time(0)


def test_convergence_reports_final_and_furthest_distance():
    there_and_back = np.zeros((5, 1, 3))
    there_and_back[:, 0, 1] = [0, 2, 4, 3, 1]
    report = Trajectory(there_and_back, np.arange(5.0)).analyze_convergence()
    assert report["status"] == "success"
    assert report["mean_final_displacement"] == 1
    assert report["mean_max_displacement"] == 4
    np.testing.assert_array_equal(report["trajectory_bounds"][1], [0, 4, 0])


def test_bounds_and_memory(trajectory):
    lowest, highest = trajectory.get_bounds()
    np.testing.assert_array_equal(lowest, [0, 1, 2])
    np.testing.assert_array_equal(highest, trajectory.positions[-1, -1])
    assert trajectory.memory_usage_mb() > trajectory.positions.nbytes / 1024**2


@pytest.mark.parametrize("indices", [None, [1], [0, -1]])
def test_export_writes_alive_points_with_their_velocities(tmp_path, indices):
    pyvista = pytest.importorskip("pyvista")
    trajectory = absorbing_channel(1.0, 1.0, [0.0, 0.5], np.linspace(0, 0.9, 10))
    path = tmp_path / "paths.vtu"
    trajectory.export_to_vtk(str(path), indices)
    chosen = trajectory.alive[range(10) if indices is None else indices]
    points = pyvista.read(path)
    assert points.n_points == points.n_cells == chosen.sum()
    np.testing.assert_allclose(points["Speed"], 1.0)
    np.testing.assert_allclose(
        points["Velocity"], np.eye(3)[:1].repeat(chosen.sum(), 0)
    )
    np.testing.assert_array_equal(points["ParticleID"], np.nonzero(chosen)[1])
    starts = np.array([0.0, 0.5])[points["ParticleID"]]
    np.testing.assert_allclose(points["Time"], points.points[:, 0] - starts, atol=1e-6)


def test_export_needs_a_frame(trajectory, tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        trajectory.export_to_vtk(tmp_path / "paths.vtu", [])


@pytest.mark.parametrize(("chosen", "count"), [(None, 20), ([3, -7], 2)])
def test_plots_draw_the_chosen_particles(chosen, count):
    pytest.importorskip("matplotlib")
    positions = np.arange(3.0)[:, None, None] * [1, 2, 3] + np.arange(30)[:, None]
    axes = Trajectory(positions, np.arange(3.0)).plot_2d("xz", chosen)
    lines, dots = axes.collections
    assert len(lines.get_segments()) == len(dots.get_offsets()) == count
    particles = range(20) if chosen is None else [3, 23]
    np.testing.assert_allclose(dots.get_offsets(), positions[-1, particles][:, [0, 2]])
    assert tuple(axes.figure.get_size_inches()) == (10, 8)
