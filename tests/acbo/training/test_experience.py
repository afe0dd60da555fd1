"""Oracle: the truth of the models that were played on, and models written by hand."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from acbo.acquisition import AcquisitionState
from acbo.policy.rl_environment import Episode
from acbo.training import create_jax_surrogate_train_step, kl_divergence_loss
from acbo.training.experience import (
    SurrogateData,
    collect_experience,
    grpo_with_jax_surrogate,
    label_history,
    update_policy_grpo,
    update_surrogate_jax,
)
from acbo.training.parent_set_model import SurrogateTrainingConfig
from causal_experience import EPISODES, RECIPE, experience, params, policy_params
from causal_linear import draw_history, edges, linear_scm
from causal_surrogates import stand_in


@pytest.mark.slow
def test_episodes_are_played_and_labeled():
    seen = experience()
    start, example = seen.policy.state.state, seen.data.example
    grown = np.asarray(example.row_mask.sum(-1) - start.history.count)
    np.testing.assert_array_equal(grown, EPISODES.steps)
    for item in range(2):
        count = int(start.history.count[item])
        target = int(start.scm.target[item])
        added = np.asarray(example.intervened[item, count : count + EPISODES.steps])
        np.testing.assert_array_equal(added.sum(-1), 1)
        rows = np.asarray(example.values[item, count : count + EPISODES.steps])
        np.testing.assert_array_equal(rows[:, target], np.asarray(seen.outcomes[item]))
        truth = np.asarray(start.scm.adjacency[item, :, target])
        place = int(seen.data.expert_probs[item].argmax())
        np.testing.assert_array_equal(
            np.asarray(example.membership[item, place]), truth
        )
        assert seen.data.expert_probs[item, place] == 1


@pytest.mark.slow
def test_the_policy_moves_and_goes_on_with_other_models():
    again = collect_experience(policy_params(), params())
    np.testing.assert_array_equal(again.outcomes, experience().outcomes)
    after = update_policy_grpo(params(), experience())
    assert int(after.state.updates) == 1
    assert after.recipe == RECIPE
    moved = jax.tree.map(
        lambda a, b: float(jnp.abs(a - b).max()), after.network, policy_params().network
    )
    assert max(jax.tree.leaves(moved)) > 0
    seen = collect_experience(after, params())
    assert not np.allclose(seen.outcomes, experience().outcomes)


@pytest.mark.slow
def test_the_surrogate_learns_its_experience():
    model = stand_in()
    step = create_jax_surrogate_train_step(
        model, optax.adam(0.1), kl_divergence_loss, SurrogateTrainingConfig()
    )
    start = model.init(jax.random.key(3))
    data = SurrogateData(start, experience().data, jax.random.key(2))
    found = []
    for count in range(1, 16):
        latest = update_surrogate_jax(step, data)
        assert data.params is latest
        assert data.updates == count
        found.append(float(data.metrics["kl_loss"]))
    assert found[-1] < found[0]
    assert step.compilations == 1
    with pytest.raises(TypeError, match="Moments: experience is read by"):
        collect_experience(policy_params(), data.params)


LABEL = jax.jit(label_history, static_argnums=1)


def label(**weights):
    """The label of an episode on a model of four variables, sets of at most two."""
    scm = linear_scm(edges(4, **weights), 3)
    number = jnp.zeros(())
    summary = AcquisitionState(number, number, jnp.zeros(4), jnp.zeros(4))
    room = draw_history(scm), jnp.zeros((2, 4)), summary, number
    found = LABEL(Episode(scm, *room, jnp.asarray(0)), 2)
    probs, held = np.asarray(found.expert_probs), np.asarray(found.example.membership)
    sets = [row.nonzero()[0].tolist() for row in held[probs > 0]]
    return sets, probs[probs > 0]


def test_the_true_set_is_the_label():
    sets, probs = label(e03=1.0, e23=2.0, e12=1.0)
    assert (sets, probs.tolist()) == ([[0, 2]], [1.0])


def test_a_set_too_large_is_shared_out():
    sets, probs = label(e03=1.0, e13=1.0, e23=2.0)
    assert sets == [[0, 1], [0, 2], [1, 2]]
    np.testing.assert_allclose(probs, 1 / 3, rtol=1e-6)


@pytest.mark.slow
def test_surrogate_and_policy_learn_in_turns():
    config = SurrogateTrainingConfig(model_hidden_dim=16, model_n_layers=1)
    rounds = SimpleNamespace(total_steps=2)
    policy, trained = grpo_with_jax_surrogate(rounds, config, RECIPE)
    untrained = grpo_with_jax_surrogate(SimpleNamespace(total_steps=0), config, RECIPE)
    assert int(policy.state.updates) == 2
    moved = jax.tree.map(
        lambda a, b: float(jnp.abs(a - b).max()), trained, untrained[1]
    )
    assert max(jax.tree.leaves(moved)) > 0
