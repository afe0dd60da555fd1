import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.boundaries.base import (
    Open,
    StepContext,
    as_boundary,
    compose_boundaries,
    reach,
)
from jaxtrace.tracking.boundaries.box import box_boundary, reflective_boundary
from jaxtrace.tracking.boundaries.channel import channel_boundary
from jaxtrace.tracking.boundaries.solids import spherical_boundary
from jaxtrace.tracking.particles import Draw, noise_key
from jaxtrace.types import ParticleStatus
from trace_boundaries import BOX, cross


@pytest.mark.parametrize(
    ("before", "after", "face", "expected"),
    [
        (0.0, 2.0, 1.0, 0.5),
        (2.0, 0.0, 0.5, 0.75),
        (0.0, 1.0, 1.0, 1.0),
        (1.0, 1.0, 1.0, 0.0),  # stays where it is
        (1.5, 1.2, 1.0, 0.0),  # beyond before and after
        (1.5, 1.8, 1.0, 0.0),
    ],
)
def test_how_far_along_a_face_is_met(before, after, face, expected):
    found = reach(jnp.array([before]), jnp.array([after]), jnp.array(face))
    np.testing.assert_allclose(found, [expected])


@pytest.mark.parametrize("end", [4.0, 0.0])
def test_instants_follow_the_clock_both_ways(end):
    draw = Draw(noise_key(0), jnp.zeros(1, np.int32), jnp.zeros((), np.int32))
    context = StepContext(jnp.zeros((1, 3)), jnp.array(2.0), jnp.array(end), draw)
    np.testing.assert_allclose(context.time_at(jnp.array([0.25])), 2 + (end - 2) / 4)


def test_an_open_boundary_changes_nothing():
    points = np.array([[1e9, -3.0, np.nan], [0, 0, 0]], np.float32)
    boundary = Open()
    np.testing.assert_array_equal(boundary(points), points)
    assert boundary.period == (0, 0, 0)
    assert not boundary.recycles
    assert np.isnan(boundary.fill)


POINTS = np.array([[-0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], np.float32)


def test_functions_of_jax_are_compiled():
    boundary = as_boundary(jnp.abs)
    np.testing.assert_array_equal(boundary(POINTS), np.abs(POINTS))
    np.testing.assert_array_equal(jax.jit(boundary)(POINTS), np.abs(POINTS))
    walls = reflective_boundary([[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(jax.jit(walls)(POINTS), np.abs(POINTS))


def write_into(positions):
    positions[positions < 0] = 0
    return positions


def test_functions_of_numpy_are_called_with_a_warning():
    with pytest.warns(UserWarning, match=r"write_into.*jax\.numpy"):
        boundary = as_boundary(write_into)
    expected = np.maximum(POINTS, 0)
    np.testing.assert_array_equal(boundary(POINTS), expected)
    found = jax.jit(boundary)(POINTS)
    np.testing.assert_array_equal(found, expected)


def test_who_becomes_nan_is_absorbed():
    boundary = as_boundary(lambda x: jnp.where(x < 0, jnp.nan, x))
    found = cross(boundary, POINTS + 1, POINTS, end=3.0)
    np.testing.assert_array_equal(found.alive, [False, True])
    assert found.status[0] == ParticleStatus.ABSORBED
    np.testing.assert_array_equal(found.exit_time, [3, np.nan])


def test_other_things_are_refused():
    with pytest.raises(ValueError, match=r"3 is not a boundary.*function"):
        as_boundary(3)


UNIT = [[0] * 3, [1] * 3]


def along(axis, rule):
    return box_boundary(UNIT, [rule if a == axis else "open" for a in "xyz"])


def test_boundaries_act_from_left_to_right():
    double = lambda x: 2 * x
    shift = lambda x: x + 1
    points = np.array([[1.0, 2.0, 3.0]], np.float32)
    np.testing.assert_array_equal(
        compose_boundaries(double, shift)(points), [[3, 5, 7]]
    )
    np.testing.assert_array_equal(
        compose_boundaries(shift, double)(points), [[4, 6, 8]]
    )
    np.testing.assert_array_equal(compose_boundaries()(points), points)


def test_three_axes_in_a_row_are_one_box():
    rng = np.random.default_rng(0)
    points = rng.uniform(-3, 4, (100, 3)).astype(np.float32)
    row = compose_boundaries(
        along("x", "periodic"), along("y", "reflective"), along("z", "absorbing")
    )
    box = box_boundary(UNIT, ["periodic", "reflective", "absorbing"])
    np.testing.assert_array_equal(row(points), box(points))
    stage = jnp.asarray(points)
    np.testing.assert_array_equal(row.wrap(stage), box.wrap(stage))
    assert row.period == box.period


def test_a_way_that_wrapped_ends_where_it_leaves():
    row = compose_boundaries(along("x", "periodic"), along("y", "absorbing"))
    before = np.array([[0.9, 0.5, 0.5]], np.float32)
    after = np.array([[1.3, 1.5, 0.5]], np.float32)
    found = cross(row, before, after)
    np.testing.assert_allclose(found.positions[:, 1:], [[1.0, 0.5]])
    # Half way it was at 1.1, which is 0.1 once wrapped.
    np.testing.assert_allclose(found.positions[0, 0] % 1, 0.1, rtol=1e-5)


def test_a_newcomer_does_not_cross_on_its_way_in():
    inlet = channel_boundary(BOX, "x", concentrations=(2, 5, 3))
    row = compose_boundaries(inlet, spherical_boundary((0, 0.5, 0.5), 0.4, "absorbing"))
    before = np.array([[1.9, 0.5, 0.5]], np.float32)
    after = np.array([[2.1, 0.5, 0.5]], np.float32)
    found = cross(row, before, after)
    assert row.recycles
    assert found.generation[0] == 1
    np.testing.assert_array_equal(found.positions, [[0, 0.5, 0.5]])
    assert found.status[0] == ParticleStatus.ACTIVE


def test_the_first_value_for_the_gone_counts():
    plain = box_boundary(UNIT, "reflective")
    marked = box_boundary(UNIT, "absorbing", -1.0)
    assert compose_boundaries(plain, marked).fill == -1
    assert np.isnan(compose_boundaries(plain).fill)
