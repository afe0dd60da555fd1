import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields.analytic import UniformFlow
from jaxtrace.integrators import METHODS, find_method
from jaxtrace.tracking.schedule import (
    even_steps,
    kept_frames,
    make_schedule,
    plan_run,
    plan_times,
)
from trace_flows import TIMES, noise_field
from trace_runs import grid_of, still


def quietly(*args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plan_times(*args)


@pytest.mark.parametrize(
    ("dt", "substeps"),
    [
        (0.1, 1),
        (0.1 / 1.009, 1),  # a spacing 1 % longer than the step needs no substep
        (0.1 / 1.011, 2),
        (0.05, 2),
        (0.049, 3),
        (0.0333333, 3),
        (0.001, 100),
    ],
)
def test_substeps_are_as_few_as_keep_within_dt(dt, substeps):
    timing = plan_times((0, 1), 11, dt)
    assert timing.substeps == substeps
    assert timing.dt == pytest.approx(0.1 / substeps)


def test_without_a_number_of_frames_they_are_a_step_apart():
    timing = plan_times((0, 5), None, 0.01)
    assert len(timing.frames) == 501
    assert timing.substeps == 1
    assert len(plan_times((5, 0), None, 0.01).frames) == 501


def test_a_span_shorter_than_the_step_still_reaches_its_end():
    assert quietly((0, 1), None, 3.0).frames == (0.0, 1.0)
    assert quietly((1, 1), None, 3.0).frames == (1.0,)


def test_without_either_there_is_a_frame_per_slice():
    slices = [0.0, 0.5, 0.7, 2.0]
    assert plan_times((0, 2), None, None, slices).frames == (0, 0.5, 0.7, 2)
    assert plan_times((0.6, 1), None, None, slices).frames == (0.6, 0.7, 1)
    assert plan_times((2, 0.2), None, None, slices).frames == (2, 0.7, 0.5, 0.2)
    for none in (None, [0.0]):
        with pytest.raises(TypeError, match="n_timesteps or dt"):
            plan_times((0, 2), None, None, none)


def test_backward_the_step_is_negative():
    timing = plan_times((2.0, 0.0), 5, 0.3)
    assert timing.frames == (2.0, 1.5, 1.0, 0.5, 0.0)
    assert timing.substeps == 2
    assert timing.dt == -0.25


def test_the_sign_of_a_requested_step_is_the_span_s():
    assert plan_times((2.0, 0.0), 5, -0.25) == plan_times((2.0, 0.0), 5, 0.25)


def test_one_frame():
    timing = plan_times((3, 7), 1, 0.1)
    assert timing.frames == (3.0,)
    assert timing.dt == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (((0, 1), 0, 0.1), "n_timesteps is 0"),
        (((0, 1), 2.5, None), "n_timesteps is 2.5: give a whole number"),
        (((0, 1), 10, 0.0), "dt=0.0"),
        (((0, 1), 10, float("nan")), "dt=nan"),
        (((0, float("inf")), 10, None), "inf"),
    ],
)
def test_wrong_values_are_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        plan_times(*arguments)


@pytest.mark.parametrize("tableau", METHODS.values(), ids=lambda t: t.name)
@pytest.mark.parametrize("substeps", [1, 3])
def test_every_stage_has_its_instant(tableau, substeps):
    frames = np.array([1.0, 1.4, 2.0])
    made = make_schedule(UniformFlow(), frames, substeps, tableau, np.float64)
    assert made.frames == 2
    assert np.array_equal(made.step, np.arange(2 * substeps).reshape(2, substeps))
    assert not made.padded
    for frame, (a, b) in enumerate(((1.0, 1.4), (1.4, 2.0))):
        width = (b - a) / substeps
        starts = a + width * np.arange(substeps)
        np.testing.assert_allclose(made.start[frame], starts, rtol=1e-15)
        np.testing.assert_allclose(made.dt[frame], width, rtol=1e-15)
        expected = starts[:, None] + width * np.array(tableau.instants)
        np.testing.assert_allclose(made.stages.time[frame], expected, rtol=1e-15)
    assert np.array_equal(made.frame.time, frames[1:])


def test_the_last_stage_is_the_next_frame_to_the_last_bit():
    frames = np.linspace(0, 0.7, 8)
    made = make_schedule(UniformFlow(), frames, 3, find_method("rk4"), np.float64)
    assert np.array_equal(made.stages.time[:, -1, -1], frames[1:])
    assert np.array_equal(made.stages.time[:, 1:, 0], made.stages.time[:, :-1, -1])


def test_slices_and_weights_are_worked_out_in_double_precision():
    """Late in a long record a clock in single precision would miss the slices."""
    axes = [np.zeros(1)] * 3
    times = 1e6 + 0.1 * np.arange(11)
    field = grid_of(still, axes, times)
    made = make_schedule(field, times, 1, find_method("rk2"), np.float32)
    np.testing.assert_allclose(made.stages.weights[:, 0, 1, 1], 0.5, atol=1e-4)
    assert np.array_equal(made.stages.slices[:, 0, 1, 0], np.arange(10))
    assert made.slices(2, 4) == (2, 5)
    assert np.array_equal(made.rebased(2).stages.slices, made.stages.slices - 2)


def test_traced_times_give_the_same_schedule():
    frames = np.array([0.0, 0.25, 1.0], np.float32)
    host = make_schedule(UniformFlow(), frames, 2, find_method("rk4"), np.float32)
    traced = make_schedule(
        UniformFlow(), jnp.asarray(frames), 2, find_method("rk4"), np.float32
    )
    np.testing.assert_allclose(traced.stages.time, host.stages.time, rtol=1e-6)
    np.testing.assert_allclose(traced.dt, host.dt, rtol=1e-6)


def test_a_part_is_filled_with_steps_to_skip():
    frames = np.arange(6.0)
    made = make_schedule(UniformFlow(), frames, 2, find_method("euler"), np.float64)
    part = made.part(3, 5, 4)
    assert part.frames == 4
    assert part.padded
    assert np.array_equal(part.active.sum(1), [2, 2, 0, 0])
    assert np.array_equal(part.start[:2], made.start[3:5])


@pytest.mark.parametrize(
    ("count", "interval", "kept"),
    [
        (7, 1, [0, 1, 2, 3, 4, 5, 6]),
        (7, 2, [0, 2, 4, 6]),
        (7, 3, [0, 3, 6]),
        (7, 4, [0, 4, 6]),
        (7, 9, [0, 6]),
        (1, 3, [0]),
    ],
)
def test_recording_keeps_the_first_each_so_many_and_the_last(count, interval, kept):
    assert kept_frames(count, interval).tolist() == kept
    frames = np.arange(float(count))
    whole = make_schedule(UniformFlow(), frames, 2, find_method("rk4"), np.float64)
    if count == 1:
        return
    joined = make_schedule(
        UniformFlow(),
        frames[kept],
        even_steps(frames, 2).joined(interval),
        find_method("rk4"),
        np.float64,
    )
    assert joined.frame.time.tolist() == frames[kept][1:].tolist()
    # Every step is taken once and in order, whatever is kept.
    assert np.array_equal(joined.step[joined.active], whole.step.ravel())
    assert np.array_equal(joined.start[joined.active], whole.start.ravel())


def test_an_interval_below_one_is_refused():
    with pytest.raises(ValueError, match="recording_interval=0"):
        kept_frames(5, 0)


def test_a_plan_is_kept_for_the_next_run_of_the_same_clock():
    timing = plan_times((0.0, 2.0), 31, 0.04)
    plan = lambda field, interval=1: plan_run(
        field, timing, interval, find_method("rk4"), np.float32
    )[0]
    first, again = plan(noise_field()), plan(noise_field(seed=5))
    assert first is again  # other values, the same instants
    assert first.part(0, 30, 30) is first
    assert plan(noise_field(), 3).frames == 10
    moved = eqx.tree_at(lambda f: f.clock.times, noise_field(), TIMES + 0.5)
    slower = plan(moved)
    assert not np.array_equal(slower.stages.weights, first.stages.weights)
