import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.boundaries.solids import (
    distance_based_boundary,
    spherical_boundary,
)
from jaxtrace.types import ParticleStatus
from trace_boundaries import cross

pytestmark = pytest.mark.slow  # compiles many programs

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
