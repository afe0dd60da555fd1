"""Probabilities of the policies against sums over every operation and cell."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.actions import PointAction
from jaxarc.learning.policy import PointPolicy, RandomPolicy

OPERATIONS = (2, 7, 33)
SHAPE = (3, 4)


def make_policy(channels=2, depth=1, seed=0, **options):
    key = jax.random.key(seed)
    return PointPolicy(key, channels, OPERATIONS, features=8, depth=depth, **options)


def make_observation(channels=2, seed=0, batch=()):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.integers(-1, 10, (*batch, *SHAPE, channels)), jnp.int32)


def every_action(operations=OPERATIONS, shape=SHAPE):
    """All actions of a point policy, one after the other."""
    grid = np.meshgrid(operations, range(shape[0]), range(shape[1]), indexing="ij")
    return PointAction(*(jnp.asarray(x.reshape(-1), jnp.int32) for x in grid))


@eqx.filter_jit
def evaluate_all(policy, observation, actions):
    return jax.vmap(policy.evaluate, (None, 0))(observation, actions)


@eqx.filter_jit
def find_best(policy, observation):
    return policy.best(observation)


@eqx.filter_jit
def distribution(policy, observation):
    return policy.distribution(observation)


@eqx.filter_jit
def sample_many(policy, keys, observation):
    return jax.vmap(policy.sample, (0, None))(keys, observation)


@pytest.mark.parametrize("depth", [0, 2])
def test_probabilities_of_all_actions_sum_to_one(depth):
    found = evaluate_all(make_policy(depth=depth), make_observation(), every_action())
    assert np.exp(np.asarray(found.log_prob)).sum() == pytest.approx(1.0, abs=1e-5)
    assert np.ptp(np.asarray(found.value)) == pytest.approx(0.0, abs=1e-6)


def test_entropy_is_the_sum_over_all_actions():
    found = evaluate_all(make_policy(), make_observation(), every_action())
    log_prob = np.asarray(found.log_prob, np.float64)
    wanted = -(np.exp(log_prob) * log_prob).sum()
    np.testing.assert_allclose(found.entropy, wanted, rtol=1e-5)


def test_a_drawn_action_is_worth_what_evaluate_says():
    policy, observation = make_policy(), make_observation()
    drawn = sample_many(policy, jax.random.split(jax.random.key(1), 64), observation)
    known = evaluate_all(policy, observation, drawn.action)
    np.testing.assert_allclose(drawn.log_prob, known.log_prob, rtol=1e-5)
    np.testing.assert_allclose(drawn.value, known.value, rtol=1e-5)


def test_actions_are_drawn_as_often_as_their_probability_says():
    policy, observation, count = make_policy(), make_observation(), 20_000
    keys = jax.random.split(jax.random.key(2), count)
    action = sample_many(policy, keys, observation).action
    place = np.searchsorted(OPERATIONS, np.asarray(action.operation))
    flat = (place * SHAPE[0] + np.asarray(action.row)) * SHAPE[1]
    flat += np.asarray(action.col)
    actions = every_action()
    counts = np.bincount(flat, minlength=len(actions.row))
    wanted = np.exp(np.asarray(evaluate_all(policy, observation, actions).log_prob))
    deviation = np.sqrt(wanted * (1 - wanted) / count)
    assert len(counts) == len(wanted)
    assert np.all(np.abs(counts / count - wanted) < 5 * deviation)


def test_only_listed_operations_inside_the_grid():
    keys = jax.random.split(jax.random.key(3), 500)
    for policy in (make_policy(), RandomPolicy(OPERATIONS)):
        action = sample_many(policy, keys, make_observation()).action
        assert set(np.asarray(action.operation).tolist()) == set(OPERATIONS)
        assert set(np.asarray(action.row).tolist()) == set(range(SHAPE[0]))
        assert set(np.asarray(action.col).tolist()) == set(range(SHAPE[1]))


@pytest.mark.parametrize("seed", range(4))
def test_best_is_the_likeliest_cell_of_the_likeliest_operation(seed):
    policy, observation = make_policy(seed=seed), make_observation(seed=seed)
    log_prob = np.asarray(evaluate_all(policy, observation, every_action()).log_prob)
    joint = np.exp(log_prob).reshape(len(OPERATIONS), -1)
    operation = joint.sum(axis=1).argmax()
    row, column = divmod(joint[operation].argmax(), SHAPE[1])
    best = find_best(policy, observation)
    found = (int(best.operation), int(best.row), int(best.col))
    assert found == (OPERATIONS[operation], row, column)


def test_a_batch_gives_what_its_rows_give():
    policy, observations = make_policy(), make_observation(batch=(3,))
    keys = jax.random.split(jax.random.key(4), 3)
    together = jax.device_get(jax.jit(jax.vmap(policy.sample))(keys, observations))
    sample = eqx.filter_jit(policy.sample)
    for index in range(3):
        alone = sample(keys[index], observations[index])
        same = jax.tree.map(lambda x, i=index: x[i], together.action)
        assert jax.tree.all(jax.tree.map(np.array_equal, alone.action, same))
        np.testing.assert_allclose(together.log_prob[index], alone.log_prob, rtol=1e-5)


def test_a_plain_grid_is_one_channel():
    policy, observation = make_policy(channels=1), make_observation(channels=1)
    for one, other in zip(
        distribution(policy, observation),
        distribution(policy, observation[..., 0]),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_colors_and_padding_all_look_different():
    policy = make_policy(channels=1)
    values = [
        float(distribution(policy, jnp.full(SHAPE, color, jnp.int32))[2])
        for color in range(-1, 10)
    ]
    assert len(set(values)) == 11


def test_random_policy_is_uniform():
    keys = jax.random.split(jax.random.key(5), 8)
    drawn = sample_many(RandomPolicy(OPERATIONS), keys, make_observation())
    number = len(OPERATIONS) * SHAPE[0] * SHAPE[1]
    np.testing.assert_allclose(drawn.log_prob, np.full(8, -np.log(number)), rtol=1e-6)
    np.testing.assert_array_equal(drawn.value, np.zeros(8))


def test_half_precision_rounds_and_keeps_its_parameters():
    policy = make_policy()
    half = make_policy(dtype="bfloat16")
    arrays = jax.tree.leaves(eqx.filter(half, eqx.is_array))
    assert {leaf.dtype for leaf in arrays} == {jnp.dtype("float32")}
    exact_parts = distribution(policy, make_observation())
    rounded_parts = distribution(half, make_observation())
    for exact, found in zip(exact_parts, rounded_parts, strict=True):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, exact, atol=0.03)
    assert not np.array_equal(exact_parts[1], rounded_parts[1])
