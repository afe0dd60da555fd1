"""One or two variables at once: all sets, allowed values, and the better corner."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines.gaussian import GaussianPairs, RandomPairs, all_arms
from acbo.history import History
from causal_linear import edges, linear_scm, situations, spec_for

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
    found = {tuple(sorted({*row})) for row in all_arms(4).tolist()}
    wanted = itertools.chain.from_iterable(
        itertools.combinations(range(4), n) for n in (1, 2)
    )
    assert found == set(wanted)
    assert len(all_arms(4)) == len(found)


def test_chance_takes_every_allowed_set():
    situation = situations([(SCM, "MINIMIZE")] * 200)
    found = jax.jit(jax.vmap(RandomPairs().propose))(*situation)
    assert_pairs_allowed(found, situation)
    sets = {tuple(np.flatnonzero(row).tolist()) for row in np.asarray(found.mask)}
    assert sets == {(0,), (1,), (3,), (0, 1), (0, 3), (1, 3)}


def test_one_variable_that_may_be_set_is_set_alone():
    cases = [(linear_scm(edges(2, e01=1.0), 1), "MINIMIZE")]
    situation = situations(cases)
    for proposer in (RandomPairs(), GaussianPairs(grid=5)):
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
    propose = jax.jit(GaussianPairs(grid=9).propose)
    given = spec_for(SCM, direction)
    found = propose(jax.random.key(0), pair_history(), given, SCM)
    assert found.mask.tolist() == [True, True, False, False]
    np.testing.assert_allclose(found.values[:2], ends, atol=0.7)


def test_rows_of_other_sets_do_not_count():
    """With all rows at rest every set is as good, so the first of them is taken."""
    history = pair_history()
    resting = History(history.values, jnp.zeros_like(history.intervened), history.count)
    propose = jax.jit(GaussianPairs(grid=9).propose)
    found = propose(jax.random.key(0), resting, spec_for(SCM), SCM)
    assert found.mask.tolist() == [True, False, False, False]
