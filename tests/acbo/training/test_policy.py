import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.baselines import Oracle
from acbo.baselines.gaussian import RandomPairs
from acbo.environment import Action
from acbo.policy.advisor import load_policy
from acbo.policy.features import CANDIDATES, FEATURES, PolicyObservation
from acbo.policy.model import PolicyConfig, place
from acbo.surrogate.predictor import load_surrogate
from acbo.training import policy
from causal_learning import EPISODES, POLICY, SURROGATE
from causal_policies import small_surrogate
from jaxrig.checkpoint import CheckpointManager
from jaxrig.learn import train
from jaxrig.testing import assert_trees_close


@pytest.fixture(scope="module")
def update():
    surrogate = small_surrogate()
    return eqx.filter_jit(lambda state: policy.update_policy(state, POLICY, surrogate))


@pytest.mark.slow
def test_an_update_moves_the_policy_and_resumes_exactly(key, update, tmp_path):
    start = policy.start_policy(key, POLICY, small_surrogate())
    whole, history = train(update, start, 2)
    assert all(np.isfinite(each["total_loss"]) for each in history)
    assert history[0]["mean_reward"] >= 0  # judged by the best so far
    before, after = start.policy.head.weight, whole.policy.head.weight
    assert not np.allclose(before, after, atol=0)
    manager = CheckpointManager(tmp_path)
    train(update, start, 1, manager=manager)
    resumed, _ = train(update, start, 2, manager=manager)
    assert_trees_close(resumed.policy, whole.policy, rtol=0, atol=0)


@pytest.mark.slow
def test_a_trained_network_is_taken_over(key):
    first = policy.start_policy(key, POLICY, small_surrogate())
    again = policy.start_policy(key, POLICY, small_surrogate(), first.policy)
    assert_trees_close(again.policy, first.policy, rtol=0, atol=0)


RECIPE = policy.CloningRecipe(
    PolicyConfig(8), EPISODES, batch_size=16, learning_rate=1e-2
)


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


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "value"), [(0, -1.0), (0, 2.9), (2, 3.3)])
def test_a_move_gives_the_action_back(variable, value):
    action = Action(jnp.asarray(variable), jnp.asarray(value))
    move = policy.as_policy_action(action, observation())
    assert abs(float(move.offset)) <= 0.5
    again = place(observation(), move.cell, move.offset)
    assert int(again.variable) == variable
    np.testing.assert_allclose(again.value, value, rtol=1e-6)


@pytest.mark.slow
def test_the_policy_comes_to_choose_as_the_expert(key):
    surrogate, expert = small_surrogate(), Oracle()
    update = eqx.filter_jit(
        lambda state: policy.update_cloning(state, RECIPE, surrogate, expert)
    )
    _, history = train(update, policy.start_cloning(key, RECIPE), 30)
    losses = [each["loss"] for each in history]
    # The median: a value far from the grid costs much once widths are small.
    assert np.median(losses[-10:]) < np.median(losses[:10]) - 0.3
    assert 0 <= history[-1]["agreement"] <= 1


@pytest.mark.slow
def test_an_expert_of_pairs_is_refused(key):
    state = policy.start_cloning(key, RECIPE)
    with pytest.raises(TypeError, match="RandomPairs sets several"):
        policy.update_cloning(state, RECIPE, small_surrogate(), RandomPairs())


RECIPE_JOINT = policy.JointRecipe(SURROGATE, POLICY, policy_updates=2)


@pytest.mark.slow
def test_both_learners_move_in_every_round(key):
    update = eqx.filter_jit(lambda state: policy.update_joint(state, RECIPE_JOINT))
    start = policy.start_joint(key, RECIPE_JOINT)
    end, history = train(update, start, 2)
    assert all(np.isfinite(each["loss"]) for each in history)
    assert int(end.surrogate.step) == 2 * SURROGATE.steps_per_update
    assert int(end.policy.updates) == 4
    for before, after in (
        (start.surrogate.network.head.weight, end.surrogate.network.head.weight),
        (start.policy.policy.head.weight, end.policy.policy.head.weight),
    ):
        assert not np.allclose(before, after, atol=0)


def test_empty_batches_and_rounds_are_refused():
    with pytest.raises(ValueError, match="policy_updates is 0: give a whole"):
        policy.JointRecipe(policy_updates=0)
    with pytest.raises(ValueError, match="batch_size is 0: give a whole"):
        dataclasses.replace(RECIPE, batch_size=0)


def test_the_shipped_models_are_those_of_the_recipes():
    recipe = policy.shipped_surrogate()
    network = load_surrogate().network
    for name in ("dim", "layers", "heads", "key_size", "pair_dim", "pair_layers"):
        assert getattr(network.config, name) == getattr(recipe.model, name)
    assert load_policy().network.config == policy.shipped_policy().model
    assert sum(x.size for x in jax.tree.leaves(network)) < 400_000


def test_episodes_fit_their_room():
    episodes = policy.shipped_policy().episodes
    assert episodes.capacity == 72
    assert policy.shipped_policy().learner.horizon == episodes.steps
