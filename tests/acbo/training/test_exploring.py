"""Oracle: the distribution over cells, scaled in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from acbo.acquisition import (
    AcquisitionState,
    ExplorationTrainingConfig,
    RewardWeights,
    exploration_bonus,
)
from acbo.policy.environment import Episode, EpisodeConfig, ExperimentEnvironment
from acbo.policy.features import CANDIDATES, FEATURES, PolicyObservation
from acbo.policy.model import PolicyAction, PolicyConfig, PolicyNetwork
from acbo.training.experience import Explorer, ExploringEnvironment
from causal_linear import draw_history, edges, linear_scm
from causal_parameters import fill
from causal_policies import small_surrogate
from jaxrig.learn import Step

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
