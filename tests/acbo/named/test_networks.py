import jax
import pytest

from acbo.named.linear import linear_form
from acbo.named.mechanisms import create_root_mechanism
from acbo.named.model import create_scm
from acbo.named.networks import from_networkx, read_graph, to_networkx
from causal_models import COEFFICIENTS, triangle

nx = pytest.importorskip("networkx")


def test_a_model_makes_the_round_trip():
    scm = triangle(hidden=("A",), ranges=None)
    graph = to_networkx(scm)
    assert dict(graph.nodes["C"]) == {
        "hidden": False,
        "target": True,
        "intercept": 0.3,
        "noise": 0.7,
    }
    assert graph.edges["A", "C"] == {"coefficient": -1.5}
    back = from_networkx(graph)
    assert (back.hidden, back.target_name) == (("A",), "C")
    assert back.edges == scm.edges
    assert linear_form(back).weight.tolist() == linear_form(scm).weight.tolist()


def test_nonlinear_models_give_their_graph():
    root = create_root_mechanism()
    square = lambda values, key: values["A"] ** 2 + jax.random.normal(key)
    scm = create_scm(["A", "B"], [("A", "B")], {"A": root, "B": square})
    graph = to_networkx(scm)
    assert list(graph.edges(data=True)) == [("A", "B", {})]


def test_graphs_and_pairs_are_read_alike():
    pairs = list(COEFFICIENTS)
    assert read_graph(nx.DiGraph(pairs)) == read_graph(pairs)
    assert read_graph(pairs, ["C", "B", "A", "D"])[0] == ("C", "B", "A", "D")


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (nx.DiGraph([("A", "B"), ("B", "A")]), "cycle: A -> B -> A"),
        (nx.Graph([("A", "B")]), "a Graph does not say what causes what"),
        (nx.MultiDiGraph([("A", "B")]), "MultiDiGraph"),
        (nx.DiGraph([(1, 2)]), "1 is no name"),
        (nx.DiGraph([("A", "Z")]), "'Z' is not one of: A, B"),
        ("A -> B", "give a networkx.DiGraph"),
    ],
)
def test_wrong_graphs_are_named(graph, words):
    names = None if "no name" in words else ["A", "B"]
    with pytest.raises(ValueError, match=words):
        read_graph(graph, names)


def test_a_graph_without_numbers_needs_data():
    with pytest.raises(ValueError, match="A -> B has no attribute 'coefficient'"):
        from_networkx(nx.DiGraph([("A", "B")]))
