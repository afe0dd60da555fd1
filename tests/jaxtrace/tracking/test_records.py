import numpy as np
import pytest

from jaxtrace.tracking.trajectory import (
    merge_trajectories,
)
from trace_records import absorbing_channel, recycling_channel, uniform

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
