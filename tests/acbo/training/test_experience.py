"""Oracle: the truth of the models that the episodes were played on."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from acbo.training import create_jax_surrogate_train_step, kl_divergence_loss
from acbo.training.experience import (
    SurrogateData,
    collect_experience,
    update_policy_grpo,
    update_surrogate_jax,
)
from causal_experience import (
    EPISODES,
    RECIPE,
    SURROGATE,
    experience,
    params,
    policy_params,
)
from causal_surrogates import stand_in

pytestmark = pytest.mark.slow  # the guide's test plays it too


def test_episodes_are_played_and_labeled():
    seen = experience()
    start, example = seen.state.state, seen.data.example
    grown = np.asarray(example.row_mask.sum(-1) - start.history.count)
    np.testing.assert_array_equal(grown, EPISODES.steps)
    truths = []
    for item in range(2):
        count = int(start.history.count[item])
        target = int(start.scm.target[item])
        added = np.asarray(example.intervened[item, count : count + EPISODES.steps])
        np.testing.assert_array_equal(
            added.argmax(-1), np.asarray(seen.actions.variable[item])
        )
        np.testing.assert_array_equal(added.sum(-1), 1)
        rows = np.asarray(example.values[item, count : count + EPISODES.steps])
        np.testing.assert_array_equal(rows[:, target], np.asarray(seen.outcomes[item]))
        truth = np.asarray(start.scm.adjacency[item, :, target])
        truths.append(truth)
        place = int(seen.data.true_index[item])
        np.testing.assert_array_equal(
            np.asarray(example.membership[item, place]), truth
        )
        assert seen.data.expert_probs[item, place] == 1
    hits = [truths[i][v] for i in range(2) for v in seen.actions.variable[i]]
    assert float(seen.scores.parent_rate) == pytest.approx(np.mean(hits))


def test_other_keys_and_updates_give_other_models():
    again = collect_experience(policy_params(), params())
    np.testing.assert_array_equal(again.outcomes, experience().outcomes)
    other = collect_experience(policy_params(), params(), key=jax.random.key(9))
    assert not np.allclose(other.outcomes, experience().outcomes)


def test_the_policy_moves_and_keeps_its_memory():
    after = update_policy_grpo(params(), experience())
    assert int(after.updates) == 1
    assert after.recipe == RECIPE
    moved = jax.tree.map(
        lambda a, b: float(jnp.abs(a - b).max()), after.network, policy_params().network
    )
    assert max(jax.tree.leaves(moved)) > 0
    exploration = RECIPE.exploration
    assert float(after.policy.temperature) == exploration.initial_temperature
    seen = collect_experience(after, params())
    assert float(seen.state.policy.temperature) < exploration.initial_temperature
    counts = [x for x in jax.tree.leaves(seen.state.optimizer) if x.dtype == jnp.int32]
    assert int(counts[0]) == RECIPE.policy.learner.num_iterations


def test_the_surrogate_learns_its_experience():
    model = stand_in()
    step = create_jax_surrogate_train_step(
        model, optax.adam(0.1), kl_divergence_loss, SURROGATE
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
    data.add(experience())
    assert data.batch is experience().data


def test_parameters_of_another_network_are_refused():
    model = stand_in()
    with pytest.raises(TypeError, match="Moments: experience is read by"):
        collect_experience(policy_params(), model.init(jax.random.key(0)))
