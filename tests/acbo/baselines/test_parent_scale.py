import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines.parent_scale import Beliefs, ParentScale, do_effect
from causal_linear import assert_allowed, edges, linear_scm, random_cases, situations

pytestmark = pytest.mark.slow  # compiles whole programs

PROPOSER = ParentScale(max_parents=2, resamples=1, grid=5)
STRONG = linear_scm(edges(4, e03=2.0, e13=-1.5), 3)
UNRELATED = linear_scm(edges(4), 3)
CASES = [
    (STRONG, "MINIMIZE"),
    (STRONG, "MAXIMIZE"),
    *random_cases(2),
    *[(UNRELATED, "MINIMIZE")] * 4,
]


@pytest.fixture(scope="module")
def outcome():
    situation = situations(CASES, observational=60, interventional=8, capacity=70)

    @jax.jit
    @jax.vmap
    def both(key, seen, given, scm):
        action = PROPOSER.propose(key, seen, given, scm)
        return action, PROPOSER.believe(key, seen, given)

    return situation, *both(*situation)


def test_the_parent_that_helps_most_goes_to_its_better_end(outcome):
    situation, actions, _ = outcome
    assert_allowed(actions, situation)
    assert actions.variable[:2].tolist() == [1, 0]
    np.testing.assert_allclose(actions.value[:2], [3.0, 3.0], atol=0.5)


def test_beliefs_find_the_parents(outcome):
    _, _, beliefs = outcome
    np.testing.assert_allclose(beliefs.probability.sum(1), 1.0, atol=1e-5)
    held = np.asarray(beliefs.columns[:, :, 1:])
    parents = held[0][np.asarray(beliefs.probability[0]).argmax()]
    assert parents.tolist() == [True, True, False, False]
    assert not held[0][:, 3].any()


def test_without_a_finding_single_variables_are_what_is_left(outcome):
    _, _, beliefs = outcome
    held = np.asarray(beliefs.columns[4, :, 1:])
    probability = np.asarray(beliefs.probability[4:])
    nothing_found = probability[(probability > 0).sum(1) > 1]
    assert len(nothing_found)
    assert (nothing_found[:, held.sum(1) != 1] == 0).all()
    assert (nothing_found[:, held.sum(1) == 1] > 0.02).all()


def test_do_effects_are_the_moments_of_the_mixture():
    random = np.random.default_rng(0)
    sets, columns = 3, 4
    root = random.normal(size=(sets, columns, columns))
    covariance = root @ root.transpose(0, 2, 1)
    coefficients = random.normal(size=(sets, columns))
    there = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0]], bool)
    probability = np.array([0.2, 0.5, 0.3])
    beliefs = Beliefs(
        jnp.asarray(probability),
        jnp.asarray(coefficients),
        jnp.asarray(covariance),
        jnp.asarray(there),
    )
    mean, variance = jax.jit(do_effect)(beliefs, jnp.asarray(0), jnp.array([1.7]))
    means, variances = [], []
    for s in range(sets):
        point = np.array([1.0, 1.7 * there[s, 1], 0, 0])
        means.append(point @ coefficients[s])
        variances.append(point @ covariance[s] @ point)
    expected = probability @ means
    spread = probability @ (np.array(variances) + np.square(means)) - expected**2
    assert float(mean[0]) == pytest.approx(expected, rel=1e-5)
    assert float(variance[0]) == pytest.approx(spread, rel=1e-4)
