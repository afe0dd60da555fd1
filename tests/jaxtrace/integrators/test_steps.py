import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.integrators import (
    euler_step,
    rk2_step,
    rk4_step,
)
from trace_runs import cloud, spiral

STEPS = {"euler": euler_step, "rk2": rk2_step, "rk4": rk4_step}


def by_hand(name, x, t, dt, f):
    """The three formulas, written out."""
    first = f(x, t)
    if name == "euler":
        return x + dt * first
    middle = f(x + dt / 2 * first, t + dt / 2)
    if name == "rk2":
        return x + dt * middle
    third = f(x + dt / 2 * middle, t + dt / 2)
    last = f(x + dt * third, t + dt)
    return x + dt / 6 * (first + 2 * middle + 2 * third + last)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dt", [0.1, -0.1])
def test_the_formulas(name, dt):
    with jax.enable_x64(True):
        x = jnp.asarray(cloud(7))
        found = jax.jit(lambda p, t: STEPS[name](p, t, dt, spiral))(x, 0.3)
        expected = by_hand(name, x, 0.3, dt, spiral)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("name", STEPS)
def test_forward_and_back_returns(name):
    order = {"euler": 1, "rk2": 2, "rk4": 4}[name]
    with jax.enable_x64(True):
        x = jnp.asarray(cloud(5))
        there = STEPS[name](x, 0.0, 0.01, spiral)
        back = STEPS[name](there, 0.01, -0.01, spiral)
        assert np.max(np.abs(back - x)) < 2 * 0.01 ** (order + 1)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_and_a_clock_per_particle(name):
    """Each particle's stages lie at its own times, not at the mean."""
    with jax.enable_x64(True):
        x = jnp.asarray(cloud(3))
        lengths = jnp.array([0.1, 0.2, -0.4])
        found = STEPS[name](x, 0.5, lengths, spiral)
        for i, dt in enumerate(np.asarray(lengths)):
            alone = STEPS[name](x[i : i + 1], 0.5, float(dt), spiral)
            np.testing.assert_allclose(found[i], alone[0], rtol=1e-14)


def test_single_precision_stays_single():
    assert rk4_step(np.zeros((2, 3), np.float32), 0.0, 0.1, spiral).dtype == np.float32


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"\(4, 2\)"):
        euler_step(np.zeros((4, 2)), 0.0, 0.1, spiral)
    with pytest.raises(ValueError, match=r"dt of shape \(3,\)"):
        rk4_step(np.zeros((4, 3)), 0.0, np.zeros(3), spiral)
