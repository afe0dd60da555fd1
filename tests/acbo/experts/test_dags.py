import jax
import jax.numpy as jnp
import numpy as np

from acbo.experts.dags import layer_weights
from acbo.experts.subsets import sum_parent_sets
from causal_graphs import all_dags

D = 4


def test_every_graph_counts_once():
    """With equal scores the chance of a parent set is its share of all graphs."""
    with jax.enable_x64(True):
        sums = sum_parent_sets(jnp.zeros((D, 8)), 3)
        weights = np.asarray(jax.jit(layer_weights)(sums))
        sums = np.asarray(sums)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    parents = all_dags(D)
    for j in range(D):
        for s in range(2**D):
            holding = [w for w in range(2**D) if w & s == s and not w >> j & 1]
            chance = (weights[j, holding] / np.exp(sums[j, holding])).sum()
            wanted = (parents[:, j] == s).mean()
            assert np.isclose(chance if not s >> j & 1 else 0, wanted)
