import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acbo.named import names

nx = pytest.importorskip("networkx")

NAMES = ("a", "b", "c", "d", "e")
edge_sets = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)))


@given(edge_sets)
def test_sorting_finds_an_order_or_names_a_real_cycle(edges):
    graph = nx.DiGraph(list(edges))
    if nx.is_directed_acyclic_graph(graph):
        order = names.sort_names(NAMES, edges)
        assert sorted(order) == sorted(NAMES)
        assert all(order.index(a) < order.index(b) for a, b in edges)
        return
    with pytest.raises(ValueError, match="the graph has a cycle") as error:
        names.sort_names(NAMES, edges)
    cycle = str(error.value).split(": ")[1].split(";")[0].split(" -> ")
    assert cycle[0] == cycle[-1]
    assert all(pair in edges for pair in pairwise(cycle))


@given(edge_sets)
def test_parents_agree_with_networkx(edges):
    graph = nx.DiGraph(list(edges))
    graph.add_nodes_from(NAMES)
    for name in NAMES:
        assert set(names.parents_of(name, edges)) == set(graph.predecessors(name))


def test_without_edges_the_given_order_stays():
    assert names.sort_names(("z", "a", "m"), set()) == ("z", "a", "m")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: names.check_names(["a", "b", "a"]), "'a' is a duplicate"),
        (lambda: names.check_names(["a", ""]), "'' is not a valid name"),
        (
            lambda: names.check_known("q", {"a", "b"}),
            "'q' is not known; .* There are: a, b",
        ),
        (lambda: names.check_edges(["a", "b"], [("a", "q")]), "'q' is not known"),
        (lambda: names.check_edges(["a", "b"], ["ab"]), "not a pair"),
    ],
)
def test_wrong_names_and_edges_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_frozen_map_is_a_read_only_copy_that_hashes_by_value():
    given = {"b": 1.0, "a": 2.0}
    held = names.FrozenMap(given)
    given["b"] = 5.0
    assert held == {"a": 2.0, "b": 1.0}
    assert list(held) == ["b", "a"]
    assert hash(held) == hash(names.FrozenMap({"a": 2.0, "b": 1.0}))
    assert pickle.loads(pickle.dumps(held)) == held
    with pytest.raises(TypeError):
        held["b"] = 3.0  # pyright: ignore[reportIndexIssue]
