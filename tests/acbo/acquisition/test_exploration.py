"""Oracle: the formulas by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from acbo.acquisition import (
    AcquisitionState,
    ExplorationTrainingConfig,
    count_bonus,
    epistemic_bonus,
    exploration_bonus,
    exploration_temperature,
    variable_uncertainty,
)

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
