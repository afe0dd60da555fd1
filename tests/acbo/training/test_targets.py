import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo import exact_parent_posterior
from acbo.families import DataConfig, SCMConfig, draw_dataset
from acbo.training.surrogate import exact_targets, true_targets

CONFIG = DataConfig((SCMConfig(("er2",)),), 4, 32, (3, 3), (12, 20), (2, 6))


@pytest.fixture(scope="module")
def data():
    return jax.jit(draw_dataset, static_argnums=1)(jax.random.key(0), CONFIG)


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
    assert not true_targets(crowded, 1).sets.any()


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
