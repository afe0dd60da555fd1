import copy
import functools
import json

import jax
import numpy as np
import pytest

from acbo.mechanisms import create_root_mechanism
from acbo.named import files, samples
from acbo.named.model import create_scm, linear_form
from acbo.named.samples import samples_to_arrays
from acbo.named.tables import DataTable
from causal_models import COEFFICIENTS, triangle

pd = pytest.importorskip("pandas")
nx = pytest.importorskip("networkx")

GRAPH = list(COEFFICIENTS)

NETWORK = {
    "nodes": ["x1", "x2"],
    "arcs": [["x1", "x2"]],
    "cpds": {
        "x1": {
            "coefficients": {"(Intercept)": [1.5]},
            "variance": [16.0],
            "parents": [],
        },
        "x2": {
            "coefficients": {"(Intercept)": [-5.0], "x1": [0.5]},
            "variance": [4.0],
            "parents": ["x1"],
        },
    },
}


@pytest.mark.parametrize("changes", [{}, {"hidden": ("A",), "ranges": None}])
def test_a_model_survives_a_file(tmp_path, changes):
    scm = triangle(**changes)
    files.write_json(tmp_path / "model.json", scm)
    back = files.read_json(tmp_path / "model.json")
    for part in ("names", "hidden", "edges", "ranges", "target_name", "manipulable"):
        assert getattr(back, part) == getattr(scm, part)
    one, other = linear_form(back), linear_form(scm)
    for part in ("weight", "intercept", "noise_scale"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert '"coefficient": 0.8' in (tmp_path / "model.json").read_text()


def test_pgmpy_networks_are_read(tmp_path):
    path = tmp_path / "network.json"
    path.write_text(json.dumps(NETWORK))
    scm = files.read_pgmpy_json(path, target="x2", ranges={"x1": (0, 1)})
    form = linear_form(scm)
    assert form.weight.tolist() == [[0.0, 0.5], [0.0, 0.0]]
    assert form.intercept.tolist() == [1.5, -5.0]
    assert form.noise_scale.tolist() == [4.0, 2.0]
    assert scm.target_name == "x2"


def changed(*path_and_value):
    *path, last, value = path_and_value
    network = copy.deepcopy(NETWORK)
    place = network
    for key in path:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return network


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (changed("arcs", None), "no 'arcs'"),
        (changed("cpds", "x2", None), "cpds: an entry has no 'x2'"),
        (changed("cpds", "x2", "variance", [-1.0]), "variance of 'x2' is -1"),
        (changed("cpds", "x2", "variance", [1.0, 2.0]), "has 2 numbers"),
        (changed("cpds", "x2", "parents", []), "make them the same"),
        (changed("cpds", "x2", "coefficients", "x1", None), "no 'x1'"),
        (changed("cpds", "x2", "coefficients", "x9", [1.0]), "parent 'x9'"),
        (changed("arcs", [["x1", "x9"]]), "x2"),
    ],
)
def test_wrong_networks_are_named(tmp_path, network, words):
    path = tmp_path / "network.json"
    path.write_text(json.dumps(network))
    with pytest.raises(ValueError, match=f"network.json: .*{words}"):
        files.read_pgmpy_json(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda document: document.pop("edges"), "has no 'edges'"),
        (lambda document: document["edges"][0].pop("coefficient"), "no attribute"),
        (lambda document: document["edges"][0].pop("source"), "has no 'source'"),
        (lambda document: document["nodes"][0].update(noise="x"), "noise of"),
    ],
)
def test_wrong_files_are_named(tmp_path, change, words):
    path = tmp_path / "model.json"
    files.write_json(path, triangle())
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=rf"model.json: .*{words}"):
        files.read_json(path)
    path.write_text('{"format": ')
    with pytest.raises(ValueError, match=r"model.json"):
        files.read_json(path)


def test_a_model_survives_networkx():
    scm = triangle(hidden=("A",), ranges=None)
    graph = files.to_networkx(scm)
    assert dict(graph.nodes["C"]) == {
        "hidden": False,
        "target": True,
        "intercept": 0.3,
        "noise": 0.7,
    }
    assert graph.edges["A", "C"] == {"coefficient": -1.5}
    back = files.from_networkx(graph)
    assert (back.hidden, back.target_name) == (("A",), "C")
    assert back.edges == scm.edges
    assert linear_form(back).weight.tolist() == linear_form(scm).weight.tolist()


def test_nonlinear_models_give_their_graph():
    root = create_root_mechanism()
    square = lambda values, key: values["A"] ** 2 + jax.random.normal(key)
    scm = create_scm(["A", "B"], [("A", "B")], {"A": root, "B": square})
    graph = files.to_networkx(scm)
    assert list(graph.edges(data=True)) == [("A", "B", {})]


def test_graphs_and_pairs_are_read_alike():
    pairs = list(COEFFICIENTS)
    assert files.read_graph(nx.DiGraph(pairs)) == files.read_graph(pairs)
    assert files.read_graph(pairs, ["C", "B", "A", "D"])[0] == ("C", "B", "A", "D")


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (nx.DiGraph([("A", "B"), ("B", "A")]), "cycle: A -> B -> A"),
        (nx.Graph([("A", "B")]), "a Graph is not directed"),
        (nx.MultiDiGraph([("A", "B")]), "MultiDiGraph"),
        (nx.DiGraph([(1, 2)]), "1 is not a valid name"),
        (nx.DiGraph([("A", "Z")]), "'Z' is not known; .* There are: A, B"),
        ("A -> B", "give a networkx.DiGraph"),
    ],
)
def test_wrong_graphs_are_named(graph, words):
    names = None if "not a valid name" in words else ["A", "B"]
    with pytest.raises(ValueError, match=words):
        files.read_graph(graph, names)


def test_a_graph_without_numbers_needs_data():
    with pytest.raises(ValueError, match="A -> B has no attribute 'coefficient'"):
        files.from_networkx(nx.DiGraph([("A", "B")]))


@functools.cache
def data():
    scm = triangle()
    rows = [row for seed in (1, 2) for row in samples.sample_from_scm(scm, 750, seed)]
    for value in (-4.0, 4.0):
        do = samples.create_perfect_intervention({"B"}, {"B": value})
        rows += samples.sample_with_intervention(scm, do, 750, seed=round(value))
    values, flags = samples_to_arrays(rows)
    return DataTable(("A", "B", "C"), np.asarray(values), np.asarray(flags))


def test_the_numbers_come_back():
    form = linear_form(files.fit_scm(data(), nx.DiGraph(GRAPH), target="C"))
    truth = linear_form(triangle())
    np.testing.assert_allclose(form.weight, truth.weight, atol=0.06)
    np.testing.assert_allclose(form.intercept, truth.intercept, atol=0.08)
    np.testing.assert_allclose(form.noise_scale, truth.noise_scale, rtol=0.05)


def test_least_squares_by_hand_over_the_rows_left_alone():
    table = data()
    form = linear_form(files.fit_scm(table, GRAPH))
    rows = np.asarray(table.values, dtype=np.float64)[:1500]
    design = np.column_stack([np.ones(1500), rows[:, 0]])
    (base, slope), (rest, *_) = np.linalg.lstsq(design, rows[:, 1], rcond=None)[:2]
    assert form.weight[0, 1] == pytest.approx(slope, rel=1e-5)
    assert form.intercept[1] == pytest.approx(base, abs=1e-5)
    assert form.noise_scale[1] == pytest.approx(np.sqrt(rest / 1498), rel=1e-5)


def test_units_do_not_matter():
    table = data()
    scaled = DataTable(
        table.names,
        table.values * np.array([[1e-6, 1.0, 1e4]], np.float32),
        table.intervened,
    )
    form, other = (
        linear_form(files.fit_scm(table, GRAPH)),
        linear_form(files.fit_scm(scaled, GRAPH)),
    )
    assert other.weight[0, 2] == pytest.approx(form.weight[0, 2] * 1e10, rel=1e-4)


def test_too_little_data_is_named():
    few = data()
    few = DataTable(few.names, few.values[:3], few.intervened[:3])
    with pytest.raises(
        ValueError, match="'C' was observed without intervention in 3 row"
    ):
        files.fit_scm(few, GRAPH)
    same = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [2.0, 4, 6, 8, 10]})
    same["c"] = [0.0, 1.0, 0.0, 2.0, 5.0]
    with pytest.raises(ValueError, match="causes of 'c' \\(a, b\\) depend linearly"):
        files.fit_scm(same, [("a", "c"), ("b", "c")])
