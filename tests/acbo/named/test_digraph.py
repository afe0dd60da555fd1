from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acbo.named.digraph import (
    check_edges,
    check_known,
    check_names,
    find_cycle,
    parents_of,
    reached_from,
    sort_names,
)

nx = pytest.importorskip("networkx")

NAMES = ("a", "b", "c", "d", "e")
edge_sets = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)))


@given(edge_sets)
def test_sorting_finds_an_order_or_names_a_real_cycle(edges):
    graph = nx.DiGraph(list(edges))
    cycle = find_cycle(NAMES, edges)
    if nx.is_directed_acyclic_graph(graph):
        order = sort_names(NAMES, edges)
        assert sorted(order) == sorted(NAMES)
        assert all(order.index(a) < order.index(b) for a, b in edges)
        assert cycle == ()
    else:
        assert cycle[0] == cycle[-1]
        assert all(pair in edges for pair in pairwise(cycle))
        with pytest.raises(ValueError, match=" -> ".join(cycle)):
            sort_names(NAMES, edges)


@given(edge_sets)
def test_reach_and_parents_agree_with_networkx(edges):
    graph = nx.DiGraph(list(edges))
    graph.add_nodes_from(NAMES)
    for name in NAMES:
        assert reached_from(name, edges) - {name} == nx.descendants(graph, name)
        assert set(parents_of(name, edges)) == set(graph.predecessors(name))


def test_without_edges_the_given_order_stays():
    assert sort_names(("z", "a", "m"), set()) == ("z", "a", "m")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_names(["a", "b", "a"]), "'a' is given twice"),
        (lambda: check_names(["a", ""]), "'' is no name"),
        (lambda: check_known("q", {"a", "b"}), "'q' is not one of: a, b"),
        (lambda: check_edges(["a", "b"], [("a", "q")]), "'q' is not one of"),
        (lambda: check_edges(["a", "b"], ["ab"]), "not a pair"),
    ],
)
def test_wrong_names_and_edges_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
