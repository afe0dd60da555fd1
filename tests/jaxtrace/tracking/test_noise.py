import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxtrace.tracking.particles import Draw, noise_key

pytestmark = pytest.mark.slow  # compiles many programs

F32 = np.dtype(np.float32)


def make_draw(slots, step=0, seed=0):
    return Draw(
        noise_key(seed), jnp.asarray(slots, np.int32), jnp.asarray(step, np.int32)
    )


def test_numbers_follow_from_slot_and_step_alone():
    whole = make_draw(np.arange(10), step=4).uniform(0, F32)
    some = make_draw([7, 2], step=4).uniform(0, F32)
    np.testing.assert_array_equal(some, whole[jnp.array([7, 2])])


@pytest.mark.parametrize("other", [{"step": 1}, {"seed": 1}])
def test_steps_and_seeds_draw_apart(other):
    slots = np.arange(50)
    first = make_draw(slots).uniform(0, F32)
    second = make_draw(slots, **other).uniform(0, F32)
    assert not np.any(np.asarray(first) == np.asarray(second))


def test_streams_draw_apart():
    draw = make_draw(np.arange(50))
    first, second = (draw.uniform(stream, F32) for stream in (0, 1))
    assert not np.any(np.asarray(first) == np.asarray(second))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
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


def test_double_numbers_use_all_their_digits():
    with jax.enable_x64(True):
        found = np.asarray(make_draw(np.arange(100)).uniform(0, np.dtype(np.float64)))
    assert np.any(found != found.astype(np.float32))


def test_normal_numbers_are_normal():
    found = np.asarray(make_draw(np.arange(4000)).normal(0, np.dtype(np.float32)))
    assert found.shape == (4000, 3)
    for column in found.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.cov(found.T), np.eye(3), atol=0.08)


def test_steps_of_one_slot_are_uniform_too():
    steps = jnp.arange(2000, dtype=np.int32)
    slots = jnp.asarray([3], np.int32)
    draw = jax.vmap(lambda s: Draw(noise_key(0), slots, s).uniform(0, F32)[0, 0])
    assert stats.kstest(np.asarray(draw(steps)), "uniform").pvalue > 1e-3


def test_nobody_draws_nothing():
    assert make_draw([]).uniform(0, F32).shape == (0, 2)
    assert make_draw([]).normal(0, F32).shape == (0, 3)
