from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_t

from acbo.graphs import parent_set_membership
from acbo.posterior.scores import (
    LOG_ZERO,
    ScorePrior,
    constrained_scores,
    gather_statistics,
    local_posterior,
    local_scores,
    parent_marginals,
    regression_t,
)
from causal_graphs import linear_rows, linear_weights
from jaxrig.testing import assert_one_trace

PRIOR = ScorePrior(
    weight_variance=3.0, intercept_variance=0.5, noise_shape=1.5, noise_scale=0.4
)


def example(d=4, seed=0):
    rng = np.random.default_rng(seed)
    values, intervened = linear_rows(linear_weights(d, rng, 0.7), rng, 20, 12, d - 1)
    intervened[-1] = np.arange(d) < 2  # two variables set in one row
    return 3 * values + 5, intervened


def scores_of(values, intervened, row_mask=None, var_mask=None, max_parents=3):
    rows, d = values.shape
    row_mask = jnp.ones(rows, bool) if row_mask is None else jnp.asarray(row_mask)
    var_mask = jnp.ones(d, bool) if var_mask is None else jnp.asarray(var_mask)
    arrays = jnp.asarray(values, float), jnp.asarray(intervened)
    return _scores((*arrays, row_mask, var_mask), max_parents)


@partial(jax.jit, static_argnums=1)
def _scores(arrays, max_parents):
    statistics = gather_statistics(*arrays)
    return local_scores(statistics, max_parents, PRIOR)


def student_scores(values, intervened, max_parents=3):
    """Marginal likelihoods as multivariate Student densities, one set at a time."""
    observed = values[~intervened.any(axis=1)]
    z = (values - observed.mean(0)) / observed.std(0)
    d = z.shape[1]
    found = []
    for j in range(d):
        rows = ~intervened[:, j]
        for held in parent_set_membership(d, max_parents, j):
            x = z[rows][:, held]
            shape = np.eye(len(x)) + PRIOR.intercept_variance
            shape += PRIOR.weight_variance * x @ x.T
            shape *= PRIOR.noise_scale / PRIOR.noise_shape
            density = multivariate_t(shape=shape, df=int(2 * PRIOR.noise_shape))
            found.append(density.logpdf(z[rows, j]))
    return np.reshape(found, (d, -1))


def test_scores_are_marginal_likelihoods():
    values, intervened = example()
    wanted = student_scores(values, intervened)
    with jax.enable_x64(True):
        found = scores_of(values, intervened)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    narrow = scores_of(values, intervened)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wanted, atol=1e-3)


def test_padding_changes_nothing():
    values, intervened = example()
    plain = np.asarray(scores_of(values, intervened))
    rows, d = values.shape
    wide = np.full((rows + 5, d + 1), 7.0)
    flags = np.ones((rows + 5, d + 1), bool)
    wide[:rows, :d], flags[:rows, :d] = values, intervened
    flags[:rows, d] = False
    masks = np.arange(rows + 5) < rows, np.arange(d + 1) < d
    padded = np.asarray(scores_of(wide, flags, *masks))
    for j in range(d):
        kept = ~parent_set_membership(d + 1, 3, j)[:, d]
        np.testing.assert_allclose(padded[j][kept], plain[j], rtol=1e-5)


def test_units_do_not_matter():
    values, intervened = example()
    factors = np.array([1e-3, 1.0, 50.0, 1e4])
    with jax.enable_x64(True):
        plain = scores_of(values, intervened)
        found = scores_of(values * factors - 7, intervened)
        np.testing.assert_allclose(found, plain, rtol=1e-9)
        found = scores_of(values * factors * 1e-200, intervened)
        np.testing.assert_allclose(found, plain, rtol=1e-9)


@pytest.mark.parametrize("max_parents", [0, 2])
def test_sets_that_constraints_forbid_have_no_score(max_parents):
    required, forbidden = np.zeros((2, 4, 4), bool)
    required[0, 2] = forbidden[3, 2] = forbidden[1, 0] = True
    run = jax.jit(partial(constrained_scores, max_parents=max_parents))
    given = jnp.asarray(required), jnp.asarray(forbidden)
    found = run(_gathered(*example()), jnp.ones(4, bool), *given)
    for j in range(4):
        held = parent_set_membership(4, max_parents, j)
        wanted = [
            not (row & forbidden[:, j]).any() and not (required[:, j] & ~row).any()
            for row in held
        ]
        assert (np.asarray(found[j]) > LOG_ZERO).tolist() == wanted


@pytest.mark.parametrize("field", ["weight_variance", "noise_scale"])
def test_priors_are_positive(field):
    with pytest.raises(ValueError, match=f"{field} is 0.0: give a number above 0"):
        ScorePrior(**{field: 0.0})


def run_local(x, flags, mask, target):
    logs = local_posterior(x, flags, jnp.ones(len(x), bool), mask, target)
    return logs, parent_marginals(logs, mask, target)


def test_local_posterior_is_the_share_of_the_score():
    """A child explains the target as well as a cause does; padding changes nothing."""
    rng = np.random.default_rng(1)
    values, flags = linear_rows(linear_weights(3, rng, 0.7), rng, 30, 10, 1)
    wide = jnp.asarray(np.pad(values, ((0, 0), (0, 1)), constant_values=5.0), float)
    set_cells = jnp.asarray(np.pad(flags, ((0, 0), (0, 1))))
    mask = jnp.asarray([True, True, True, False])
    calls = [(wide, set_cells, mask, jnp.asarray(target)) for target in (1, 0)]
    (logs, found), _ = assert_one_trace(run_local, *calls)
    scores = np.asarray(jax.jit(local_scores)(_gathered(values, flags)))[1]
    share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    held = parent_set_membership(3, 3, 1)
    np.testing.assert_allclose(np.exp(logs).sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(found[:3], share @ held, atol=1e-3)
    assert found[3] == 0


def test_scores_alone_take_a_child_for_a_cause():
    rng = np.random.default_rng(2)
    cause = rng.standard_normal(200)
    values = np.stack([cause, 2 * cause + rng.standard_normal(200)], axis=1)
    arrays = jnp.asarray(values, float), jnp.zeros((200, 2), bool), jnp.ones(2, bool)
    assert jax.jit(run_local)(*arrays, jnp.asarray(0))[1][1] > 0.99


def _gathered(values, flags):
    rows, d = values.shape
    masks = jnp.ones(rows, bool), jnp.ones(d, bool)
    gather = jax.jit(gather_statistics)
    return gather(jnp.asarray(values, float), jnp.asarray(flags), *masks)


def reference_t(values, flags, target):
    rows = ~flags[:, target]
    others = np.delete(values, target, axis=1)[rows]
    design = np.column_stack([np.ones(rows.sum()), others])
    y = values[rows, target]
    weights, residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    variance = residual[0] / (len(y) - design.shape[1])
    found = weights / np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return np.insert(found[1:], target, 0)


def test_regression_has_the_statistics_of_least_squares():
    rng = np.random.default_rng(0)
    values, flags = linear_rows(linear_weights(4, rng, 0.7), rng, 30, 10, 2)
    flags[3, 2] = True  # a row that says nothing of the target
    values = 3 * values - 1
    x = jnp.asarray(np.pad(values, ((0, 2), (0, 1)), constant_values=4.0), float)
    f = jnp.asarray(np.pad(flags, ((0, 2), (0, 1))))
    there = jnp.asarray([True] * 4 + [False])
    count = jnp.arange(42)
    cases = ((40, 2), (40, 0), (4, 2))  # the last has fewer rows than unknowns
    calls = [(x, f, count < n, there, jnp.asarray(target)) for n, target in cases]
    found, other, few = assert_one_trace(regression_t, *calls)
    np.testing.assert_allclose(found[:4], reference_t(values, flags, 2), rtol=1e-3)
    np.testing.assert_allclose(other[:4], reference_t(values, flags, 0), rtol=1e-3)
    assert found[4] == other[4] == 0
    assert few.tolist() == [0] * 5
