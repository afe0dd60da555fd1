"""Oracle: (I - W)^-1 algebra of linear models, and the noise worked out by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.scm import (
    change_variables,
    no_intervention,
    sample_each,
    sample_rows,
    set_variables,
)
from causal_linear import edges, linear_scm, stack

D, ROWS = 4, 5000
# 0 -> 1 -> 2 -> 3 and 0 -> 2; the target is 2.
WEIGHT = edges(D, e01=0.8, e12=-1.5, e23=2.0, e02=1.2)
INTERCEPT = np.array([1.0, -0.5, 0.3, 0.0])
NOISE = 0.7
SCM = linear_scm(WEIGHT, 2, intercept=INTERCEPT, noise=NOISE, low=-0.5, high=1.5)
NOTHING = no_intervention(D)
KEY = jax.random.key(5)
SAMPLE = jax.jit(sample_rows, static_argnums=(2, 4))
ERROR = 4 * NOISE / np.sqrt(ROWS)


def sample(intervention=NOTHING, scm=SCM, clip=False):
    """All with one shape: two programs, clipped and not."""
    return np.asarray(SAMPLE(KEY, scm, ROWS, intervention, clip))


def setting(variable, value):
    mask = np.arange(D) == variable
    return set_variables(jnp.asarray(mask), jnp.full(D, value, jnp.float32))


def closed_form(mask=(False,) * D, values=0.0):
    """Mean and covariance under do: cut the columns that are set."""
    free = ~np.asarray(mask)
    total = np.linalg.inv(np.eye(D) - WEIGHT * free[None])
    start = np.where(free, INTERCEPT, values)
    noise = NOISE**2 * np.diag(free.astype(float))
    return start @ total, total.T @ noise @ total


@pytest.mark.parametrize("variable", [None, 0, 1, 3])
def test_moments_of_linear_models(variable):
    done = NOTHING if variable is None else setting(variable, 2.0)
    rows = sample(done)
    mean, covariance = closed_form(np.asarray(done.mask), 2.0)
    spread = np.sqrt(np.diag(covariance))
    assert (abs(rows.mean(axis=0) - mean) <= 4 * spread / np.sqrt(ROWS) + 1e-5).all()
    error = 6 * np.outer(spread, spread) / np.sqrt(ROWS) + 1e-5
    assert (abs(np.cov(rows.T) - covariance) <= error).all()


@pytest.mark.parametrize(("variable", "untouched"), [(1, [0]), (3, [0, 1, 2])])
def test_an_intervention_changes_only_descendants(variable, untouched):
    """Common noise: the rest is the same to the last bit."""
    plain, done = sample(), sample(setting(variable, -1.25))
    np.testing.assert_array_equal(done[:, untouched], plain[:, untouched])
    np.testing.assert_array_equal(done[:, variable], -1.25)
    changed = [i for i in range(D) if i not in untouched]
    assert (done[:, changed] != plain[:, changed]).any(axis=0).all()


def test_effects_on_common_noise_are_exact():
    """The difference of two settings has no noise left at all."""
    difference = sample(setting(0, 2.0)) - sample(setting(0, -1.0))
    total = np.linalg.inv(np.eye(D) - WEIGHT)[0]
    expected = np.broadcast_to(3 * total, difference.shape)
    np.testing.assert_allclose(difference, expected, atol=1e-4)


def test_soft_interventions_move_and_keep_the_causes():
    shift = np.array([0.0, 0.6, 0.0, 0.0])
    moved = sample(change_variables(jnp.asarray(shift), jnp.ones(D))) - sample()
    expected = shift @ np.linalg.inv(np.eye(D) - WEIGHT)
    np.testing.assert_allclose(moved, np.broadcast_to(expected, moved.shape), atol=1e-4)


def test_moments_under_soft_interventions_on_several_variables():
    """x = scale * (W'x + intercept + noise) + shift, solved for x."""
    shift, scale = np.array([0.5, 0, -2.0, 0]), np.array([1.5, 0.2, 1.0, 0.0])
    rows = sample(change_variables(jnp.asarray(shift), jnp.asarray(scale)))
    total = np.linalg.inv(np.eye(D) - WEIGHT * scale[None])
    covariance = total.T @ np.diag((NOISE * scale) ** 2) @ total
    mean = (scale * INTERCEPT + shift) @ total
    spread = np.sqrt(np.diag(covariance))
    assert (abs(rows.mean(axis=0) - mean) <= 4 * spread / np.sqrt(ROWS) + 1e-5).all()
    error = 6 * np.outer(spread, spread) / np.sqrt(ROWS) + 1e-5
    assert (abs(np.cov(rows.T) - covariance) <= error).all()


def test_clipping_leaves_the_target_alone():
    """Naive: the noise of the plain rows, settled again with a clip."""
    plain, clipped = sample(), sample(clip=True)
    noise = plain - plain @ WEIGHT - INTERCEPT
    expected = np.zeros_like(plain)
    for j in range(D):
        value = INTERCEPT[j] + expected @ WEIGHT[:, j] + noise[:, j]
        expected[:, j] = value if j == 2 else np.clip(value, -0.5, 1.5)
    np.testing.assert_allclose(clipped, expected, atol=1e-4)
    others = np.delete(clipped, 2, axis=1)
    assert (others.min(), others.max()) == (-0.5, 1.5)
    assert clipped[:, 2].min() < -0.5
    assert clipped[:, 2].max() > 1.5


def test_what_is_set_may_leave_the_range():
    np.testing.assert_array_equal(sample(setting(1, 9.0), clip=True)[:, 1], 9.0)


def test_variables_that_are_not_there_stay_zero_and_change_nothing():
    there = jnp.asarray([True, True, True, False])
    padded = eqx.tree_at(lambda m: m.mask, SCM, there)
    rows = sample(scm=padded)
    np.testing.assert_array_equal(rows[:, 3], 0.0)
    np.testing.assert_array_equal(rows[:, :3], sample()[:, :3])
    np.testing.assert_array_equal(padded.allowed, [True, True, False, False])


def test_a_stack_of_interventions_meets_the_noise_of_its_rows():
    each = stack([NOTHING, setting(1, 2.0), setting(3, -1.0)])
    rows = np.asarray(jax.jit(sample_each)(KEY, SCM, each))
    same = [sample()[0], sample(setting(1, 2.0))[1], sample(setting(3, -1.0))[2]]
    np.testing.assert_allclose(rows, same, atol=1e-5)


def test_a_stack_of_models_knows_what_may_be_set():
    models = stack([SCM, linear_scm(WEIGHT, 0)])
    expected = [[True, True, False, True], [False, True, True, True]]
    np.testing.assert_array_equal(models.allowed, expected)


def test_values_outside_the_mask_are_forgotten():
    mask = np.array([[True, False], [False, True]])
    done = set_variables(jnp.asarray(mask), jnp.asarray([[1.0, jnp.nan], [2.0, 3.0]]))
    np.testing.assert_array_equal(done.mask, mask)
    np.testing.assert_array_equal(done.values, [[1, 0], [0, 3]])
    assert not done.shift.any()
    assert (done.scale == 1).all()
