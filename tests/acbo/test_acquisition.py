"""Oracle: the formulas by hand.

Oracle: the formulas by hand, and the batched form against the loop.
"""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.acquisition import (
    AcquisitionState,
    ExplorationTrainingConfig,
    RewardWeights,
    compute_rewards,
    count_bonus,
    epistemic_bonus,
    exploration_bonus,
    exploration_temperature,
    variable_uncertainty,
)
from acbo.scm import set_variables

PROBS = jnp.asarray([0.5, 0.9, 0.0])
COUNTS = jnp.asarray([2.0, 6.0, 0.0])


def test_bonuses_by_hand():
    np.testing.assert_allclose(variable_uncertainty(PROBS), [1.0, 0.2, 0.0], 1e-6)
    bits = epistemic_bonus(PROBS, jnp.asarray(np.log(4.0), jnp.float32))
    np.testing.assert_allclose(bits, [2.0, 0.4, 0.0], rtol=1e-6)
    np.testing.assert_allclose(count_bonus(COUNTS), [0.75, 0.25, 1.0])
    np.testing.assert_allclose(count_bonus(jnp.zeros(3)), 1.0)
    entropy = jnp.asarray(np.log(4.0), jnp.float32)
    state = AcquisitionState(jnp.asarray(0.0), entropy, PROBS, COUNTS)
    found = exploration_bonus(state, ExplorationTrainingConfig())
    expected = [2.0 + 0.075 + 0.5, 0.4 + 0.025 + 0.1, 0.1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_temperature_cools_linearly_and_stops():
    config = ExplorationTrainingConfig()
    found = [float(exploration_temperature(s, config)) for s in (0, 500, 1000, 9000)]
    np.testing.assert_allclose(found, [2.0, 1.05, 0.1, 0.1], rtol=1e-5)
    fixed = ExplorationTrainingConfig(strategy="fixed")
    assert float(exploration_temperature(jnp.asarray(700), fixed)) == 2.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strategy": "wild"}, "strategy='wild' is not one of: adaptive, fixed"),
        ({"final_temperature": 0.0}, "final_temperature=0.0 must be above 0"),
        ({"count_weight": -1.0}, "count_weight=-1.0 must be at least 0"),
    ],
)
def test_bad_configurations_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ExplorationTrainingConfig(**values)


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
    with pytest.raises(ValueError, match="parent=-1 must be finite and at least 0"):
        RewardWeights(parent=-1)
    with pytest.raises(
        ValueError, match=r"'UP' is not known; .* There are: MINIMIZE, MAX"
    ):
        compute_rewards(state(), act(0), jnp.asarray(0.0), state(), direction="UP")
