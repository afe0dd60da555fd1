import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtrace.tracking.boundaries.solids import (
    cylindrical_boundary,
    spherical_boundary,
)
from jaxtrace.types import ParticleStatus
from trace_boundaries import cross

pytestmark = pytest.mark.slow  # compiles many programs

apply = eqx.filter_jit(lambda boundary, x: boundary(x))
CONDITIONS = ["reflective", "absorbing", "clamping"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
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
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
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


def test_a_mirror_returns_what_went_beyond():
    found = spherical_boundary((0, 0, 0), 1.0, "reflective")(
        np.array([[1.25, 0, 0], [0, 0, -3.5]], "f4")
    )
    np.testing.assert_allclose(found, [[0.75, 0, 0], [0, 0, 0.5]], atol=1e-6)


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
    found = cylindrical_boundary(axis, (2, 2), 1.0, 2.0, "reflective")(points)
    expected = points.copy()
    expected[0, across[0]], expected[1, axis] = 2.75, 0.25
    np.testing.assert_allclose(found, expected, atol=1e-6)
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
    with pytest.raises(ValueError, match="across y"):
        cylindrical_boundary(1, (0,), 1.0, None, "reflective")
