"""Oracle: moments of the named distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.mechanisms.noise import (
    GAUSSIAN,
    HETEROSCEDASTIC,
    LAPLACE,
    NOISE_KINDS,
    UNIFORM,
    draw_noise,
    noise_factor,
)
from jaxrig.keys import batch_keys

ROWS = 20_000
KURTOSIS = {GAUSSIAN: 3.0, LAPLACE: 6.0, UNIFORM: 1.8, HETEROSCEDASTIC: 3.0}


@pytest.fixture(scope="module")
def drawn():
    keys = batch_keys(jax.random.key(3), ROWS)
    kinds = jnp.arange(4)
    return np.asarray(jax.jit(jax.vmap(draw_noise, (0, None)))(keys, kinds))


@pytest.mark.parametrize("kind", NOISE_KINDS.values(), ids=NOISE_KINDS)
def test_mean_variance_and_fourth_moment(drawn, kind):
    x = drawn[:, kind]
    error = 4 / np.sqrt(ROWS)
    assert abs(x.mean()) < error
    fourth = KURTOSIS[kind]
    assert abs(np.square(x).mean() - 1) < error * np.sqrt(fourth - 1)
    assert (x**4).mean() == pytest.approx(fourth, rel=0.15)


def test_uniform_noise_is_bounded(drawn):
    assert abs(drawn[:, UNIFORM]).max() <= np.sqrt(3) + 1e-6


def test_variables_draw_apart(drawn):
    correlation = np.corrcoef(drawn.T) - np.eye(4)
    assert abs(correlation).max() < 4 / np.sqrt(ROWS)


def test_only_heteroscedastic_noise_grows_with_the_mean():
    mean = jnp.asarray([-30.0, 0.0, 30.0])
    grown = noise_factor(jnp.full(3, HETEROSCEDASTIC), mean)
    np.testing.assert_allclose(grown, [0.5, 1.0, 1.5], atol=1e-6)
    for kind in (GAUSSIAN, LAPLACE, UNIFORM):
        np.testing.assert_array_equal(noise_factor(jnp.full(3, kind), mean), 1.0)
