"""Oracle: the truth of the models that the episodes were played on.

Oracle: the distribution over cells, scaled in NumPy.

Oracle: labels and scores of models written down by hand.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from acbo.acquisition import (
    AcquisitionState,
    ExplorationTrainingConfig,
    RewardWeights,
    exploration_bonus,
)
from acbo.environment import Action
from acbo.policy.environment import Episode, EpisodeConfig, ExperimentEnvironment
from acbo.policy.features import CANDIDATES, FEATURES, PolicyObservation
from acbo.policy.model import PolicyAction, PolicyConfig, PolicyNetwork
from acbo.training import create_jax_surrogate_train_step, kl_divergence_loss
from acbo.training.examples import UNKNOWN
from acbo.training.experience import (
    Explorer,
    ExploringEnvironment,
    SurrogateData,
    collect_experience,
    episode_scores,
    label_history,
    parent_scores,
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
from causal_linear import draw_history, edges, linear_scm
from causal_parameters import fill
from causal_policies import small_surrogate
from causal_surrogates import stand_in
from jaxrig.learn import Step


@pytest.mark.slow
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


@pytest.mark.slow
def test_other_keys_and_updates_give_other_models():
    again = collect_experience(policy_params(), params())
    np.testing.assert_array_equal(again.outcomes, experience().outcomes)
    other = collect_experience(policy_params(), params(), key=jax.random.key(9))
    assert not np.allclose(other.outcomes, experience().outcomes)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_parameters_of_another_network_are_refused():
    model = stand_in()
    with pytest.raises(TypeError, match="Moments: experience is read by"):
        collect_experience(policy_params(), model.init(jax.random.key(0)))


D = 3
NETWORK = PolicyConfig(dim=8)


def observation():
    random = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)
    allowed = jnp.asarray([True, True, False])
    guess, std, gain = jnp.abs(draw(3, D, CANDIDATES))
    ends = -jnp.ones(D), jnp.ones(D)
    return PolicyObservation(
        draw(D, CANDIDATES, FEATURES), guess, std, gain, *ends, allowed
    )


def test_heat_flattens_the_choice_and_is_not_learned():
    network = fill(PolicyNetwork, NETWORK, jax.random.key(0), scale=0.3)
    hot, seen = Explorer(network, jnp.asarray(4.0)), observation()
    choose = jax.jit(lambda hot: (hot(seen), hot.sample(jax.random.key(1), seen)))
    scores, choice = choose(hot)
    cold = np.asarray(jax.jit(lambda each: each(seen).logits)(network))
    np.testing.assert_allclose(scores.logits, cold / 4, rtol=1e-5)
    log_prob = lambda hot: hot.evaluate(seen, choice.action).log_prob
    found, slope = jax.jit(jax.value_and_grad(log_prob))(hot)
    np.testing.assert_allclose(found, choice.log_prob, rtol=1e-5)
    assert float(slope.temperature) == 0
    assert float(jnp.abs(slope.network.head.weight).max()) > 0


def test_the_bonus_is_added_by_its_weight(monkeypatch):
    before = AcquisitionState(
        *(jnp.asarray(0.0), jnp.asarray(1.0)),
        *(jnp.asarray([0.5, 0.9, 0.0]), jnp.asarray([3.0, 1.0, 0.0])),
    )
    scm = linear_scm(edges(D, e01=1.0), 2)
    one = jnp.asarray(1.0)
    state = Episode(
        *(scm, draw_history(scm), jnp.zeros((1, D)), before, one, jnp.asarray(0))
    )
    flag, number = jnp.asarray(False), jnp.asarray(2.0)
    plain = Step(None, None, number, flag, flag)
    monkeypatch.setattr(ExperimentEnvironment, "step", lambda *_: plain)
    settings = ExplorationTrainingConfig()
    episodes = EpisodeConfig(weights=RewardWeights(exploration=0.5))
    inner = ExperimentEnvironment(small_surrogate(), episodes)
    environment = ExploringEnvironment(inner, settings)
    place = jnp.asarray(1)
    move = PolicyAction(place, number, place, number)
    wanted = 2.0 + 0.5 * float(exploration_bonus(before, settings)[1])
    assert float(environment.step(jax.random.key(0), state, move).reward) == wanted


TARGET = 3


def episode(scm, best=0.0, probs=(0.0,) * 4):
    """An episode whose target has a deviation of 2."""
    number = lambda x: jnp.asarray(x, jnp.float32)
    summary = AcquisitionState(number(best), number(0), number(probs), jnp.zeros(4))
    room = draw_history(scm), jnp.zeros((2, 4)), summary, number(2)
    return Episode(scm, *room, jnp.asarray(0))


def test_the_true_set_is_the_label():
    scm = linear_scm(edges(4, e03=1.0, e23=2.0, e12=1.0), TARGET)
    found = label_history(episode(scm), 2)
    probs, held = np.asarray(found.expert_probs), np.asarray(found.example.membership)
    assert probs[int(found.true_index)] == probs.sum() == 1
    assert held[int(found.true_index)].nonzero()[0].tolist() == [0, 2]


def test_a_set_too_large_is_shared_out():
    scm = linear_scm(edges(4, e03=1.0, e13=1.0, e23=2.0), TARGET)
    found = label_history(episode(scm), 2)
    probs, held = np.asarray(found.expert_probs), np.asarray(found.example.membership)
    assert int(found.true_index) == UNKNOWN
    shared = [row.nonzero()[0].tolist() for row in held[probs > 0]]
    assert shared == [[0, 1], [0, 2], [1, 2]]
    np.testing.assert_allclose(probs[probs > 0], 1 / 3, rtol=1e-6)


def test_scores_count_the_other_variables():
    scm = linear_scm(edges(4, e03=1.0, e23=2.0), TARGET)
    f1, accuracy = parent_scores(jnp.asarray([0.9, 0.8, 0.1, 0.9]), scm)
    np.testing.assert_allclose([f1, accuracy], [2 / 4, 1 / 3], rtol=1e-6)
    f1, accuracy = parent_scores(jnp.zeros(4), linear_scm(edges(4), TARGET))
    assert (float(f1), float(accuracy)) == (0, 1)


def test_scores_are_of_start_end_and_actions():
    scm = linear_scm(edges(4, e03=1.0, e23=2.0), TARGET)
    start, end = episode(scm, 5.0), episode(scm, 2.0, (0.9, 0.2, 0.7, 0.0))
    done = Action(jnp.asarray([0, 1, 2, 2]), jnp.zeros(4))
    found = episode_scores(start, end, done)
    assert [float(x) for x in vars(found).values()] == [0.75, 1.0, 1.0, 1.5]
