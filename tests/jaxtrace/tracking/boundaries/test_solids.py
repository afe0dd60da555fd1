import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxtrace.tracking.boundaries.solids import (
    cylindrical_boundary,
    distance_based_boundary,
    spherical_boundary,
)
from jaxtrace.types import ParticleStatus
from trace_boundaries import cross

apply = eqx.filter_jit(lambda boundary, x: boundary(x))
CONDITIONS = ["reflective", "absorbing", "clamping"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@settings(max_examples=20)  # of 16 points each
@given(seed=st.integers(0, 1000))
def test_a_ball_mirrors_along_the_radius(dtype, scale, seed):
    rng = np.random.default_rng(seed)
    center, radius = scale * rng.normal(0, 1, 3), scale * rng.uniform(0.2, 2)
    points = (center + scale * rng.normal(0, 3, (16, 3))).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = np.asarray(
            apply(spherical_boundary(center, radius, "reflective"), points)
        )
    offset = points.astype(float) - center
    far = np.linalg.norm(offset, axis=1)
    phase = np.mod(far + radius, 4 * radius)
    folded = np.where(phase <= 2 * radius, phase, 4 * radius - phase) - radius
    expected = center + offset * (folded / far)[:, None]
    room = 64 * np.finfo(dtype).eps * (far.max() + np.abs(center).max())
    np.testing.assert_allclose(found, expected, atol=room)
    inside = np.linalg.norm(points - center.astype(dtype), axis=1) <= radius * (
        1 - 1e-6
    )
    np.testing.assert_array_equal(found[inside], points[inside])


@pytest.mark.parametrize("condition", ["reflective", "clamping"])
@pytest.mark.parametrize("axis", [None, 1])
def test_what_comes_back_counts_as_inside(condition, axis):
    rng = np.random.default_rng(5)
    center = (3.0, -40.0, 0.25)
    if axis is None:
        shape = spherical_boundary(center, 0.5, condition)
    else:
        shape = cylindrical_boundary(axis, center, 0.5, 1.0, condition)
    points = (np.array(center) + rng.normal(0, 1, (5000, 3))).astype(np.float32)
    once = apply(shape, points)
    np.testing.assert_array_equal(apply(shape, once), once)


def test_the_center_stays_and_has_a_slope():
    shape = spherical_boundary((0, 0, 0), 1.0, "reflective")
    slope = jax.jacobian(lambda x: shape(x)[0])(jnp.zeros((1, 3)))[:, 0]
    np.testing.assert_array_equal(slope, np.eye(3))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_nan_stays_and_harms_nobody(condition):
    points = np.array([[0.1, 0.2, 0.3], [np.nan, 0, 9], [0, 0, 0]], np.float32)
    for shape in (
        spherical_boundary((0, 0), 1.0, condition),
        cylindrical_boundary(2, (0, 0), 1, 2, condition),
    ):
        np.testing.assert_array_equal(shape(points), points)


def test_clamping_ends_on_the_surface():
    points = np.array([[1, 5, 0], [5, 0, 4]], np.float32)
    found = spherical_boundary((1, 0, 0), 2.0, "clamping")(points)
    diagonal = np.sqrt(2)
    expected = [[1, 2, 0], [1 + diagonal, 0, diagonal]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_absorbed_where_the_segment_leaves_the_spherical_boundary():
    before = np.array([[0.6, 0, 0], [0.6, 0, 0], [0, 0, 0], [2, 0, 0]], np.float32)
    after = np.array([[0.6, 1.6, 0], [-3.4, 0, 0], [0.5, 0.5, 0], [3, 0, 0]], "f4")
    found = cross(
        spherical_boundary((0, 0, 0), 1.0, "absorbing"),
        before,
        after,
        start=1.0,
        end=2.0,
    )
    np.testing.assert_array_equal(found.alive, [False, False, True, False])
    np.testing.assert_allclose(found.positions[:2], [[0.6, 0.8, 0], [-1, 0, 0]], 1e-5)
    np.testing.assert_allclose(found.exit_time, [1.5, 1.4, np.nan, 1.0], rtol=1e-5)
    assert found.status[0] == ParticleStatus.ABSORBED
    np.testing.assert_array_equal(found.positions[3], before[3])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_crossings_do_not_depend_on_the_unit(scale):
    rng = np.random.default_rng(6)
    before = rng.uniform(-0.5, 0.5, (100, 3))
    after = before + rng.normal(0, 2, (100, 3))
    found = cross(
        spherical_boundary((0, 0, 0), scale, "absorbing"),
        (scale * before).astype(np.float32),
        (scale * after).astype(np.float32),
    )
    gone = ~np.asarray(found.alive)
    assert gone.sum() > 50
    far = np.linalg.norm(np.asarray(found.positions)[gone] / scale, axis=1)
    np.testing.assert_allclose(far, 1, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_cylinder_is_round_across_and_flat_along(axis):
    across = [a for a in range(3) if a != axis]
    points = np.zeros((3, 3), np.float32)
    points[0, across] = [3.25, 2.0]  # a quarter beyond the surface
    points[1, across], points[1, axis] = [2.0, 2.0], 1.75  # three quarters beyond
    points[2, across], points[2, axis] = [2.5, 2.0], -0.5
    found = apply(cylindrical_boundary(axis, (2, 2), 1.0, 2.0, "reflective"), points)
    expected = points.copy()
    expected[0, across[0]], expected[1, axis] = 2.75, 0.25
    np.testing.assert_allclose(found, expected, atol=1e-6)
    if axis != 2:  # the same axes, and another rule
        return
    found = cylindrical_boundary(axis, (2, 2), 1.0, 2.0, "clamping")(points)
    expected[0, across[0]], expected[1, axis] = 3.0, 1.0
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_cylinder_without_height_has_no_ends():
    points = np.array([[0.5, 0, 1e6]], np.float32)
    for condition in CONDITIONS:
        shape = cylindrical_boundary(2, (0, 0), 1.0, None, condition)
        np.testing.assert_array_equal(shape(points), points)


def test_a_cylinder_takes_what_leaves_it_first():
    shape = cylindrical_boundary(2, (0, 0, 5), 1.0, 2.0, "absorbing")
    before = np.array([[0, 0, 5], [0, 0, 5], [0, 0, 5]], np.float32)
    after = np.array([[4, 0, 7], [2, 0, 9], [0.5, 0, 5.5]], np.float32)
    found = cross(shape, before, after)
    np.testing.assert_array_equal(found.alive, [False, False, True])
    expected = [[1, 0, 5.5], [0.5, 0, 6], [0.5, 0, 5.5]]
    np.testing.assert_allclose(found.positions, expected, rtol=1e-6)
    np.testing.assert_allclose(found.exit_time, [0.25, 0.25, np.nan], rtol=1e-6)


def test_what_makes_no_shape_is_refused():
    with pytest.raises(ValueError, match=r"'sticky'.*reflective"):
        spherical_boundary((0, 0), 1.0, "sticky")
    with pytest.raises(ValueError, match="radius 0"):
        spherical_boundary((0, 0), 0)
    with pytest.raises(ValueError, match=r"shape \(4,\).*2 or 3"):
        spherical_boundary((0, 0, 0, 0), 1.0, "reflective")
    with pytest.raises(ValueError, match="along x and z"):
        cylindrical_boundary(1, (0,), 1.0, None, "reflective")


BOX = [[-2, -2, -2], [2, 2, 2]]
START = np.array([[0.1, 0.2, -0.1], [0.5, 0, 0], [-0.3, 0.3, 0.3]], np.float32)
END = np.array([[1.5, 0.2, -0.1], [0.6, 0, 0], [-0.3, 1.1, 0.9]], np.float32)


def from_origin(positions):
    return jnp.sqrt(jnp.sum(positions**2, 1)) - 1


def from_origin_by_numpy(positions):
    return np.linalg.norm(np.asarray(positions), axis=1) - 1


def domain(outside, inside="clamping", function=from_origin):
    return distance_based_boundary(BOX, function, inside, outside)


@pytest.mark.parametrize("condition", ["reflective", "clamping", "absorbing"])
def test_the_distance_from_a_center_is_a_ball(condition):
    found = cross(domain(condition), START, END)
    expected = cross(spherical_boundary((0, 0, 0), 1.0, condition), START, END)
    np.testing.assert_allclose(found.positions, expected.positions, atol=2e-6)
    np.testing.assert_array_equal(found.alive, expected.alive)
    np.testing.assert_allclose(found.exit_time, expected.exit_time, rtol=1e-5)


def test_crossings_are_found_to_the_last_digit_of_doubles():
    with jax.enable_x64(True):
        start, end = START.astype(float), END.astype(float)
        found = cross(domain("absorbing"), start, end)
    gone = ~np.asarray(found.alive)
    np.testing.assert_allclose(
        np.linalg.norm(np.asarray(found.positions)[gone], axis=1), 1, rtol=1e-14
    )


def test_inside_the_rule_of_the_box_holds():
    everywhere = lambda positions: -jnp.ones_like(positions[:, 0])
    limit = domain("absorbing", "periodic", everywhere)
    points = np.array([[2.5, 0, 0], [0.5, 0, 0]], np.float32)
    np.testing.assert_allclose(limit(points), [[-1.5, 0, 0], [0.5, 0, 0]])
    assert limit.period == (4.0, 4.0, 4.0)


def test_outside_may_wrap_or_be_open():
    points = np.array([[2.5, 0, 0], [0.5, 0, 0]], np.float32)
    wrapped = domain("periodic", "periodic")(points)
    np.testing.assert_allclose(wrapped, [[-1.5, 0, 0], [0.5, 0, 0]])
    np.testing.assert_array_equal(domain("open")(points), points)


def test_a_mirror_that_fails_leaves_the_particle_at_the_crossing():
    found = cross(domain("reflective"), START[:1], np.array([[9.0, 0.2, -0.1]], "f4"))
    inside = from_origin(found.positions)
    assert -1e-5 < inside[0] <= 0
    np.testing.assert_allclose(found.positions[0, 1:], START[0, 1:], atol=1e-6)


def test_functions_of_numpy_are_called_on_the_host():
    with pytest.warns(UserWarning, match=r"from_origin_by_numpy.*jax\.numpy"):
        limit = domain("absorbing", function=from_origin_by_numpy)
    found = cross(limit, START, END)
    expected = cross(domain("absorbing"), START, END)
    np.testing.assert_allclose(found.positions, expected.positions, atol=1e-6)
    assert found.status[0] == ParticleStatus.ABSORBED


@pytest.mark.filterwarnings("ignore:from_origin_by_numpy")
def test_surfaces_that_need_a_gradient_say_so():
    with pytest.raises(TypeError, match=r"'clamping' needs the gradient"):
        domain("clamping", function=from_origin_by_numpy)


def test_what_makes_no_domain_is_refused():
    with pytest.raises(ValueError, match=r"'sticky'.*absorbing"):
        domain("sticky")
    with pytest.raises(ValueError, match=r"shape \(2, 3\).*one signed distance"):
        domain("absorbing", function=jnp.abs)
