"""Oracle: hand-written NumPy formulas, and the exact optimum of a tabular problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.compile_guard import compile_once
from jaxrig.learn import ppo, tabular


def test_loss_equals_hand_computed_values():
    floats = lambda *values: jnp.asarray(values, jnp.float32)
    policy = tabular.TabularPolicy(
        jnp.asarray(np.log([[0.2, 0.8], [0.5, 0.5]]), jnp.float32), floats(1, -1)
    )
    batch = ppo._Batch(
        observation=jnp.asarray([0, 1, 0], jnp.int32),
        action=jnp.asarray([1, 0, 0], jnp.int32),
        log_prob=floats(*np.log([0.5, 0.5, 0.2 / 0.9])),
        advantage=floats(1, 2, 3),
        target=floats(0.5, -1, 2),
    )
    config = ppo.PPOConfig(clip_ratio=0.2)
    loss, parts = jax.jit(ppo.ppo_loss, static_argnums=2)(policy, batch, config)
    scaled = np.asarray([-1, 0, 1]) / np.sqrt(2 / 3)  # of advantages 1, 2, 3
    ratio = np.asarray([1.6, 1.0, 0.9])
    clipped = np.asarray([1.2, 1.0, 0.9])
    policy_loss = -np.minimum(ratio * scaled, clipped * scaled).mean()
    value_loss = (0.25 + 0.0 + 1.0) / 3
    entropies = [-(0.2 * np.log(0.2) + 0.8 * np.log(0.8)), np.log(2)]
    entropy = (2 * entropies[0] + entropies[1]) / 3
    np.testing.assert_allclose(parts["policy_loss"], policy_loss, rtol=1e-5)
    np.testing.assert_allclose(parts["value_loss"], value_loss, rtol=1e-5)
    np.testing.assert_allclose(parts["entropy"], entropy, rtol=1e-5)
    np.testing.assert_allclose(
        loss, policy_loss + 0.5 * value_loss - 0.01 * entropy, rtol=1e-5
    )
    np.testing.assert_allclose(parts["clip_fraction"], 1 / 3, rtol=1e-6)


CONFIG = ppo.PPOConfig(
    environments=16,
    steps=32,
    learning_rate=0.03,
    discount=0.95,
    entropy_coeff=0.003,
    minibatches=2,
)


PROBLEM = tabular.corridor(6, lure=0.3, slip=0.1)
update = compile_once(ppo.ppo_update)


def test_reaches_the_optimum_of_a_corridor_with_a_lure():
    problem = PROBLEM
    start = np.asarray(problem.start, np.float64)
    best = start @ tabular.optimal_values(problem, 0.95)
    uniform = start @ tabular.policy_values(problem, np.full((8, 2), 0.5), 0.95)
    assert uniform < 0.7 * best
    for seed in range(2):
        policy = tabular.uniform_policy(problem)
        state = ppo.ppo_init(jax.random.key(seed), problem, policy, CONFIG)
        for _ in range(60):
            state, metrics = update(state, problem, CONFIG)
            assert np.isfinite(metrics.loss)
        chances = state.policy.probabilities()
        assert start @ tabular.policy_values(problem, chances, 0.95) >= 0.98 * best
    assert update.trace_count == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": 0}, "epochs is 0: give a whole number from 1"),
        ({"environments": 2, "steps": 4, "minibatches": 8}, "at least two rows"),
        ({"learning_rate": -1.0}, r"learning_rate is -1\.0: give a number above 0"),
        ({"entropy_coeff": float("nan")}, "entropy_coeff is nan"),
        ({"environments": 5, "steps": 5, "minibatches": 2}, "cannot be split"),
        ({"discount": 1.5}, r"discount is 1\.5: give a number from 0 to 1"),
    ],
)
def test_bad_configurations_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ppo.PPOConfig(**values)
