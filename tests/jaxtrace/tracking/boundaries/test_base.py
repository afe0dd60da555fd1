import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.boundaries.base import Open, StepContext, reach
from jaxtrace.tracking.particles import Draw, noise_key


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


def test_nobody_is_bounded_without_fuss():
    assert Open()(np.zeros((0, 3), np.float32)).shape == (0, 3)
