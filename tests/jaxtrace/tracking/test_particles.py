import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxtrace.tracking.particles import (
    Draw,
    noise_key,
    recycle,
    retire,
    seed_particles,
)
from jaxtrace.types import ParticleStatus


@pytest.fixture
def particles():
    places = np.arange(12, dtype=np.float32).reshape(4, 3)
    places[3, 1] = np.nan
    return seed_particles(jnp.asarray(places), ())


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


F32 = np.dtype(np.float32)


def make_draw(slots, step=0, seed=0):
    return Draw(
        noise_key(seed), jnp.asarray(slots, np.int32), jnp.asarray(step, np.int32)
    )


@pytest.mark.slow  # compiles a program of its own
def test_numbers_follow_from_slot_and_step_alone():
    whole = make_draw(np.arange(10), step=4).uniform(0, F32)
    some = make_draw([7, 2], step=4).uniform(0, F32)
    np.testing.assert_array_equal(some, whole[jnp.array([7, 2])])


@pytest.mark.parametrize("other", [{"step": 1}, {"seed": 1}, {"stream": 1}])
@pytest.mark.slow  # compiles a program of its own
def test_steps_seeds_and_streams_draw_apart(other):
    slots = np.arange(50)
    first = make_draw(slots).uniform(0, F32)
    stream = other.pop("stream", 0)
    second = make_draw(slots, **other).uniform(stream, F32)
    assert not np.any(np.asarray(first) == np.asarray(second))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow  # compiles a program of its own
def test_uniform_numbers_are_uniform(dtype):
    with jax.enable_x64(dtype == np.float64):
        found = np.asarray(make_draw(np.arange(4000)).uniform(0, np.dtype(dtype)))
    assert found.dtype == dtype
    assert found.shape == (4000, 2)
    assert found.min() >= 0
    assert found.max() < 1
    for column in found.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(found.T)[0, 1]) < 0.06


@pytest.mark.slow  # compiles a program of its own
def test_normal_numbers_are_normal():
    found = np.asarray(make_draw(np.arange(4000)).normal(0, np.dtype(np.float32)))
    assert found.shape == (4000, 3)
    for column in found.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.cov(found.T), np.eye(3), atol=0.08)


@pytest.mark.slow  # compiles a program of its own
def test_steps_of_one_slot_are_uniform_too():
    steps = jnp.arange(2000, dtype=np.int32)
    slots = jnp.asarray([3], np.int32)
    draw = lambda step: Draw(noise_key(0), slots, step).uniform(0, F32)[0, 0]
    found = jax.lax.map(draw, steps)
    assert stats.kstest(np.asarray(found), "uniform").pvalue > 1e-3
