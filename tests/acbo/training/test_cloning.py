import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines import Oracle, RandomPairs
from acbo.environment import Action
from acbo.policy.features import CANDIDATES, FEATURES, PolicyObservation
from acbo.policy.model import PolicyConfig, place
from acbo.training.policy import (
    CloningRecipe,
    as_policy_action,
    start_cloning,
    update_cloning,
)
from causal_learning import EPISODES
from causal_policies import small_surrogate
from jaxrig.learn import train

pytestmark = pytest.mark.slow  # compiles whole programs

RECIPE = CloningRecipe(PolicyConfig(8), EPISODES, batch_size=16, learning_rate=1e-2)


def observation():
    empty = jnp.zeros((3, CANDIDATES))
    return PolicyObservation(
        jnp.zeros((3, CANDIDATES, FEATURES)),
        empty,
        empty,
        empty,
        jnp.array([-1.0, 0.0, 2.0]),
        jnp.array([3.0, 0.0, 4.0]),
        jnp.array([True, False, True]),
    )


@pytest.mark.parametrize(("variable", "value"), [(0, -1.0), (0, 2.9), (2, 3.3)])
def test_a_move_gives_the_action_back(variable, value):
    action = Action(jnp.asarray(variable), jnp.asarray(value))
    move = as_policy_action(action, observation())
    assert abs(float(move.offset)) <= 0.5
    again = place(observation(), move.cell, move.offset)
    assert int(again.variable) == variable
    np.testing.assert_allclose(again.value, value, rtol=1e-6)


def test_the_policy_comes_to_choose_as_the_expert(key):
    surrogate, expert = small_surrogate(), Oracle()
    update = eqx.filter_jit(
        lambda state: update_cloning(state, RECIPE, surrogate, expert)
    )
    _, history = train(update, start_cloning(key, RECIPE), 30)
    losses = [each["loss"] for each in history]
    # The median: a value far from the grid costs much once widths are small.
    assert np.median(losses[-10:]) < np.median(losses[:10]) - 0.3
    assert 0 <= history[-1]["agreement"] <= 1


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="batch_size=0"):
        dataclasses.replace(RECIPE, batch_size=0)


def test_an_expert_of_pairs_is_refused(key):
    state = start_cloning(key, RECIPE)
    with pytest.raises(TypeError, match="RandomPairs sets several"):
        update_cloning(state, RECIPE, small_surrogate(), RandomPairs())
