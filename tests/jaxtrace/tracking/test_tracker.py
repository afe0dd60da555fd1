"""The tracker's documented calls: options, clock, records and errors."""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.fields.analytic import DoubleGyre, UniformFlow
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.tracking import time_loop
from jaxtrace.tracking import tracker as tracker_module
from jaxtrace.tracking.behaviors import Sinking
from jaxtrace.tracking.boundaries.base import Open
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.motion import Inertial
from jaxtrace.tracking.tracker import Progress, TrackerOptions, create_tracker
from trace_flows import (
    AXES,
    TIMES,
    mirrors,
    noise_field,
    noise_values,
    seeds,
    track,
)


@pytest.fixture(scope="module")
def reference():
    return track(record_velocities=True)


def test_frame_zero_is_the_seeds_and_the_clock_is_the_span(reference):
    np.testing.assert_array_equal(reference.positions[0], seeds())
    np.testing.assert_allclose(reference.times, np.linspace(0, 2, 31))
    assert reference.metadata["substeps"] == 2
    assert reference.metadata["dt_requested"] == 0.04


def test_recorded_velocities_are_those_at_the_recorded_places(reference):
    field = noise_field()
    for frame in (0, 7, 30):
        expected = field.sample_at_positions(
            reference.positions[frame], float(reference.times[frame])
        )
        np.testing.assert_allclose(
            reference.velocities[frame], expected, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("how", [{"motion": Inertial(5.0)}, {}], ids=["heavy", "sinks"])
def test_speeds_are_those_of_particles_not_of_the_flow(how):
    flow = lambda x, t: jnp.zeros_like(x).at[:, 0].set(t)
    tracker = create_tracker("rk2", flow, None, record_velocities=True, **how)
    behave = None if how else Sinking(3.0)
    found = tracker.track_particles(np.zeros((1, 3)), (0, 2), 21, behave=behave)
    steps = np.linalg.norm(np.diff(found.positions[:, 0], axis=0), axis=1)
    np.testing.assert_allclose(found.compute_speeds()[:, 0], steps / 0.1, rtol=1e-5)
    assert found.velocities is not None
    np.testing.assert_allclose(found.velocities[:, 0, 0], found.times, atol=1e-6)


@pytest.mark.bitwise
@pytest.mark.parametrize("batch", [7, 500])
def test_results_do_not_depend_on_the_batch(reference, batch, monkeypatch):
    monkeypatch.setattr(tracker_module, "SMALLEST_TILE", 1)
    got = track(record_velocities=True, batch_size=batch)
    np.testing.assert_array_equal(got.positions, reference.positions)
    np.testing.assert_array_equal(got.velocities, reference.velocities)
    assert got.metadata["batch_size"] == min(batch, 60)


@pytest.mark.bitwise
def test_inertial_particles_do_not_depend_on_the_batch(monkeypatch):
    """A stage of one unknown goes into another: more sums that may be joined."""
    monkeypatch.setattr(tracker_module, "SMALLEST_TILE", 1)
    heavy = {"start": seeds(500), "motion": Inertial(np.linspace(0.1, 0.5, 500))}
    whole, tiled = (track(batch_size=batch, **heavy) for batch in (None, 499))
    np.testing.assert_array_equal(whole.positions, tiled.positions)


@pytest.mark.bitwise
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("cores", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_results_do_not_depend_on_the_cores(reference, cores):
    configure(cores=cores)
    got = track(record_velocities=True)
    np.testing.assert_array_equal(got.positions, reference.positions)
    np.testing.assert_array_equal(got.velocities, reference.velocities)


@pytest.mark.bitwise
@pytest.mark.usefixtures("small_parts")
def test_particles_choose_their_own_steps_on_any_core():
    options = {"adaptive_dt": True, "motion": Inertial(0.1)}
    runs = []
    for cores in (1, 3):
        configure(cores=cores)
        runs.append(track(DoubleGyre(), integrator="rk45", **options))
    np.testing.assert_array_equal(runs[1].positions, runs[0].positions)


def test_a_function_of_numpy_is_called_from_one_program_at_a_time():
    flows = (UniformFlow(), lambda x, t: np.zeros_like(x))
    with pytest.warns(UserWarning, match="called on the host"):
        worlds = [time_loop.make_dynamics(flow, None, None, 0) for flow in flows]
    assert [time_loop.part_count(w, 9_999, 4) for w in worlds] == [4, 1]
    assert time_loop.part_count(worlds[0], 1_500, 4) == 1


@pytest.mark.bitwise
@pytest.mark.parametrize("count", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_results_do_not_depend_on_who_else_is_tracked(reference, count):
    some = track(start=seeds()[:count])
    np.testing.assert_array_equal(some.positions, reference.positions[:, :count])


@pytest.mark.bitwise
def test_results_do_not_depend_on_chunks_and_progress_is_told(reference):
    told: list[float] = []
    some = {"record_velocities": True, "progress_update_every": 0.2}
    got = track(progress_callback=told.append, **some)
    np.testing.assert_array_equal(got.positions, reference.positions)
    assert told == sorted(told)
    assert len(told) >= 5
    assert told[-1] == 1.0
    # A callback of two arguments is told the step and the total.
    both: list[tuple[int, int]] = []
    track(progress_callback=lambda step, total: both.append((step, total)), **some)
    assert both[-1] == (30, 30)


@pytest.mark.bitwise
def test_every_kth_frame_is_kept_and_the_last(reference):
    got = track(recording_interval=7)
    kept = [0, 7, 14, 21, 28, 30]
    np.testing.assert_array_equal(got.positions, reference.positions[kept])
    np.testing.assert_allclose(got.times, reference.times[kept])


def test_sorting_by_cell_changes_nothing(reference, monkeypatch):
    monkeypatch.setattr(time_loop, "WORTH_SORTING", 10)
    got = track(record_velocities=True, start=seeds()[::-1])
    np.testing.assert_array_equal(got.positions, reference.positions[:, ::-1])


@pytest.mark.slow  # many programs
def test_uncompiled_runs_give_the_same():
    got = create_tracker(
        "euler", noise_field(), mirrors(), use_jax_jit=False
    ).track_particles(seeds()[:2], (0.0, 0.2), 3)
    expected = create_tracker("euler", noise_field(), mirrors()).track_particles(
        seeds()[:2], (0.0, 0.2), 3
    )
    np.testing.assert_allclose(got.positions, expected.positions, atol=2e-6)
    assert not got.metadata["jax_compiled"]


def test_the_documents_call_ends_at_the_documented_time():
    tracker = create_tracker("rk4", UniformFlow(1.0), None)
    with pytest.warns(UserWarning, match=r"dt=0\.005 is larger .* 0\.00266"):
        got = tracker.track_particles(
            initial_positions=np.zeros((1, 3)),
            time_span=(0.0, 4.0),
            n_timesteps=1500,
            dt=0.005,
        )
    assert got.positions.shape == (1500, 1, 3)
    assert got.times[-1] == 4.0
    np.testing.assert_allclose(got.positions[-1, 0], [4.0, 0, 0], rtol=1e-5)


def test_frames_follow_the_slices_when_nothing_is_said():
    tracker = create_tracker("euler", noise_field(), mirrors())
    got = tracker.track_particles(seeds(3), (0.0, 2.0))
    np.testing.assert_allclose(got.times, np.linspace(0, 2, 21))
    flow = create_tracker("rk4", UniformFlow(), None)
    with pytest.raises(TypeError, match="n_timesteps or dt"):
        flow.track_particles(np.zeros((1, 3)), (0.0, 1.0))


@pytest.mark.slow  # compiles a program of its own
def test_small_runs():
    tracker = create_tracker("rk4", UniformFlow(), None)
    cases = {(1, 3, 3): np.zeros((3, 3)), (5, 0, 3): np.zeros((0, 3))}
    for shape, start in {**cases, (2, 1, 3): [0.5, 0.5]}.items():
        found = tracker.track_particles(start, (0, 1), shape[0])
        assert found.positions.shape == shape


def test_another_field_or_seed_set_of_the_same_shape_compiles_nothing():
    track(record_velocities=True)
    before = time_loop._advance.trace_count, time_loop.begin.trace_count
    track(start=seeds(seed=9), record_velocities=True)
    track(noise_field(seed=5), record_velocities=True)
    smaller = box_boundary([[0, 0, 0], [0.9, 0.9, 0.9]], "reflective")
    track(boundary=smaller, record_velocities=True)
    assert (time_loop._advance.trace_count, time_loop.begin.trace_count) == before


def test_a_changed_field_takes_effect(reference):
    tracker = create_tracker("rk2", noise_field(), mirrors(), record_velocities=True)
    tracker.field = make_grid_field(-noise_values(), AXES, TIMES)
    found = tracker.track_particles(seeds(), (0.0, 2.0), 31, dt=0.04)
    assert not np.allclose(found.positions[-1], reference.positions[-1])


def test_documented_attributes():
    tracker = create_tracker(
        integrator_name="rk4",
        field=noise_field(),
        boundary_condition=mirrors(),
        batch_size=60,
        record_velocities=False,
        use_jax_jit=True,
        static_compilation=True,
        use_scan_jit=True,
        device_put_inputs=True,
        progress_callback=None,
    )
    assert tracker._compiled_step is not None
    assert tracker._compiled_simulate is not None
    assert tracker.compiled
    one = tracker._compiled_step(seeds(), 0.0, 0.04)
    got = tracker.track_particles(seeds(), (0.0, 0.04), 2)
    np.testing.assert_allclose(one, got.positions[-1], atol=1e-6)
    plain = create_tracker("rk4", noise_field(), None, use_jax_jit=False)
    assert plain._compiled_step is None


def test_absorbed_particles_are_nan_from_then_on_and_say_when():
    start, bounds = [[0.5, 0.5, 0.5], [-0.5, 0.5, 0.5]], [[0, 0, 0], [1, 1, 1]]
    walls = box_boundary(bounds, "absorbing")
    got = create_tracker("rk4", UniformFlow(1.0), walls).track_particles(
        start, (0, 1), 11
    )
    marked = box_boundary(bounds, "absorbing", -9.0)
    other = create_tracker("rk4", UniformFlow(1.0), marked).track_particles(
        start, (0, 1), 11
    )
    np.testing.assert_array_equal(other.alive, got.alive)
    assert (other.positions[~got.alive] == -9.0).all()
    assert got.alive[:5, 0].all()
    assert not got.alive[6:, 0].any()
    assert np.isnan(got.positions[6:, 0]).all()
    np.testing.assert_allclose(got.exit_time[0], 0.5, atol=1e-6)
    assert got.status.tolist() == [1, 1]


def test_double_precision_positions_over_a_single_precision_field(reference):
    configure(dtype="float64")
    got = track()
    assert got.positions.dtype == np.float64
    np.testing.assert_allclose(got.positions, reference.positions, atol=1e-3)


@pytest.mark.slow  # compiles a program of its own
def test_adaptive_runs_agree_with_fine_steps():
    values = np.stack([noise_values()[0] * 0.3] * 2)
    smooth = make_grid_field(values, AXES, [0.0, 2.0])
    fine = track(smooth, Open(), dt=0.002)
    got = track(smooth, Open(), adaptive_dt=True, error_tolerance=1e-5)
    np.testing.assert_allclose(got.positions, fine.positions, atol=2e-4)
    assert got.metadata["integrator"] == "rk45"


def test_a_tolerance_without_adaptive_steps_says_that_it_is_not_used():
    with pytest.warns(UserWarning, match="adaptive_dt=True"):
        create_tracker("rk4", noise_field(), None, error_tolerance=1e-5)
    create_tracker("rk4", noise_field(), None, adaptive_dt=True, error_tolerance=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batchsize": 3}, TypeError, "batch_size"),
        ({"batch_size": 0}, ValueError, "batch_size is 0"),
        ({"max_memory_gb": 0}, ValueError, "max_memory_gb"),
        ({"recording_interval": 0}, ValueError, "recording_interval"),
        ({"progress_style": "loud"}, ValueError, "auto, tqdm"),
        ({"progress_update_every": 0.0}, ValueError, "progress_update_every"),
        ({"error_tolerance": 0.0}, ValueError, "error_tolerance"),
    ],
)
def test_wrong_options_are_named(options, error, words):
    with pytest.raises(error, match=words):
        create_tracker("rk4", UniformFlow(), None, **options)


def test_wrong_parts_are_named():
    with pytest.raises(ValueError, match="euler, rk2, rk4"):
        create_tracker("rk3", UniformFlow(), None)
    with pytest.raises(ValueError, match="boundary"):
        create_tracker("rk4", UniformFlow(), 3)
    with pytest.raises(TypeError, match="not a field"):
        create_tracker("rk4", 3, None)
    with pytest.raises(ValueError, match="devices=99"):
        track(devices=99)
    go: Any = create_tracker("rk4", UniformFlow(), None).track_particles
    with pytest.raises(TypeError, match="unexpected keyword"):
        go(np.zeros((1, 3)), (0, 1), 2, color="red")
    with pytest.raises(ValueError, match="finite"):
        go(np.zeros((1, 3)), (0, np.inf), 2)
    with pytest.raises(ValueError, match=r"shape \(2, 5\)"):
        go(np.zeros((2, 5)), (0, 1), 2)


def test_a_numpy_function_warns_once():
    def swirl(positions, t):
        x = np.asarray(positions)
        return np.stack([-x[:, 1], x[:, 0], np.zeros(len(x))], 1)

    with pytest.warns(UserWarning, match="swirl needs NumPy"):
        tracker = create_tracker("rk4", swirl, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = tracker.track_particles([[1.0, 0, 0]], (0, np.pi), 101)
    np.testing.assert_allclose(got.positions[-1, 0], [-1, 0, 0], atol=1e-5)


GIB = 1024**3


@pytest.fixture(autouse=True)
def _defaults():
    yield
    reset_config()


def test_calls_are_whole_runs_unless_memory_or_progress_asks():
    options = TrackerOptions()
    assert options.frames_per_call(7500, 1499, watched=False) == 1499
    assert options.frames_per_call(100, 1000, watched=True) == 50
    small = TrackerOptions(max_memory_gb=7500 * 12 * 4 * 100 / GIB)
    assert small.frames_per_call(7500, 1000, watched=False) == 100


@pytest.mark.parametrize("frames", [1, 2, 97, 1499])
def test_calls_are_never_longer_than_allowed(frames):
    small = TrackerOptions(max_memory_gb=10 * 12 * 4 * 7 / GIB)
    assert 1 <= small.frames_per_call(10, frames, watched=False) <= 7


def test_defaults_come_from_the_configuration():
    configure(memory_limit_gb=3.0, oom_recovery=False)
    options = TrackerOptions()
    assert options.max_memory_gb == 3.0
    assert not options.oom_recovery


def test_silent_unless_asked(capsys):
    progress = Progress(TrackerOptions())
    assert not progress.watched
    progress.start(3)
    progress.show(3)
    progress.meter.stop()
    assert capsys.readouterr() == ("", "")
    assert Progress(TrackerOptions(progress_style="simple")).watched


def test_a_run_is_estimated_from_a_small_one():
    tracker = create_tracker("rk4", DoubleGyre(), None)
    found = tracker.estimate_runtime(2000, 101, 50, 4)
    each = found["time_per_particle_step"]
    assert found["estimated_runtime_seconds"] == pytest.approx(each * 2000 * 100)
    assert found["calibration_time"] == pytest.approx(each * 50 * 4)
    record = 2000 * (101 * 12 + 48) / 1024**3
    assert found["estimated_memory_gb"] == pytest.approx(record)
    with pytest.raises(ValueError, match="n_timesteps=1"):
        tracker.estimate_runtime(10, 1)


def test_a_run_through_a_plain_function_is_estimated_too():
    tracker = create_tracker("euler", lambda x, t: 0 * x + t, None)
    assert tracker.estimate_runtime(100, 5, 10, 2)["estimated_runtime_seconds"] > 0
