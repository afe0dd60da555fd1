"""Oracle: networkx on random graphs, with and without cycles."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from acbo.graphs.dag import ancestors, depths

SIZES = (1, 2, 5, 8)


@pytest.fixture(scope="module")
def answer():
    """Both answers for a stack of graphs, once for each size."""
    return jax.jit(jax.vmap(lambda graph: (ancestors(graph), depths(graph))))


def random_graphs(d, count=24):
    """Half of them acyclic in a shuffled order, half anything; the last, one ring."""
    random = np.random.default_rng(d)
    graphs = random.random((count, d, d)) < random.uniform(0.1, 0.5, (count, 1, 1))
    for graph in graphs[: count // 2]:
        order = random.permutation(d)
        graph[:] = np.triu(graph, 1)[np.ix_(order, order)]
    graphs[-1] = np.roll(np.eye(d, dtype=bool), 1, axis=1)
    return graphs


@pytest.mark.parametrize("d", SIZES)
def test_against_networkx(answer, d):
    graphs = random_graphs(d)
    found = map(np.asarray, answer(jnp.asarray(graphs)))
    for graph, above, depth in zip(graphs, *found, strict=True):
        twin = nx.from_numpy_array(graph.astype(int), create_using=nx.DiGraph)
        # The closure with reflexive=False holds (i, i) just where a cycle does.
        closure = nx.transitive_closure(twin, reflexive=False)
        expected = nx.to_numpy_array(closure, nodelist=range(d)) > 0
        np.testing.assert_array_equal(above, expected)
        if nx.is_directed_acyclic_graph(twin):
            layers = enumerate(nx.topological_generations(twin))
            level = {node: i for i, nodes in layers for node in nodes}
            assert depth.tolist() == [level[node] for node in range(d)]
