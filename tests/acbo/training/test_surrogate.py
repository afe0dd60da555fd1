import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo import exact_parent_posterior
from acbo.random_models import Dataset
from acbo.surrogate.model import Prediction
from acbo.training.surrogate import (
    SurrogateRecipe,
    cross_entropy,
    exact_targets,
    learning_rate,
    set_loss,
    start_surrogate,
    true_targets,
    update_surrogate,
)
from causal_learning import SURROGATE
from causal_linear import draw_history, edges, linear_scm
from jaxrig.checkpoint import CheckpointManager
from jaxrig.compile_guard import compile_once
from jaxrig.learn import train
from jaxrig.sharding import make_mesh, replicate
from jaxrig.testing import assert_trees_close


@pytest.fixture(scope="module")
def update():
    return eqx.filter_jit(lambda state: update_surrogate(state, SURROGATE))


def test_cross_entropy_is_the_log_loss_and_stays_exact_far_out():
    logits = np.array([0.0, 2.0, -200.0, 200.0, -np.inf], np.float32)
    truth = np.array([1.0, 0.0, 1.0, 1.0, 0.0], np.float32)
    found = jax.jit(cross_entropy)(logits, truth)
    wanted = [np.log(2), 2 + np.log1p(np.exp(-2)), 200.0, 0.0, 0.0]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    slope = jax.jit(jax.grad(lambda x, y: cross_entropy(x, y).sum()))
    np.testing.assert_allclose(slope(logits, truth)[2:], [-1.0, 0.0, 0.0], atol=1e-6)
    # A soft loss is least at the chance itself.
    chance = np.array([0.3, 0.9, 0.5, 0.5, 0.5], np.float32)
    np.testing.assert_allclose(
        slope(np.log(chance / (1 - chance)), chance), 0.0, atol=1e-6
    )


def test_the_loss_of_a_set_is_its_share():
    zeros: Any = lambda *shape: np.zeros(shape, np.float32)
    members: Any = np.array([0.0, -np.inf, 1.0], np.float32)
    parts = zeros(3, 3), members, members, zeros(3, 2), zeros(11)
    given = jax.tree.map(jnp.asarray, Prediction(*parts))
    rest = jnp.asarray(1), jnp.ones(3, bool), 3
    loss = jax.jit(lambda sets: set_loss(given, sets, *rest))
    total = np.exp([0.0, 0.0, 1.0, 1.0]).sum()  # sets {}, {0}, {2}, {0, 2}
    found = loss(np.array([0.0, 0.0, 1.0, 0.0], np.float32))
    np.testing.assert_allclose(found, -np.log(np.e / total), rtol=1e-6)
    half = loss(np.array([0.5, 0.0, 0.5, 0.0], np.float32))
    np.testing.assert_allclose(half, np.log(total) - 0.5, rtol=1e-6)


def test_the_rate_rises_then_falls_to_a_hundredth():
    recipe = SurrogateRecipe(learning_rate=1.0, warmup=10)
    at = lambda step: float(learning_rate(jnp.asarray(step), jnp.asarray(100), recipe))
    assert at(0) == pytest.approx(0.1)
    assert at(9) > at(4) > at(0)
    assert at(50) == pytest.approx(0.505, abs=0.01)
    assert at(100) == pytest.approx(0.01)


def test_bad_recipes_are_refused():
    with pytest.raises(ValueError, match="2 batch sizes for 1 buckets"):
        dataclasses.replace(SURROGATE, batches=(1, 2))
    with pytest.raises(ValueError, match="not a multiple of steps_per_update"):
        dataclasses.replace(SURROGATE, steps=3)


@pytest.mark.slow
def test_eight_devices_agree_with_one(key):
    recipe = dataclasses.replace(SURROGATE, steps_per_update=1)
    state = start_surrogate(key, recipe)
    run = compile_once(update_surrogate, max_traces=None)
    (one, apart), (eight, together) = (
        run(state if mesh is None else replicate(state, mesh), recipe, mesh)
        for mesh in (None, make_mesh())
    )
    # Adam's memory after one step is the gradient and its square. (Its step is not
    # compared: keys' biases have no slope but rounding, which Adam makes large.)
    for found, wanted in ((eight.optimizer, one.optimizer), (together, apart)):
        assert_trees_close(*jax.device_get((found, wanted)), rtol=1e-5, atol=1e-6)
    odd = dataclasses.replace(SURROGATE, batches=(3,))
    with pytest.raises(ValueError, match="3 models in a step do not divide over 8"):
        jax.eval_shape(lambda: update_surrogate(state, odd, make_mesh()))


@pytest.mark.slow
def test_stopped_and_resumed_training_ends_where_the_whole_does(key, update, tmp_path):
    start = start_surrogate(key, SURROGATE)
    whole, history = train(update, start, 4)
    assert all(np.isfinite(each["loss"]) for each in history)
    manager = CheckpointManager(tmp_path)
    train(update, start, 2, manager=manager)
    resumed, _ = train(update, start, 4, manager=manager)
    assert_trees_close(resumed.network, whole.network, rtol=0, atol=0)
    assert int(resumed.step) == 4 * SURROGATE.steps_per_update


@pytest.mark.slow
def test_the_network_learns(key, update):
    state = eqx.tree_at(
        lambda s: s.total, start_surrogate(key, SURROGATE), jnp.asarray(400)
    )
    _, history = train(update, state, 200)
    first = np.mean([each["parents"] for each in history[:10]])
    last = np.mean([each["parents"] for each in history[-20:]])
    assert last < 0.8 * first


@pytest.fixture(scope="module")
def data():
    """Rows of three variables in a bucket of four, both others causes of the last."""
    scm = linear_scm(edges(4, e01=1.2, e02=-0.8, e12=1.5), 2)
    seen = draw_history(scm, observational=16, interventional=6, capacity=32)
    there = np.arange(4) < 3
    values = jnp.asarray(np.asarray(seen.values) * there)
    flags = jnp.asarray(np.asarray(seen.intervened) & there)
    masks = seen.row_mask, jnp.asarray(there)
    return Dataset(values, flags, *masks, scm.target, scm.adjacency)


def parents(data, sets):
    """Probability of each cause: sets by size, then by the places of their members."""
    target = int(data.target)
    others = [i for i in range(4) if i != target]
    found = np.zeros(4)
    pairs = [(a, b) for k, a in enumerate(others) for b in others[k + 1 :]]
    members = [(), *((a,) for a in others), *pairs, tuple(others)]
    for chance, held in zip(sets, members, strict=True):
        found[list(held)] += chance
    return found


def test_the_truth_is_one_set_and_its_edges(data):
    found = jax.jit(true_targets, static_argnums=1)(data, 3)
    adjacency = np.asarray(data.adjacency, np.float32)
    np.testing.assert_array_equal(found.edges, adjacency)
    assert sorted(np.asarray(found.sets).tolist())[-2:] == [0.0, 1.0]
    causes = adjacency[:, int(data.target)]
    np.testing.assert_array_equal(parents(data, np.asarray(found.sets)), causes)


def test_a_true_set_too_large_has_no_share(data):
    causes = jnp.zeros((4, 4), bool).at[:, data.target].set(data.var_mask)
    crowded = type(data)(**{**vars(data), "adjacency": causes})
    assert not jax.jit(true_targets, static_argnums=1)(crowded, 1).sets.any()


def test_exact_targets_are_those_of_the_expert(data):
    found = jax.jit(lambda d: exact_targets(d, 3))(data)
    rows, target = np.asarray(data.row_mask), int(data.target)
    expected = exact_parent_posterior(
        np.asarray(data.values)[rows, :3],
        np.asarray(data.intervened)[rows, :3],
        target,
        prior="order",
    )
    chances = np.asarray(list(expected.parent_probs().values()))
    others = [i for i in range(3) if i != target]
    np.testing.assert_allclose(found.edges[others, target], chances, atol=1e-4)
    np.testing.assert_allclose(
        parents(data, np.asarray(found.sets)), found.edges[:, target], atol=1e-5
    )
    rest = np.delete(np.asarray(found.edges), target, axis=1)
    np.testing.assert_array_equal(rest, np.delete(data.adjacency, target, axis=1))
