import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.testing import assert_one_trace
from jaxtrace.fields.analytic import Rotation, UniformFlow
from jaxtrace.tracking.motion import PassiveTracer
from jaxtrace.tracking.simulate import simulate
from trace_runs import cloud, end, run, still

TIMES = np.linspace(0, 2, 9)


def rise(positions, t, velocity):
    """A buoyant particle: up at a constant speed."""
    return jnp.zeros_like(positions).at[:, 2].set(0.25)


def drift(positions, t, velocity):
    """Half the flow again, and a push that grows in time."""
    push = jnp.stack([t, t, t], -1)
    return velocity / 2 + jnp.broadcast_to(push, positions.shape)


def test_a_buoyant_particle_rises_through_the_flow():
    seeds = cloud(4)
    found = end(UniformFlow(1.0, 0.5, 0.0), seeds, TIMES, motion=PassiveTracer((rise,)))
    np.testing.assert_allclose(found, seeds + np.array([2.0, 1.0, 0.5]), rtol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"tolerance": 1e-5}], ids=["fixed", "adaptive"]
)
def test_terms_see_positions_time_and_velocity_and_add_up(options):
    seeds = cloud(4)
    motion = PassiveTracer((rise, drift))
    found = end(UniformFlow(1.0, 0.5, 0.0), seeds, TIMES, motion=motion, **options)
    expected = seeds + np.array([3.0 + 2.0, 1.5 + 2.0, 0.5 + 2.0])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_terms_move_particles_where_nothing_flows():
    found = end(still, cloud(2), TIMES, motion=PassiveTracer((rise,)), tolerance=1e-6)
    np.testing.assert_allclose(found[:, 2], cloud(2)[:, 2] + 0.5, rtol=1e-6)


def test_a_term_may_be_one_vector_for_all():
    wind = PassiveTracer((lambda x, t, u: jnp.array([1.0, 0.0, 0.0]),))
    found = end(still, cloud(2), TIMES, motion=wind)
    np.testing.assert_allclose(found, cloud(2) + np.array([2.0, 0.0, 0.0]), rtol=1e-6)


def test_a_term_of_another_shape_is_named():
    def wrong(positions, t, velocity):
        return positions[:, :2]

    with pytest.raises(ValueError, match=r"wrong answered shape \(4, 2\)"):
        run(still, cloud(4), TIMES, motion=PassiveTracer((wrong,)))


class Push(eqx.Module):
    """A term with a parameter."""

    speed: jax.Array

    def __call__(self, positions, t, velocity):
        return jnp.broadcast_to(self.speed[None], positions.shape)


def test_the_same_terms_are_compiled_once():
    """Other seeds, another flow of the kind, another parameter: one trace."""

    def go(field, motion, seeds):
        return simulate(field, seeds, TIMES, motion=motion).positions

    seeds = jnp.asarray(cloud(3), np.float32)
    push = [Push(jnp.full(3, s)) for s in (1.0, 2.0)]
    first, second = assert_one_trace(
        go,
        (Rotation(1.0), PassiveTracer((rise, push[0])), seeds),
        (Rotation(2.0), PassiveTracer((rise, push[1])), seeds + 1),
    )
    assert not np.allclose(first, second)


def test_another_function_is_another_program():
    def go(motion, seeds):
        return simulate(still, seeds, TIMES, motion=motion).positions

    seeds = jnp.asarray(cloud(3), np.float32)
    with pytest.raises(AssertionError, match="motion"):
        assert_one_trace(
            go, (PassiveTracer((rise,)), seeds), (PassiveTracer((drift,)), seeds)
        )


def test_gradients_reach_the_parameters_of_a_term():
    def reached(speed):
        motion = PassiveTracer((Push(speed),))
        return simulate(still, cloud(1), TIMES, motion=motion).positions[-1, 0, 0]

    slope = jax.grad(reached)(jnp.array([0.5, 0.0, 0.0]))
    np.testing.assert_allclose(slope, [2.0, 0.0, 0.0], rtol=1e-6)
