"""Probabilities of the policies against sums over every operation and cell."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.actions import PointAction
from jaxarc.learning.policy import PointPolicy, RandomPolicy

OPERATIONS = (2, 7, 33)
SHAPE = (3, 4)
COUNT = 3_000


@functools.cache
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
def distribution(policy, observation):
    return policy.distribution(observation)


@eqx.filter_jit
def sample_many(policy, keys, observation):
    return jax.vmap(policy.sample, (0, None))(keys, observation)


@pytest.fixture(scope="module")
def drawn():
    """Many actions of one policy."""
    keys = jax.random.split(jax.random.key(2), COUNT)
    return jax.device_get(sample_many(make_policy(), keys, make_observation()))


def test_probabilities_sum_to_one_and_entropy_is_over_all_actions():
    found = evaluate_all(make_policy(), make_observation(), every_action())
    log_prob = np.asarray(found.log_prob, np.float64)
    assert np.exp(log_prob).sum() == pytest.approx(1.0, abs=1e-5)
    assert np.ptp(np.asarray(found.value)) == pytest.approx(0.0, abs=1e-6)
    wanted = -(np.exp(log_prob) * log_prob).sum()
    np.testing.assert_allclose(found.entropy, wanted, rtol=1e-5)


def test_actions_are_drawn_as_often_as_their_probability_says(drawn):
    action, observation, actions = drawn.action, make_observation(), every_action()
    place = np.searchsorted(OPERATIONS, action.operation)
    flat = (place * SHAPE[0] + action.row) * SHAPE[1] + action.col
    known = evaluate_all(make_policy(), observation, actions)
    np.testing.assert_allclose(drawn.log_prob, known.log_prob[flat], rtol=1e-5)
    np.testing.assert_allclose(drawn.value, known.value[flat], rtol=1e-5)
    counts = np.bincount(flat, minlength=len(actions.row))
    wanted = np.exp(np.asarray(known.log_prob))
    deviation = np.sqrt(wanted * (1 - wanted) / COUNT)
    assert len(counts) == len(wanted)
    assert np.all(np.abs(counts / COUNT - wanted) < 5 * deviation)


def test_random_policy_is_uniform_over_what_may_be_drawn(drawn):
    keys = jax.random.split(jax.random.key(3), 500)
    found = sample_many(RandomPolicy(OPERATIONS), keys, make_observation())
    number = len(OPERATIONS) * SHAPE[0] * SHAPE[1]
    np.testing.assert_allclose(found.log_prob, np.full(500, -np.log(number)), rtol=1e-6)
    np.testing.assert_array_equal(found.value, np.zeros(500))
    for action in (drawn.action, found.action):
        assert set(np.asarray(action.operation).tolist()) == set(OPERATIONS)
        assert set(np.asarray(action.row).tolist()) == set(range(SHAPE[0]))
        assert set(np.asarray(action.col).tolist()) == set(range(SHAPE[1]))


def test_best_is_the_likeliest_cell_of_the_likeliest_operation():
    find_best = eqx.filter_jit(lambda policy, seen: policy.best(seen))
    for seed in range(2):
        policy, observation = make_policy(seed=seed), make_observation(seed=seed)
        found = evaluate_all(policy, observation, every_action())
        joint = np.exp(np.asarray(found.log_prob)).reshape(len(OPERATIONS), -1)
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


def test_a_plain_grid_is_one_channel_and_every_color_looks_different():
    policy = make_policy(channels=1, depth=0)
    grids = [jnp.full(SHAPE, color, jnp.int32) for color in range(-1, 10)]
    found = [distribution(policy, grid) for grid in grids]
    assert len({float(value) for _, _, value in found}) == 11
    channel = distribution(policy, grids[3][..., None])
    for one, other in zip(channel, found[3], strict=True):
        np.testing.assert_array_equal(one, other)


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
