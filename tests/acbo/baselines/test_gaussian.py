from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from acbo.baselines.gaussian import (
    GaussianProcess,
    condition,
    expected_improvement,
    matern,
)
from causal_linear import assert_allowed, edges, linear_scm, random_cases, situations

STRONG = linear_scm(edges(4, e02=3.0), 2, noise=0.2)


def test_conditioning_matches_the_textbook_on_the_rows_that_count():
    random = np.random.default_rng(0)
    x, y = random.uniform(size=6), random.normal(size=6)
    mask = np.array([True, False, True, True, False, True])
    points = np.linspace(0, 1, 4)
    kernel = matern(jnp.asarray(2.0), 0.5)
    given = (jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask))
    prior = lambda p: 0.3 + 0.1 * p
    run = jax.jit(lambda *rest: condition(kernel, prior, *rest))
    mean, variance = run(given, jnp.asarray(points), jnp.asarray(0.2))

    def k(a, b):
        r = np.sqrt(5) * np.abs(a[:, None] - b[None]) / 0.5
        return 2 * (1 + r + r**2 / 3) * np.exp(-r)

    inverse = np.linalg.inv(k(x[mask], x[mask]) + 0.2 * np.eye(4))
    cross = k(points, x[mask])
    expected = prior(points) + cross @ inverse @ (y - prior(x))[mask]
    spread = np.diag(k(points, points) - cross @ inverse @ cross.T)
    np.testing.assert_allclose(mean, expected, rtol=1e-4)
    np.testing.assert_allclose(variance, spread, rtol=1e-3)


def test_expected_improvement_is_the_integral():
    mean, variance, best = np.array([0.0, 2.0]), np.array([1.0, 0.3]), 0.5
    found = jax.jit(expected_improvement)(
        jnp.asarray(mean), jnp.asarray(variance), jnp.asarray(best)
    )
    for i in range(2):
        density = partial(stats.norm.pdf, loc=mean[i], scale=np.sqrt(variance[i]))
        known, _ = integrate.quad(lambda y, f=density: (best - y) * f(y), -15, best)
        assert float(found[i]) == pytest.approx(known, rel=1e-3)


def test_it_sets_what_moved_the_target_to_its_better_end():
    cases = [*random_cases(2), (STRONG, "MINIMIZE"), (STRONG, "MAXIMIZE")]
    situation = situations(cases, interventional=12)
    actions = jax.jit(jax.vmap(GaussianProcess(grid=9).propose))(*situation)
    assert_allowed(actions, situation)
    assert actions.variable[2:].tolist() == [0, 0]
    np.testing.assert_allclose(actions.value[2:], [-2.0, 3.0], atol=0.7)
