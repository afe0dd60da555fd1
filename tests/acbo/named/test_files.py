import copy
import json

import pytest

from acbo.named.files import (
    read_json,
    read_pgmpy_json,
    scm_from_document,
    scm_to_document,
    write_json,
)
from acbo.named.linear import linear_form
from causal_models import triangle

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


def test_a_model_makes_the_round_trip(tmp_path):
    scm = triangle()
    write_json(tmp_path / "model.json", scm)
    back = read_json(tmp_path / "model.json")
    assert scm_to_document(back) == scm_to_document(scm)
    assert (back.names, back.edges, back.ranges) == (scm.names, scm.edges, scm.ranges)
    assert '"coefficient": 0.8' in (tmp_path / "model.json").read_text()


def test_hidden_variables_and_no_ranges_survive():
    scm = triangle(hidden=("A",), ranges=None)
    back = scm_from_document(scm_to_document(scm))
    assert (back.hidden, back.manipulable) == (("A",), ("B",))


def test_pgmpy_networks_are_read(tmp_path):
    path = tmp_path / "network.json"
    path.write_text(json.dumps(NETWORK))
    scm = read_pgmpy_json(path, target="x2", ranges={"x1": (0, 1)})
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
        read_pgmpy_json(path)


def test_wrong_documents_are_named(tmp_path):
    with pytest.raises(ValueError, match="no model of ours"):
        scm_from_document({"nodes": []})
    document = scm_to_document(triangle())
    del document["edges"][0]["coefficient"]
    with pytest.raises(ValueError, match="edges: an entry has no 'coefficient'"):
        scm_from_document(document)
    (tmp_path / "cut.json").write_text('{"format": ')
    with pytest.raises(ValueError, match=r"cut.json"):
        read_json(tmp_path / "cut.json")
