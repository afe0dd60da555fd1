"""One or two variables at once: all sets, allowed values, and the better corner."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from acbo.baselines import gaussian
from acbo.history import History
from causal_linear import (
    assert_allowed,
    edges,
    linear_scm,
    random_cases,
    situations,
    spec_for,
)

STRONG = linear_scm(edges(4, e02=3.0), 2, noise=0.2)


def test_conditioning_matches_the_textbook_on_the_rows_that_count():
    random = np.random.default_rng(0)
    x, y = random.uniform(size=6), random.normal(size=6)
    mask = np.array([True, False, True, True, False, True])
    points = np.linspace(0, 1, 4)
    kernel = gaussian.matern(jnp.asarray(2.0), 0.5)
    given = (jnp.asarray(x), jnp.asarray(y), jnp.asarray(mask))
    prior = lambda p: 0.3 + 0.1 * p
    run = jax.jit(lambda *rest: gaussian.condition(kernel, prior, *rest))
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
    found = jax.jit(gaussian.expected_improvement)(
        jnp.asarray(mean), jnp.asarray(variance), jnp.asarray(best)
    )
    for i in range(2):
        density = partial(stats.norm.pdf, loc=mean[i], scale=np.sqrt(variance[i]))
        known, _ = integrate.quad(lambda y, f=density: (best - y) * f(y), -15, best)
        assert float(found[i]) == pytest.approx(known, rel=1e-3)


def test_it_sets_what_moved_the_target_to_its_better_end():
    cases = [*random_cases(2), (STRONG, "MINIMIZE"), (STRONG, "MAXIMIZE")]
    situation = situations(cases, interventional=12)
    actions = jax.jit(jax.vmap(gaussian.GaussianProcess(grid=9).propose))(*situation)
    assert_allowed(actions, situation)
    assert actions.variable[2:].tolist() == [0, 0]
    np.testing.assert_allclose(actions.value[2:], [-2.0, 3.0], atol=0.7)


TARGET = 2
SCM = linear_scm(edges(4, e02=3.0, e12=-2.0), TARGET, noise=0.2)


def assert_pairs_allowed(found, situation):
    """One or two variables, never the target, all within their ranges."""
    _, _, given, _ = situation
    mask, values = np.asarray(found.mask), np.asarray(found.values)
    assert set(mask.sum(axis=1).tolist()) <= {1, 2}
    assert not mask[np.arange(len(mask)), np.asarray(given.target)].any()
    assert (values >= np.asarray(given.low))[mask].all()
    assert (values <= np.asarray(given.high))[mask].all()
    assert (values[~mask] == 0).all()
    assert not np.asarray(found.shift).any()


def test_every_set_of_one_or_two():
    found = {tuple(sorted({*row})) for row in gaussian.all_arms(4).tolist()}
    wanted = itertools.chain.from_iterable(
        itertools.combinations(range(4), n) for n in (1, 2)
    )
    assert found == set(wanted)
    assert len(gaussian.all_arms(4)) == len(found)


def test_chance_takes_every_allowed_set():
    situation = situations([(SCM, "MINIMIZE")] * 60)
    found = jax.jit(jax.vmap(gaussian.RandomPairs().propose))(*situation)
    assert_pairs_allowed(found, situation)
    sets = {tuple(np.flatnonzero(row).tolist()) for row in np.asarray(found.mask)}
    assert sets == {(0,), (1,), (3,), (0, 1), (0, 3), (1, 3)}


def test_one_variable_that_may_be_set_is_set_alone():
    cases = [(linear_scm(edges(2, e01=1.0), 1), "MINIMIZE")]
    situation = situations(cases)
    for proposer in (gaussian.RandomPairs(), gaussian.GaussianPairs(grid=5)):
        found = jax.jit(jax.vmap(proposer.propose))(*situation)
        assert found.mask.tolist() == [[True, False]]
        assert_pairs_allowed(found, situation)


def pair_history(rows=40, seed=0):
    """Rows in which the first two variables were set together, after some at rest."""
    random = np.random.default_rng(seed)
    values = random.normal(0, 0.2, (rows, 4)).astype(np.float32)
    flags = np.zeros((rows, 4), bool)
    flags[8:, :2] = True
    values[8:, :2] = random.uniform(-2, 3, (rows - 8, 2))
    values[:, TARGET] += 3 * values[:, 0] - 2 * values[:, 1]
    return History(jnp.asarray(values), jnp.asarray(flags), jnp.asarray(rows))


@pytest.mark.parametrize(
    ("direction", "ends"), [("MINIMIZE", [-2, 3]), ("MAXIMIZE", [3, -2])]
)
def test_processes_find_the_corner_that_one_variable_cannot_reach(direction, ends):
    propose = jax.jit(gaussian.GaussianPairs(grid=9).propose)
    given = spec_for(SCM, direction)
    found = propose(jax.random.key(0), pair_history(), given, SCM)
    assert found.mask.tolist() == [True, True, False, False]
    np.testing.assert_allclose(found.values[:2], ends, atol=0.7)


def test_rows_of_other_sets_do_not_count():
    """With all rows at rest every set is as good, so the first of them is taken."""
    history = pair_history()
    resting = History(history.values, jnp.zeros_like(history.intervened), history.count)
    propose = jax.jit(gaussian.GaussianPairs(grid=9).propose)
    found = propose(jax.random.key(0), resting, spec_for(SCM), SCM)
    assert found.mask.tolist() == [True, False, False, False]
