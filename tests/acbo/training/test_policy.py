import equinox as eqx
import numpy as np
import pytest

from acbo.training.policy import start_policy, update_policy
from causal_learning import POLICY
from causal_policies import small_surrogate
from jaxrig.checkpoint import CheckpointManager
from jaxrig.learn import train
from jaxrig.testing import assert_trees_close

pytestmark = pytest.mark.slow  # compiles whole programs


@pytest.fixture(scope="module")
def update():
    surrogate = small_surrogate()
    return eqx.filter_jit(lambda state: update_policy(state, POLICY, surrogate))


def test_an_update_moves_the_policy_and_resumes_exactly(key, update, tmp_path):
    start = start_policy(key, POLICY, small_surrogate())
    whole, history = train(update, start, 2)
    assert all(np.isfinite(each["total_loss"]) for each in history)
    assert history[0]["mean_reward"] >= 0  # judged by the best so far
    before, after = start.policy.head.weight, whole.policy.head.weight
    assert not np.allclose(before, after, atol=0)
    manager = CheckpointManager(tmp_path)
    train(update, start, 1, manager=manager)
    resumed, _ = train(update, start, 2, manager=manager)
    assert_trees_close(resumed.policy, whole.policy, rtol=0, atol=0)


def test_a_trained_network_is_taken_over(key):
    first = start_policy(key, POLICY, small_surrogate())
    again = start_policy(key, POLICY, small_surrogate(), first.policy)
    assert_trees_close(again.policy, first.policy, rtol=0, atol=0)
