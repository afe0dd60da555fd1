"""Plots accept any form of positions; lines break where paths do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtrace.paths import joined_steps
from jaxtrace.plot.inputs import (
    axes_of,
    axis_limits,
    axis_names,
    choose,
    choose_frames,
    find_stretches,
    path_limits,
    read_paths,
    read_points,
)
from jaxtrace.trajectory import Trajectory
from trace_records import absorbing_channel, recycling_channel, uniform


def test_records_and_arrays_are_read_alike():
    record = uniform([1, 2, 3], np.eye(3), np.linspace(0, 1, 4))
    ours, plain = read_paths(record), read_paths(record.positions, record.times)
    for name in ("positions", "times", "alive", "generation"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(plain, name))
    assert ours.clock(3) == "t = 1"
    assert read_paths(record.positions).clock(3) == "frame 3"


def test_a_record_on_the_sphere_has_dates_and_geographic_axes():
    record = uniform([1, 2, 3], np.eye(3), np.linspace(0, 5400, 4))
    dates = {"time_units": "seconds since 1999-12-31 23:00:00"}
    sphere = {"coordinate_system": "spherical", **dates}
    paths = read_paths(Trajectory(record.positions, record.times, metadata=sphere))
    assert paths.clock(3) == "2000-01-01 00:30"
    assert axis_names((0, 1), paths) == ["longitude", "latitude"]
    assert axis_names((0, 2), record) == ["x", "z"]


def test_points_of_paths_are_those_of_the_last_frame():
    positions = np.random.default_rng(0).random((4, 5, 3))
    np.testing.assert_array_equal(read_points(positions), positions[-1])
    np.testing.assert_array_equal(read_points(positions[-1]), positions[-1])
    np.testing.assert_array_equal(read_points([1, 2]), [[1, 2, 0]])


@pytest.mark.parametrize(
    ("given", "times", "message"),
    [
        (np.zeros((2, 3, 4)), None, "for planar paths"),
        (np.zeros((1, 2, 3, 3)), None, r"give \(T, N, 3\)"),
        (np.zeros((2, 3, 3), complex), None, "real"),
        (np.zeros((0, 3, 3)), None, "no frame"),
        (np.zeros((2, 3, 3)), [0.0], "times has shape"),
    ],
)
def test_other_inputs_are_refused(given, times, message):
    with pytest.raises(ValueError, match=message):
        read_paths(given, times)


@given(st.integers(0, 50), st.integers(1, 7), st.integers(1, 20))
def test_the_choice_is_made_among_every_kth(count, every, most):
    every_kth = np.arange(0, count, every)
    chosen = choose(count, every, most)
    assert len(chosen) == min(most, len(every_kth))
    assert set(chosen) <= set(every_kth)
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, choose(count, every, most))


def test_the_choice_among_seeds_on_a_lattice_is_no_lattice():
    column = choose(10_000, max_points=1_000) % 100
    assert len(np.unique(column)) == 100


def test_named_particles_keep_their_order():
    np.testing.assert_array_equal(choose(9, indices=[7, -1, 2]), [7, 8, 2])
    assert choose(3, indices=[]).size == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"every_kth": 0}, ValueError),
        ({"max_points": 0}, ValueError),
        ({"indices": [3]}, IndexError),
        ({"indices": [-4]}, IndexError),
    ],
)
def test_choices_that_cannot_be_made(options, error):
    with pytest.raises(error, match=r"every_kth|max_points|particle_indices"):
        choose(3, **options)


def test_frames_are_strided_from_the_first():
    assert list(choose_frames(7, 3)) == [0, 3, 6]
    with pytest.raises(ValueError, match="frame_stride"):
        choose_frames(7, 0)


def test_planes_are_read_in_any_case():
    assert [axes_of(name) for name in ("xy", "XZ", "yz")] == [(0, 1), (0, 2), (1, 2)]
    with pytest.raises(ValueError, match="plane"):
        axes_of("yx")


def test_bounds_are_of_space_or_of_the_plane_itself():
    space = [[0, 1, 2], [10, 11, 2]]
    assert axis_limits(space, (0, 2)) == [(0, 10), None]
    assert axis_limits([5, 6, 7, 8], (1, 2)) == [(5, 6), (7, 8)]
    assert axis_limits(None, (0, 1)) == [None, None]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_limits_hold_every_particle_at_any_scale(scale):
    positions = np.random.default_rng(0).random((5, 4, 3)) * scale
    positions[..., 2], positions[2, 1] = 3 * scale, np.nan
    low, high = np.transpose(path_limits(read_paths(positions), (0, 1, 2)))
    assert (low < np.nanmin(positions, axis=(0, 1))).all()
    assert (high > np.nanmax(positions, axis=(0, 1))).all()
    assert (high - low < 1.2 * scale).all()


def test_limits_of_nothing_and_of_one_point():
    assert path_limits(read_paths(np.full((2, 1, 3), np.nan)), (0, 1)) == [(0, 1)] * 2
    ((low, high), _) = path_limits(read_paths(np.zeros((2, 1, 3))), (0, 1))
    assert low < 0 < high


TIMES = np.linspace(0, 4, 41)


def longest_step(stretches):
    return max(np.abs(np.diff(s.points, axis=0)).max() for s in stretches)


@pytest.mark.parametrize("period", [(1, 1, 0), (1, 0, 0)])
def test_lines_break_at_periodic_wraps(period):
    record = uniform([0.7, 0.4, 0.1], np.random.default_rng(0).random((5, 3)), TIMES)
    wrapped = uniform([0.7, 0.4, 0.1], record.positions[0], TIMES, period=period)
    stretches = find_stretches(read_paths(wrapped), np.arange(5), 40)
    assert longest_step(stretches) == pytest.approx(0.07)
    cells = np.floor(record.positions[..., : sum(period)])
    wraps = (np.diff(cells, axis=0) != 0).any(axis=-1)
    np.testing.assert_array_equal(joined_steps(wrapped), ~wraps)


def test_lines_break_where_a_slot_is_used_again():
    record = recycling_channel(0.5, 1.0, [0.0, 0.3], TIMES)
    stretches = find_stretches(record, np.arange(2), 40)
    assert longest_step(stretches) == pytest.approx(0.05)
    assert [s.particle for s in stretches].count(0) == 2
    assert sum(len(s.points) - 1 for s in stretches) == joined_steps(record).sum()


def test_lines_end_where_a_particle_is_absorbed():
    record = absorbing_channel(1.0, 2.0, [0.0, 1.0], TIMES)
    stretches = find_stretches(record, np.arange(2), 40)
    assert [len(s.points) for s in stretches] == record.alive.sum(axis=0).tolist()
    assert all(np.isfinite(s.points).all() for s in stretches)


def test_lines_go_to_the_frame_asked_for_in_the_order_asked_for():
    record = uniform([1, 0, 0], np.zeros((3, 3)), TIMES)
    stretches = find_stretches(record, np.array([2, 0]), 4)
    assert [s.particle for s in stretches] == [2, 0]
    assert all(len(s.points) == 5 for s in stretches)
    assert find_stretches(record, np.array([1]), 0) == []
