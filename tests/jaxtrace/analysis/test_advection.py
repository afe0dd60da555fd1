import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.analysis.flow_maps import Advection, count_steps, shear
from jaxtrace.fields.analytic import ABCFlow, Saddle, UniformFlow, number
from jaxtrace.tracking.run import allow_one_program
from jaxtrace.tracking.simulate import first_instant, make_dynamics


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 3, "dt": 0.1}, "n_steps=3 and dt=0.1: give one"),
        ({"n_steps": 0}, "n_steps=0"),
        ({"dt": 0.0}, "dt=0.0 must be finite and above 0"),
        ({"tolerance": -1.0}, "tolerance=-1.0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"dtype": "float64"}, "float64 is off"),
    ],
)
def test_wrong_choices_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Advection(**options)


def steps(how, span, follow=None, field=None):
    dynamics = make_dynamics(field or Saddle(), None, None, 0)
    points = np.zeros((4, 3), np.float32)
    return count_steps(dynamics, how, span, points, follow or never)


def never(seeds, count):
    raise AssertionError("probes are followed only where steps have to be found")


def test_steps_that_are_asked_for():
    assert steps(Advection(n_steps=7), (0.0, 1.0)) == 7
    assert steps(Advection(dt=0.3), (0.0, 1.0)) == 4
    assert steps(Advection(dt=0.25), (1.0, 0.0)) == 4, "backward is as long"


def test_steps_are_doubled_until_they_make_no_difference():
    asked = []

    def follow(seeds, count):
        asked.append(count)
        stretch = 1 + count ** (-4.0)
        return seeds + 1.0, np.repeat(stretch * np.eye(3)[None], len(seeds), 0)

    # Half of 1 + n^-4 less that of 2 n is below the tolerance from n = 8 on.
    how = Advection(tolerance=3e-4)
    assert steps(how, (0.0, 1.0), follow, UniformFlow()) == 8
    assert asked == [1, 2, 4, 8, 16]


def test_a_difference_that_does_not_shrink_ends_the_search():
    noise = iter(np.random.default_rng(0).uniform(1, 2, 40))

    def follow(seeds, count):
        return seeds + next(noise), np.repeat(np.eye(3)[None], len(seeds), 0)

    assert steps(Advection(tolerance=1e-6), (0.0, 1.0), follow, UniformFlow()) <= 8


def test_shear_sets_the_first_number_of_steps():
    still = lambda seeds, count: (seeds, np.repeat(np.eye(3)[None], len(seeds), 0))
    slow = steps(Advection(), (0.0, 1.0), still, Saddle(rate=number(1.0)))
    fast = steps(Advection(), (0.0, 1.0), still, Saddle(rate=number(64.0)))
    assert fast == 64 * slow


def test_shear_is_the_norm_of_the_velocity_gradient():
    points = np.random.default_rng(1).uniform(0, 6, (20, 3))
    with jax.enable_x64(True):
        dynamics = make_dynamics(ABCFlow(), None, None, 0)
        instant = first_instant(dynamics.field, np.zeros(1), np.float64)
        allow_one_program(shear)
        found = np.asarray(shear(dynamics, jnp.asarray(points), instant))
    x, y, z = points.T
    a, b, c = 3**0.5, 2**0.5, 1.0
    # Each component's two derivatives.
    parts = [a * np.cos(z), c * np.sin(y), b * np.cos(x), a * np.sin(z)]
    parts += [c * np.cos(y), b * np.sin(x)]
    np.testing.assert_allclose(found, np.sqrt(np.sum(np.square(parts), 0)), rtol=1e-12)
