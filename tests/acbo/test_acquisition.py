"""Oracle: the formulas by hand, and the batched form against the loop."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.acquisition import (
    AcquisitionState,
    RewardWeights,
    compute_rewards,
)
from acbo.scm import set_variables


def state(best=1.0, entropy=2.0, probs=(0.9, 0.2, 0.0), counts=(3.0, 1.0, 0.0)):
    given = (jnp.asarray(best), jnp.asarray(entropy))
    return AcquisitionState(*given, jnp.asarray(probs), jnp.asarray(counts))


def act(variable):
    return SimpleNamespace(variable=jnp.asarray(variable))


@pytest.mark.parametrize(
    ("direction", "gain"), [("MINIMIZE", 0.5), ("MAXIMIZE", -0.5), ("minimize", 0.5)]
)
def test_components_by_hand(direction, gain):
    found = compute_rewards(
        *(state(), act(0), jnp.asarray(0.5), state(entropy=1.5)), direction=direction
    )
    np.testing.assert_allclose(found.optimization, np.tanh(gain), rtol=1e-6)
    np.testing.assert_allclose(found.structure, 0.25, rtol=1e-6)
    np.testing.assert_allclose(found.parent, 0.9, rtol=1e-6)
    np.testing.assert_allclose(found.exploration, 0.1 * (1 - 3 / 4), rtol=1e-6)
    total = np.tanh(gain) + 0.5 * 0.25 + 0.3 * 0.9 + 0.1 * 0.025
    np.testing.assert_allclose(found.total, total, rtol=1e-6)


def test_edges():
    """No entropy before, more entropy after, nothing done yet, a huge gain."""
    y = jnp.asarray(-1e6)
    first = state(entropy=0.0, counts=(0.0, 0.0, 0.0))
    found = compute_rewards(first, act(1), y, state(), direction="MINIMIZE")
    assert float(found.structure) == 0.0
    assert float(found.optimization) == 1.0
    np.testing.assert_allclose(found.exploration, 0.1)
    worse = compute_rewards(state(), act(1), y, state(entropy=3.0))
    assert float(worse.structure) == 0.0


def test_several_variables_count_by_their_mean():
    pair = set_variables(jnp.asarray([True, True, False]), jnp.zeros(3))
    found = compute_rewards(state(), pair, jnp.asarray(0.0), state())
    np.testing.assert_allclose(found.parent, 0.55, rtol=1e-6)
    np.testing.assert_allclose(found.exploration, 0.1 * (1 - 2 / 4), rtol=1e-6)


def test_compiled_and_mapped_equals_the_loop():
    variables, outcomes = jnp.asarray([0, 1, 2]), jnp.asarray([0.0, 1.0, 3.0])
    weights = {"optimization": 2.0, "parent": 1.0}
    reward = lambda v, y: compute_rewards(
        *(state(), act(v), y, state(entropy=1.0)), direction="MAXIMIZE", weights=weights
    )
    found = jax.jit(jax.vmap(reward))(variables, outcomes)
    each = [reward(v, y) for v, y in zip(variables, outcomes, strict=True)]
    loop = jax.tree.map(lambda *x: jnp.stack(x), *each)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, loop)
    assert eqx.tree_equal(reward(0, outcomes[0]).total, each[0].total)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="parent is -1: give a number from 0"):
        RewardWeights(parent=-1)
    with pytest.raises(
        ValueError, match=r"'UP' is not known; .* There are: MINIMIZE, MAX"
    ):
        compute_rewards(state(), act(0), jnp.asarray(0.0), state(), direction="UP")
