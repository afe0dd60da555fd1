import numpy as np
import pytest

from jaxtrace.bounds import box_bounds
from jaxtrace.tracking.boundaries.channel import ChannelBoundary, GridEntry, RandomEntry
from jaxtrace.tracking.boundaries.inlet import (
    absorbing_channel,
    axis_number,
    channel_boundary,
    channel_ends,
    direction,
    face_entry,
    lattice_counts,
    make_channel,
    recycling_channel,
)
from trace_boundaries import BOX


@pytest.mark.parametrize(("axis", "number"), [("x", 0), ("z", 2), (1, 1)])
def test_axes_by_name_or_number(axis, number):
    assert axis_number(axis) == number


@pytest.mark.parametrize("axis", ["w", "", "xy", 3, -1, None])
def test_unknown_axes_are_named(axis):
    with pytest.raises(ValueError, match="x, y, z"):
        axis_number(axis)


def test_ends_are_faces_or_coordinates():
    box, forward = channel_ends(BOX, 0, "min", "max")
    np.testing.assert_array_equal([box.lo, box.hi], BOX)
    assert forward
    box, forward = channel_ends(BOX, 0, 1.75, "min")
    assert (box.lo[0], box.hi[0], forward) == (0.0, 1.75, False)
    np.testing.assert_array_equal(box_bounds(BOX).hi, BOX[1])


@pytest.mark.parametrize(
    ("planes", "message"),
    [
        (("min", "min"), "both at x = 0"),
        ((1.0, 1.0), "both at x = 1"),
        (("left", "max"), "inlet 'left'.*'min'"),
        (("min", np.inf), "outlet inf"),
    ],
)
def test_ends_that_make_no_channel_are_refused(planes, message):
    with pytest.raises(ValueError, match=message):
        channel_ends(BOX, 0, *planes)


def test_a_flat_axis_is_no_flow_axis():
    with pytest.raises(ValueError, match="both at z = 0"):
        channel_boundary([0, 1, 0, 1], "z", concentrations=(3, 3))


def test_counts_come_by_name_or_in_order():
    assert lattice_counts({"y": 4, "z": 5}, (1, 2)) == {1: 4, 2: 5}
    assert lattice_counts((9, 4, 5), (1, 2)) == {1: 4, 2: 5}
    assert lattice_counts((9, 4), (1,)) == {1: 4}


@pytest.mark.parametrize(
    "counts", [None, {"x": 4, "y": 3}, (9, 4), {"y": 0, "z": 1}, {"y": 2.5, "z": 1}]
)
def test_a_grid_needs_a_count_for_every_axis_of_the_face(counts):
    with pytest.raises(ValueError, match=r"concentrations.*counts per axis"):
        lattice_counts(counts, (1, 2))


def test_entries_by_distribution():
    box = box_bounds(BOX)
    grid = face_entry(box, 0, True, "grid", (1, 2, 3), 0)
    assert isinstance(grid, GridEntry)
    assert {axis: len(nodes) for axis, nodes in grid.lattices.items()} == {1: 2, 2: 3}
    for name in ("uniform", "random"):
        entry = face_entry(box, 0, False, name, None, 0)
        assert isinstance(entry, RandomEntry)
        assert not entry.gaussian
        assert entry.plane == 2.0
    with pytest.raises(ValueError, match=r"'even'.*gaussian"):
        face_entry(box, 0, True, "even", None, 0)


def test_directions_name_the_ends():
    assert direction("positive") == ("min", "max")
    assert direction("negative") == ("max", "min")
    with pytest.raises(ValueError, match=r"'up'.*positive"):
        direction("up")


def test_channels_carry_their_rules():
    recycling = recycling_channel(
        BOX, "y", ("max", "min"), "reflective", "uniform", None, 0
    )
    assert (recycling.axis, recycling.forward) == (1, False)
    assert (recycling.inlet, recycling.outlet) == ("reflective", "recycling")
    assert recycling.mirrors == (0, 2)
    plain = absorbing_channel(BOX, "x", ("min", "max"), None, 0)
    assert isinstance(plain, ChannelBoundary)
    assert not plain.recycles
    with pytest.raises(ValueError, match=r"'sticky'.*absorbing"):
        make_channel(box_bounds(BOX), 0, True, "sticky", "absorbing")


@pytest.mark.parametrize(
    ("inlet", "outlet", "message"),
    [("open", "absorbing", "inlet 'open'"), ("none", "none", "outlet 'none'")],
)
def test_unknown_ends_are_named(inlet, outlet, message):
    with pytest.raises(ValueError, match=message):
        channel_boundary(BOX, "x", inlet, outlet)
