import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.tracking.particles import move, recycle, retire, seed_particles
from jaxtrace.types import ParticleStatus


@pytest.fixture
def particles():
    places = np.arange(12, dtype=np.float32).reshape(4, 3)
    places[3, 1] = np.nan
    return seed_particles(jnp.asarray(places), ())


def test_a_seed_that_is_nowhere_is_lost(particles):
    np.testing.assert_array_equal(particles.alive, [True, True, True, False])
    np.testing.assert_array_equal(
        particles.status, [*[ParticleStatus.ACTIVE] * 3, ParticleStatus.LOST]
    )
    assert np.isnan(particles.exit_time).all()
    assert np.isfinite(particles.positions).all()
    np.testing.assert_array_equal(particles.slots, range(4))


def test_slots_may_be_those_of_a_larger_run():
    slots = jnp.asarray([7, 9], np.int32)
    found = seed_particles(jnp.zeros((2, 3)), (), slots=slots)
    np.testing.assert_array_equal(found.slots, [7, 9])


def test_the_retired_stay_where_they_went(particles):
    gone = jnp.asarray([True, False, False, True])
    where = jnp.full((4, 3), 5.0)
    when = jnp.full(4, 2.5)
    found = retire(particles, gone, ParticleStatus.EXITED, where, when)
    np.testing.assert_array_equal(found.positions[0], [5, 5, 5])
    np.testing.assert_array_equal(found.positions[1:], particles.positions[1:])
    np.testing.assert_array_equal(found.alive, [False, True, True, False])
    assert found.status[0] == ParticleStatus.EXITED
    assert found.exit_time[0] == 2.5


def test_nobody_retires_twice(particles):
    everyone = jnp.ones(4, bool)
    once = retire(
        particles, everyone, ParticleStatus.EXITED, jnp.zeros((4, 3)), jnp.ones(4)
    )
    twice = retire(
        once, everyone, ParticleStatus.ABSORBED, jnp.ones((4, 3)), jnp.zeros(4)
    )
    np.testing.assert_array_equal(twice.status, once.status)
    np.testing.assert_array_equal(twice.positions, once.positions)
    np.testing.assert_array_equal(twice.exit_time, once.exit_time)
    assert twice.status[3] == ParticleStatus.LOST


def test_one_time_will_do_for_all(particles):
    when = jnp.asarray(3.0)
    found = retire(
        particles, jnp.ones(4, bool), ParticleStatus.EXITED, particles.positions, when
    )
    np.testing.assert_array_equal(found.exit_time, [3, 3, 3, np.nan])


def test_only_the_living_move(particles):
    found = move(particles, jnp.zeros((4, 3)))
    np.testing.assert_array_equal(found.positions[:3], 0)
    np.testing.assert_array_equal(found.positions[3], particles.positions[3])


def test_newcomers_are_a_generation_later(particles):
    gone = jnp.asarray([True, True, False, False])
    left = retire(
        particles, gone, ParticleStatus.EXITED, jnp.zeros((4, 3)), jnp.ones(4)
    )
    fresh = jnp.asarray([True, False, False, False])
    found = recycle(left, fresh, jnp.full((4, 3), 8.0))
    np.testing.assert_array_equal(found.generation, [1, 0, 0, 0])
    np.testing.assert_array_equal(found.alive, [True, False, True, False])
    np.testing.assert_array_equal(found.positions[0], [8, 8, 8])
    assert found.status[0] == ParticleStatus.ACTIVE
    assert np.isnan(found.exit_time[0])
    assert found.exit_time[1] == 1
