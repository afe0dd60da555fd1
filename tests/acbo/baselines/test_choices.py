import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines.proposers import (
    best_end,
    highest,
    observational,
    uniform_action,
    value_grid,
)
from acbo.environment import ProblemSpec
from acbo.history import History


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
    actions = jax.vmap(lambda k: uniform_action(k, given))(jax.random.split(key, 400))
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
