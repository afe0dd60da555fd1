"""Shortcuts give what the tracker gives, checked against exact paths."""

import numpy as np
import pytest

from jaxtrace.tracking.boundary import reflective_boundary
from jaxtrace.tracking.flows import create_uniform_field, make_flow
from jaxtrace.tracking.shortcuts import (
    compare_integrators,
    create_tracking_workflow,
    get_default_options,
    quick_track,
    seed_bounds,
    set_default_options,
    track_particles_simple,
)
from jaxtrace.tracking.tracker import create_tracker

SEEDS = np.array([[0.2, 0.3, 0.1], [0.7, 0.6, 0.4]], np.float32)
TURN = make_flow("rotation", rate=2 * np.pi)


@pytest.fixture
def defaults():
    yield set_default_options
    set_default_options()


def test_one_call_is_a_tracker_and_a_run():
    tracker = create_tracker("rk2", TURN, reflective_boundary([-1, 1, -1, 1]))
    whole = tracker.track_particles(SEEDS, (0.0, 0.5), 11)
    short = track_particles_simple(
        SEEDS, TURN, (0.0, 0.5), 11, "rk2", reflective_boundary([-1, 1, -1, 1])
    )
    np.testing.assert_array_equal(short.positions, whole.positions)


def test_without_a_boundary_particles_go_anywhere():
    moved = track_particles_simple(SEEDS, create_uniform_field((9.0, 0.0)), (0, 1), 3)
    np.testing.assert_allclose(moved.positions[-1], np.add(SEEDS, [9, 0, 0]), rtol=1e-6)


def test_integrators_are_compared_with_the_first():
    found = compare_integrators(SEEDS, TURN, (0.0, 1.0), 41, ("rk4", "rk2", "euler"))
    apart = found["comparison"]
    assert list(found["trajectories"]) == ["rk4", "rk2", "euler"]
    assert apart["rk4"]["max_difference"] == 0
    assert 0 < apart["rk2"]["rms_difference"] < apart["euler"]["rms_difference"]
    assert all(seconds >= 0 for seconds in found["timing"].values())


def test_a_comparison_needs_a_name():
    with pytest.raises(ValueError, match="integrators is empty"):
        compare_integrators(SEEDS, TURN, (0.0, 1.0), 3, ())


def test_seed_bounds_have_a_tenth_more():
    np.testing.assert_allclose(
        seed_bounds(SEEDS), [[0.15, 0.27, 0.07], [0.75, 0.63, 0.43]], rtol=1e-6
    )
    with pytest.raises(ValueError, match="no seeds"):
        seed_bounds(np.zeros((0, 3)))


@pytest.mark.parametrize("boundary", ["periodic", "reflective", "clamping"])
def test_boxes_by_name_keep_particles_in(boundary):
    flow = create_uniform_field((0.3, 0.2, 0.0))
    low, high = seed_bounds(SEEDS)
    moved = quick_track(SEEDS, flow, (0.0, 4.0), 9, boundary=boundary)
    room = 1e-6 * (high - low)
    assert ((moved.positions >= low - room) & (moved.positions <= high + room)).all()


def test_no_boundary_and_a_boundary_of_ones_own():
    flow = create_uniform_field((1.0, 0.0))
    open_ = quick_track(SEEDS, flow, (0, 1), 2, boundary="none")
    np.testing.assert_allclose(open_.positions[-1], np.add(SEEDS, [1, 0, 0]), rtol=1e-6)
    own = quick_track(
        SEEDS, flow, (0, 1), 2, boundary=reflective_boundary([0, 1, 0, 1])
    )
    np.testing.assert_allclose(own.positions[-1, :, 0], [0.8, 0.3], rtol=1e-6)
    with pytest.raises(ValueError, match="choose one of periodic"):
        quick_track(SEEDS, flow, boundary="mirror")


def test_a_workflow_from_a_mapping():
    config = {
        "seeds": {"type": "random", "n": 5, "bounds": [0, 1, 0, 1], "rng_seed": 3},
        "field": {"type": "uniform", "u": 0.5},
        "boundary": {"type": "periodic", "bounds": [0, 1, 0, 1]},
        "integration": {"integrator": "euler", "time_span": (0, 1), "n_timesteps": 5},
        "tracker": {"record_velocities": True},
    }
    found = create_tracking_workflow(config)
    moved, seeds = found["results"], found["components"]["seeds"]
    np.testing.assert_allclose(
        moved.positions[-1, :, 0], (seeds[:, 0] + 0.5) % 1, atol=1e-6
    )
    assert moved.metadata["integrator"] == "euler"
    np.testing.assert_allclose(moved.velocities[..., 0], 0.5)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"seed": {}}, "did you mean 'seeds'"),
        ({"seeds": {}, "field": {}}, "no section 'integration'"),
        (
            {"seeds": {}, "field": {}, "integration": {"timespan": (0, 1)}},
            "did you mean 'time_span'",
        ),
    ],
)
def test_a_workflow_says_what_is_wrong(config, words):
    with pytest.raises((TypeError, ValueError), match=words):
        create_tracking_workflow(config)


def test_default_options_hold_until_forgotten(defaults):
    defaults(recording_interval=5)
    defaults(record_velocities=True)
    assert get_default_options().recording_interval == 5
    moved = track_particles_simple(SEEDS, TURN, (0.0, 0.5), 11)
    assert moved.T == 3
    assert moved.velocities is not None
    own = track_particles_simple(SEEDS, TURN, (0.0, 0.5), 11, recording_interval=1)
    assert own.T == 11
    defaults()
    assert get_default_options().recording_interval == 1


def test_wrong_default_options_are_refused(defaults):
    with pytest.raises(TypeError, match="did you mean 'batch_size'"):
        defaults(batchsize=3)
    with pytest.raises(ValueError, match="recording_interval"):
        defaults(recording_interval=0)
