"""Oracle: the formulas by hand, and the batched form against the loop."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.acquisition import AcquisitionState, RewardWeights, compute_rewards
from acbo.environment import Action
from acbo.scm import set_variables


def state(best=1.0, entropy=2.0, probs=(0.9, 0.2, 0.0), counts=(3.0, 1.0, 0.0)):
    return AcquisitionState(*(np.float32(x) for x in (best, entropy, probs, counts)))


def act(variable):
    return Action(np.int32(variable), np.float32(0.0))


@partial(jax.jit, static_argnums=4)
def rewards(before, action, outcome, after, direction="MINIMIZE"):
    return compute_rewards(before, action, outcome, after, direction=direction)


@pytest.mark.parametrize(
    ("direction", "gain"), [("MINIMIZE", 0.5), ("MAXIMIZE", -0.5), ("minimize", 0.5)]
)
def test_components_by_hand(direction, gain):
    found = rewards(state(), act(0), 0.5, state(entropy=1.5), direction)
    total = np.tanh(gain) + 0.5 * 0.25 + 0.3 * 0.9 + 0.1 * 0.025
    wanted = np.tanh(gain), 0.25, 0.9, 0.1 * (1 - 3 / 4), total
    np.testing.assert_allclose(jax.tree.leaves(found), wanted, rtol=1e-6)


def test_edges():
    """No entropy before, more entropy after, nothing done yet, a huge gain."""
    first = state(entropy=0.0, counts=(0.0, 0.0, 0.0))
    found = rewards(first, act(1), -1e6, state())
    assert float(found.structure) == 0.0
    assert float(found.optimization) == 1.0
    np.testing.assert_allclose(found.exploration, 0.1)
    worse = rewards(state(), act(1), -1e6, state(entropy=3.0))
    assert float(worse.structure) == 0.0


def test_several_variables_count_by_their_mean():
    pair = set_variables(jnp.asarray([True, True, False]), jnp.zeros(3))
    found = rewards(state(), pair, 0.0, state())
    np.testing.assert_allclose(found.parent, 0.55, rtol=1e-6)
    np.testing.assert_allclose(found.exploration, 0.1 * (1 - 2 / 4), rtol=1e-6)


def test_mapped_equals_the_loop():
    outcomes, after = np.float32([0.0, 1.0, 3.0]), state(entropy=1.0)
    weights = {"optimization": 2.0, "parent": 1.0}
    reward = lambda v, y: compute_rewards(
        *(state(), Action(v, y), y, after), direction="MAXIMIZE", weights=weights
    )
    variables = np.arange(3)
    found = jax.jit(jax.vmap(reward))(variables, outcomes)
    each = [jax.jit(reward)(*given) for given in zip(variables, outcomes, strict=True)]
    loop = jax.tree.map(lambda *x: np.stack(x), *each)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, loop)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="parent is -1: give a number from 0"):
        RewardWeights(parent=-1)
    with pytest.raises(
        ValueError, match=r"'UP' is not known; .* There are: MINIMIZE, MAX"
    ):
        rewards(state(), act(0), 0.0, state(), "UP")
