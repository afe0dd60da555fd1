"""Oracle: the same box written in every accepted form."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtrace.bounds import box_bounds

LO, HI = [0.0, -1.0, 2.0], [4.0, 1.0, 3.0]
FORMS = [
    [LO, HI],
    (np.array(LO, np.float32), np.array(HI, np.float32)),
    [jnp.array(LO), jnp.array(HI)],
    np.array([LO, HI]),
    list(zip(LO, HI, strict=True)),
    np.array([LO, HI]).T,
    [0, 4, -1, 1, 2, 3],
    jnp.array([[0.0, 4.0], [-1.0, 1.0], [2.0, 3.0]]),
]


@pytest.mark.parametrize("bounds", FORMS)
def test_every_form_is_the_same_box(bounds):
    box = box_bounds(bounds)
    np.testing.assert_array_equal(box.lo, LO)
    np.testing.assert_array_equal(box.hi, HI)
    np.testing.assert_array_equal(box.size, [4, 2, 1])
    assert box.active.all()
    assert box.lo.dtype == box.hi.dtype == np.float64


@pytest.mark.parametrize("bounds", [[[0, 2], [1, 5]], [0, 2, 1, 5]])
def test_two_dimensions_leave_z_alone(bounds):
    box = box_bounds(bounds)
    np.testing.assert_array_equal(box.lo, [0, 1, 0])
    np.testing.assert_array_equal(box.hi, [2, 5, 0])
    np.testing.assert_array_equal(box.active, [True, True, False])


def test_a_flat_axis_is_accepted_and_left_alone():
    box = box_bounds([[0, 0, 5], [1, 1, 5]])
    np.testing.assert_array_equal(box.active, [True, True, False])
    assert box.lo[2] == box.hi[2] == 5
    line = box_bounds([[0, 1], [0.5, 0.5]])
    np.testing.assert_array_equal(line.active, [True, False, False])


def test_a_box_stays_what_it_is():
    box = box_bounds(FORMS[0])
    assert box_bounds(box) is box


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([[0, 2, 0], [1, 1, 1]], "along y are 2 to 1"),
        ([0, 1, 0, 1, 3, 2], "along z are 3 to 2"),
        ([0, 1, 2], r"shape \(3,\)"),
        (np.zeros((3, 3)), r"shape \(3, 3\)"),
        ([[0, 1], [2, 3, 4]], "are not numbers"),
        ("box", "are not numbers"),
        ([[0, 0, 0], [1, np.inf, 1]], "not finite"),
        ([[0, 0, 0], [1, np.nan, 1]], "not finite"),
    ],
)
def test_what_is_wrong_is_said(bounds, words):
    with pytest.raises(ValueError, match=words):
        box_bounds(bounds)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
    st.lists(st.floats(0, 1e6), min_size=3, max_size=3),
    st.floats(1e-12, 1e12),
)
@settings(max_examples=25)
def test_boxes_of_any_scale(lo, size, scale):
    lower = np.array(lo) * scale
    upper = lower + np.array(size) * scale
    pairs = box_bounds(np.stack([lower, upper], axis=1))
    corners = box_bounds(np.stack([lower, upper]))
    for box in (pairs, corners):
        np.testing.assert_array_equal(box.lo, lower)
        np.testing.assert_array_equal(box.hi, upper)
        np.testing.assert_array_equal(box.active, upper > lower)


def test_two_corners_in_the_plane_are_told_from_pairs():
    for corners, lower, upper in [
        ([[0, 0], [2, 3]], [0, 0, 0], [2, 3, 0]),
        ([[-1, 0], [1, 1]], [-1, 0, 0], [1, 1, 0]),
    ]:
        box = box_bounds(corners)
        np.testing.assert_array_equal(box.lo, lower)
        np.testing.assert_array_equal(box.hi, upper)
    pairs = box_bounds([[-1, 1], [0, 2]])  # both readings hold: pairs, as everywhere
    np.testing.assert_array_equal(pairs.hi, [1, 2, 0])
