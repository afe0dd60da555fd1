import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.policy.model import PolicyAction
from acbo.policy.rl_environment import ExperimentEnvironment
from causal_learning import EPISODES
from causal_policies import small_surrogate
from jaxrig.learn import Environment

pytestmark = pytest.mark.slow  # compiles whole programs


@pytest.fixture(scope="module")
def episodes():
    """A few resets, and one step of each with the first allowed variable."""
    environment = ExperimentEnvironment(small_surrogate(), EPISODES)
    assert isinstance(environment, Environment)

    def play(key):
        state, observation = environment.reset(key)
        variable = jnp.argmax(state.scm.allowed)
        move = PolicyAction(
            jnp.asarray(0), jnp.asarray(0.0), variable, state.scm.low[variable]
        )
        return state, observation, move, environment.step(key, state, move)

    return jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 6))


def test_a_step_adds_the_row_it_caused(episodes):
    state, _, move, after = episodes
    rows = np.asarray(state.history.count)
    assert (np.asarray(after.state.history.count) == rows + 1).all()
    for i, row in enumerate(rows):
        variable = int(move.variable[i])
        assert after.state.history.values[i, row, variable] == move.value[i]
        flags = np.asarray(after.state.history.intervened[i, row])
        assert flags.sum() == 1
        assert flags[variable]
    assert (np.asarray(after.state.step) == 1).all()
    assert not np.asarray(after.truncated).any()


def test_the_reward_is_the_gain_over_the_best_so_far(episodes):
    state, _, _, after = episodes
    before = np.asarray(state.summary.best_value)
    best = np.asarray(after.state.summary.best_value)
    gain = (before - best) / np.asarray(state.scale)
    np.testing.assert_allclose(after.reward, gain, rtol=1e-4, atol=1e-5)
    assert (gain >= 0).all()
    assert (gain > 0).any()


def test_what_is_known_is_finite_and_the_entropy_that_of_the_edges(episodes):
    state, observation, *_ = episodes
    assert np.isfinite(np.asarray(observation.features)).all()
    chance = np.clip(np.asarray(state.summary.parent_probs, np.float64), 1e-6, 1)
    others = np.asarray(state.scm.allowed)
    entropy = -(chance * np.log(chance) + (1 - chance) * np.log1p(-chance))
    wanted = np.where(others, entropy, 0).sum(axis=1)
    np.testing.assert_allclose(state.summary.entropy, wanted, rtol=1e-4)
