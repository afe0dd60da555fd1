import equinox as eqx
import numpy as np
import pytest

from acbo.training.policy import JointRecipe, start_joint, update_joint
from causal_learning import POLICY, SURROGATE
from jaxrig.learn import train

RECIPE = JointRecipe(SURROGATE, POLICY, policy_updates=2)


@pytest.mark.slow
def test_both_learners_move_in_every_round(key):
    update = eqx.filter_jit(lambda state: update_joint(state, RECIPE))
    start = start_joint(key, RECIPE)
    end, history = train(update, start, 2)
    assert all(np.isfinite(each["loss"]) for each in history)
    assert int(end.surrogate.step) == 2 * SURROGATE.steps_per_update
    assert int(end.policy.updates) == 4
    for before, after in (
        (start.surrogate.network.head.weight, end.surrogate.network.head.weight),
        (start.policy.policy.head.weight, end.policy.policy.head.weight),
    ):
        assert not np.allclose(before, after, atol=0)


def test_rounds_without_the_policy_are_refused():
    with pytest.raises(ValueError, match="policy_updates=0"):
        JointRecipe(policy_updates=0)
