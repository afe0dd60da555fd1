import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines.exact import ExactImprovement, ExactThompson
from acbo.baselines.proposers import (
    Greedy,
    Oracle,
    ParentOracle,
    Random,
    best_end,
    highest,
    observational,
    uniform_action,
    value_grid,
)
from acbo.environment import ProblemSpec
from acbo.history import History
from causal_linear import (
    assert_allowed,
    best_corner,
    edges,
    linear_scm,
    random_cases,
    situations,
)


def spec(sign=1.0):
    """Four columns: the target is 1 and column 3 is padding."""
    return ProblemSpec(
        jnp.asarray(1),
        jnp.array([-1.0, -5.0, 2.0, -9.0]),
        jnp.array([3.0, 5.0, 4.0, 9.0]),
        jnp.array([True, True, True, False]),
        jnp.array([True, False, True, False]),
        jnp.asarray(sign),
    )


def test_uniform_actions_cover_what_is_allowed_and_nothing_else(key):
    given = spec()
    draw = jax.jit(jax.vmap(lambda k: uniform_action(k, given)))
    actions = draw(jax.random.split(key, 400))
    variable, value = np.asarray(actions.variable), np.asarray(actions.value)
    assert set(variable.tolist()) == {0, 2}
    assert abs((variable == 0).mean() - 0.5) < 0.1
    for i, low, high in ((0, -1, 3), (2, 2, 4)):
        mine = value[variable == i]
        assert low <= mine.min() < low + 0.2
        assert high - 0.2 < mine.max() <= high


def test_the_grid_has_both_ends():
    grid = value_grid(spec(), 5)
    np.testing.assert_array_equal(grid[:, 0], spec().low)
    np.testing.assert_array_equal(grid[:, -1], spec().high)
    np.testing.assert_allclose(grid[0], [-1, 0, 1, 2, 3])


def test_the_highest_score_of_an_allowed_variable_wins():
    score = jnp.array([[0.0, 1.0], [9.0, 9.0], [3.0, 2.0], [9.0, 9.0]])
    action = highest(score, value_grid(spec(), 2), spec())
    assert (int(action.variable), float(action.value)) == (2, 2.0)


@pytest.mark.parametrize(("sign", "value"), [(1.0, -1.0), (-1.0, 3.0)])
def test_the_best_end_follows_the_direction(sign, value):
    intercept, slope = jnp.zeros(4), jnp.array([2.0, 9.0, 0.1, 9.0])
    action = best_end(intercept, slope, spec(sign))
    assert (int(action.variable), float(action.value)) == (0, value)


def test_observational_rows_or_else_all_rows():
    flags = jnp.zeros((3, 2), bool).at[1, 0].set(True)
    some = History(jnp.zeros((3, 2)), flags, jnp.asarray(2))
    assert observational(some).tolist() == [1.0, 0.0, 0.0]
    none = History(jnp.zeros((3, 2)), ~flags, jnp.asarray(2))
    assert observational(none).tolist() == [1.0, 1.0, 0.0]


# The grandparent does more than the parent; the child 3 of the target does nothing.
SCM = linear_scm(edges(4, e01=3.0, e12=2.0, e23=4.0), 2)
CASES = [*random_cases(2), (SCM, "MINIMIZE"), (SCM, "MAXIMIZE")]


@pytest.mark.parametrize(
    "proposer",
    [
        ExactThompson(),
        pytest.param(ExactImprovement(models=8), marks=pytest.mark.slow),
    ],
)
def test_with_many_rows_the_best_intervention_is_known(proposer):
    situation = situations(CASES, observational=40, interventional=24, capacity=64)
    actions = jax.jit(jax.vmap(proposer.propose))(*situation)
    assert_allowed(actions, situation)
    assert actions.variable[2:].tolist() == [0, 0]
    np.testing.assert_allclose(actions.value[2:], [-2.0, 3.0])


STRONG = linear_scm(edges(4, e01=9.0, e03=1.0, e13=-1.5, e23=0.5), 3)
FALLING = linear_scm(edges(4, e02=-2.0), 2)
ORPHAN = linear_scm(edges(4, e01=1.0), 0)
CASES_REFERENCES = [
    *random_cases(3),
    *[(scm, way) for scm in (STRONG, FALLING) for way in ("MINIMIZE", "MAXIMIZE")],
    (ORPHAN, "MINIMIZE"),
]


def first_is_the_parent(values, intervened, row_mask, var_mask, target):
    return jnp.array([0.9, 0.2, 1.0, 0.4]), None


def propose(proposer):
    situation = situations(CASES_REFERENCES)
    actions = jax.jit(jax.vmap(proposer.propose))(*situation)
    assert_allowed(actions, situation)
    variables, values = actions.variable.tolist(), actions.value.tolist()
    return list(zip(variables, values, strict=True))


def test_random_depends_on_its_key():
    assert len(set(propose(Random()))) == len(CASES_REFERENCES)


def test_the_oracle_is_right_without_clipping():
    found = propose(Oracle(grid=3, draws=2, clip_to_range=False))
    known = [best_corner(scm, way)[1:] for scm, way in CASES_REFERENCES]
    assert found[:-1] == known[:-1]  # nothing moves the last one's target


def test_the_parent_oracle_takes_the_strongest_parent():
    found = propose(ParentOracle())
    assert found[3:7] == [(1, 3.0), (0, 3.0), (0, 3.0), (0, -2.0)]
    assert found[7][0] != 0


def test_greedy_moves_the_likeliest_parent_down_its_slope():
    found = propose(Greedy(first_is_the_parent))
    assert found[5:7] == [(0, 3.0), (0, -2.0)]
    assert all(np.isin([value for _, value in found], [-2.0, 3.0]))
