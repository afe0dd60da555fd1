import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtrace.fields.analytic import UniformFlow, as_field
from jaxtrace.tracking.boundaries.base import compose_boundaries
from jaxtrace.tracking.boundaries.box import box_boundary
from jaxtrace.tracking.tracker import create_tracker
from jaxtrace.types import ParticleStatus
from trace_boundaries import cross

DTYPES = [np.float32, np.float64]
apply = eqx.filter_jit(lambda boundary, x: boundary(x))


def triangle(x, lo, hi):
    phase = np.mod(x - lo, 2 * (hi - lo))
    return lo + np.where(phase <= hi - lo, phase, 2 * (hi - lo) - phase)


def repeat(x, lo, hi):
    return lo + np.mod(x - lo, hi - lo)


def normal(x):
    """Numbers below the normal range count as zero on most devices: avoid them."""
    tiny = np.finfo(x.dtype).tiny
    return np.where((x != 0) & (np.abs(x) < tiny), np.sign(x) * tiny, x)


@st.composite
def boxes_and_points(draw, dtype):
    """Bounds and points around them, with a good share exactly on a face."""
    scale = draw(st.sampled_from([1e-6, 1.0, 1e5]))
    lo = np.array(draw(st.lists(st.floats(-3, 3), min_size=3, max_size=3)))
    width = np.array(draw(st.lists(st.floats(0.01, 4), min_size=3, max_size=3)))
    lo, hi = (scale * lo).astype(dtype), (scale * (lo + width)).astype(dtype)
    along = draw(st.lists(st.floats(-7, 7), min_size=12, max_size=12))
    points = lo + np.array(along, dtype).reshape(4, 3) * (hi - lo)
    near = np.stack([lo, hi, np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf)])
    points = normal(np.concatenate([points, near], dtype=dtype))
    return normal(np.stack([lo, hi])).astype(float), points


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", ["periodic", "reflective", "clamping"])
@settings(max_examples=30)
@given(data=st.data())
def test_rules_are_the_remainder_the_triangle_wave_and_clipping(rule, dtype, data):
    bounds, points = data.draw(boxes_and_points(dtype))
    with jax.enable_x64(dtype == np.float64):
        found = np.asarray(apply(box_boundary(bounds, rule), points))
    assert found.dtype == dtype
    lo, hi = bounds.astype(dtype)
    inside = (points >= lo) & (points <= hi)
    if rule == "periodic":
        inside &= points < hi
        assert np.all(found < hi)
    assert np.all((found >= lo) & (found <= hi))
    np.testing.assert_array_equal(found[inside], points[inside])
    naive = {"periodic": repeat, "reflective": triangle, "clamping": np.clip}[rule]
    expected = naive(points.astype(float), lo.astype(float), hi.astype(float))
    error = np.abs(found - expected)
    if rule == "periodic":
        error = np.minimum(error, (hi - lo).astype(float) - error)
    room = np.abs(points) + np.abs(bounds).max(0)
    assert np.all(error <= 16 * np.finfo(dtype).eps * room)


UNIT = [[0] * 3, [1] * 3]


def rows(points, dtype=np.float32):
    """Eight points, as many as above: one program serves all."""
    return np.resize(np.array(points, dtype), (8, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_hair_below_a_repeating_axis_is_not_its_far_end(dtype):
    with jax.enable_x64(dtype == np.float64):
        points = rows([[-1e-9, -1e-30, 1.0]], dtype)
        found = np.asarray(apply(box_boundary(UNIT, "periodic"), points))
    assert np.all((found >= 0) & (found < 1))
    assert found[0, 2] == 0


@pytest.mark.parametrize("rule", ["periodic", "reflective", "clamping", "absorbing"])
def test_a_far_overshoot_ends_in_the_box_and_nan_harms_nobody(rule):
    points = rows([[1e30, -1e30, 3e9], [0.5, 0.5, 0.5], [np.nan, 0.5, 7.0]])
    found = np.asarray(apply(box_boundary(UNIT, rule), points))
    if rule == "absorbing":
        assert np.isnan(found[0]).all()
    else:
        assert np.all((found[0] >= 0) & (found[0] <= 1))
    np.testing.assert_array_equal(found[1:3], points[1:3])


@pytest.mark.parametrize("rule", ["periodic", "reflective", "clamping", "absorbing"])
@pytest.mark.parametrize(
    "bounds", [[0, 1, 0, 1], [[0, 1], [0, 1]], [[0, 0, 0.25], [1, 1, 0.25]]]
)
def test_an_axis_without_width_is_left_alone(rule, bounds):
    points = rows([[0.2, 0.3, 5.0], [0.6, 0.7, -5.0]])
    np.testing.assert_array_equal(apply(box_boundary(bounds, rule), points), points)


def test_a_box_thinner_than_a_rounding_still_holds_particles():
    bounds = [[1, 0, 0], [1 + 1e-12, 1, 1]]
    for rule in ("periodic", "reflective", "clamping"):
        found = apply(box_boundary(bounds, rule), rows([[1.5, 0.5, 0.5]]))
        np.testing.assert_array_equal(found, [[1, 0.5, 0.5]] * 8)


def test_two_dimensional_points_are_bounded_too():
    found = box_boundary([0, 1, 0, 1], "reflective")(np.array([[1.25, -0.25]], "f4"))
    np.testing.assert_array_equal(found, [[0.75, 0.25, 0]])


def test_every_axis_keeps_its_own_rule():
    boundary = box_boundary(UNIT, ["periodic", "reflective", "clamping"])
    found = boundary(np.full((1, 3), 1.25, np.float32))
    np.testing.assert_array_equal(found, [[0.25, 0.75, 1.0]])
    assert boundary.period == (1.0, 0.0, 0.0)


def test_stage_points_wrap_along_repeating_axes_only():
    boundary = box_boundary(UNIT, ["periodic", "reflective", "absorbing"])
    found = boundary.wrap(jnp.full((1, 3), 1.25))
    np.testing.assert_array_equal(found, [[0.25, 1.25, 1.25]])
    mirrors = box_boundary(UNIT, "reflective")
    points = jnp.full((1, 3), 1.25)
    assert mirrors.wrap(points) is points


def test_absorbed_on_the_face_when_it_was_crossed():
    before = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.9, 0.1, 0.5]], "f4")
    after = np.array([[1.5, 0.75, 0.5], [0.75, 0.75, 0.5], [1.1, -0.4, 0.5]], "f4")
    boundary = box_boundary(UNIT, "absorbing")
    found = cross(boundary, before, after, start=2.0, end=4.0)
    np.testing.assert_array_equal(found.alive, [False, True, False])
    np.testing.assert_array_equal(found.positions[0], [1.0, 0.625, 0.5])
    assert found.positions[2, 1] == 0
    np.testing.assert_allclose(found.positions[2, 0], 0.94, rtol=1e-6)
    np.testing.assert_allclose(found.exit_time, [3.0, np.nan, 2.4], rtol=1e-6)
    assert found.status[0] == ParticleStatus.ABSORBED


def test_the_exit_point_is_mapped_along_the_other_axes():
    rules = ["absorbing", "periodic", "reflective"]
    boundary = box_boundary(UNIT, rules)
    before = np.array([[0.5, 0.9, 0.9]], np.float32)
    after = np.array([[1.5, 1.5, 1.5]], np.float32)
    found = cross(boundary, before, after)
    np.testing.assert_allclose(found.positions, [[1.0, 0.2, 0.8]], rtol=1e-5)


def test_who_starts_outside_is_gone_at_once():
    boundary = box_boundary(UNIT, "absorbing")
    before = np.array([[1.5, 0.5, 0.5], [1.5, 0.5, 0.5], [1.5, 0.5, 0.5]], "f4")
    after = before + np.array([[0.25, 0, 0], [-0.25, 0, 0], [-0.75, 0, 0]], "f4")
    found = cross(boundary, before, after, start=1.0, end=2.0)
    np.testing.assert_array_equal(found.alive, [False, False, True])
    np.testing.assert_array_equal(found.exit_time, [1, 1, np.nan])


def test_outside_value_stands_for_who_is_gone():
    boundary = box_boundary(UNIT, "absorbing", -7.0)
    points = np.array([[2, 0.5, 0.5], [0.5, 0.5, 0.5], [np.inf, 0, 0]], np.float32)
    found = boundary(points)
    np.testing.assert_array_equal(found, [[-7] * 3, [0.5] * 3, [-7] * 3])


@pytest.mark.parametrize("rule", ["periodic", "reflective", "clamping"])
def test_gradients_are_those_of_a_move_or_a_mirror(rule):
    boundary = box_boundary(UNIT, rule)
    point = jnp.array([[0.4, 1.2, -0.3]])
    slope = jax.jit(jax.jacobian(lambda x: boundary(x)[0]))(point)[:, 0]
    expected = {"periodic": [1, 1, 1], "reflective": [1, -1, -1], "clamping": [1, 0, 0]}
    np.testing.assert_allclose(slope, np.diag(np.array(expected[rule], float)))


@pytest.mark.parametrize(("low", "high"), [(150, 210), (-210, -150)])
def test_boxes_over_the_seam_of_longitudes_are_refused(low, high):
    """East of 180 particles are at -180 and above, outside of such a box."""
    flow = as_field(UniformFlow(), geometry="sphere")
    box = box_boundary([low, high, -30, 30], ["absorbing", "open", "open"])
    seeds = [[179.0, 0.0, 0.0]]
    for limit in (box, compose_boundaries(None, box)):
        track = create_tracker("euler", flow, limit).track_particles
        with pytest.raises(ValueError, match=rf"{low} to {high} degrees east .* -180"):
            track(seeds, (0, 1), 2)
    other = box_boundary([low, high, -30, 30], ["open", "absorbing", "open"])
    create_tracker("euler", flow, other).track_particles(seeds, (0, 1), 2)


def test_unknown_rules_are_named():
    with pytest.raises(ValueError, match=r"'sticky'.*periodic"):
        box_boundary(UNIT, "sticky")
