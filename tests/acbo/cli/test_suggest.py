"""The next experiment and the edges, with reasons, and wrong input with exit code 2."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from acbo.cli import app
from acbo.policy import suggest as engine
from acbo.posterior.order_chains import sample_graphs
from causal_policies import middle_of_ranges
from causal_tables import chain_lines, write_table


def without_network(values, intervened, **options):
    return sample_graphs(values, intervened, **options)


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setattr(engine, "plan", middle_of_ranges)
    monkeypatch.setattr(engine, "infer_graphs", without_network)
    return lambda *words: CliRunner().invoke(app, ["suggest", *map(str, words)])


def test_a_suggestion_has_reasons_and_says_where_ranges_come_from(call, tmp_path):
    path = write_table(tmp_path)
    done = call(path, "--target", "Y", "--minimize", "--range", "X=-5:5")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(
        "to lower Y, set X to 0: the expected Y is \N{MINUS SIGN}1.5 ± 2.0. "
        "The probability that X is a cause is 50% (direct cause: 25%)"
    )
    for words in ("direct cause", "expected Y", "± 2.0", "-5 to 5", "67%"):
        assert words in done.output
    assert "no range given for Z" in done.output
    assert "name the others, as in --set" in done.output

    record = json.loads(call(path, "--target", "Y", "--maximize", "--json").output)
    assert record["direction"] == "MAXIMIZE"
    assert record["ranges_from_data"] == ["X", "Z"]
    ((name, value),) = record["suggestion"].items()
    low, high = record["ranges"][name]
    assert low <= value <= high
    chances = [each["probability"] for each in record["variables"]]
    assert sum(chances) == pytest.approx(1.0, abs=1e-5)
    assert chances == sorted(chances, reverse=True)


@pytest.mark.parametrize(
    ("lines", "words", "message"),
    [
        (None, ("--target", "Q"), "target 'Q' is not known"),
        (["1,2,3,"], ("--target", "Y"), "the table has 1 row"),
        (None, ("--target", "Y", "--range", "Q=0:1"), "variable 'Q' is not known"),
        (None, ("--target", "Y", "--range", "X=1:0"), "low end first"),
        (None, ("--target", "Y", "--know", "X"), "is not CAUSE->EFFECT"),
        (None, ("--target", "Y", "--know", "Q->Y"), "'Q'"),
        (None, ("--target", "Y", "--range", "X=1"), "is not NAME=LOW:HIGH"),
    ],
)
def test_wrong_input(call, tmp_path, lines, words, message):
    done = call(write_table(tmp_path, lines), "--minimize", *words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())
    assert "Traceback" not in done.output


def test_the_direction_must_be_said(call, tmp_path):
    done = call(write_table(tmp_path), "--target", "Y")
    assert done.exit_code == 2
    assert "give --maximize or --minimize" in done.output
    done = call(write_table(tmp_path), "--target", "Y", "--maximize", "--minimize")
    assert done.exit_code == 2
    assert "the target has one direction" in " ".join(done.output.split())


def test_a_messy_table_is_read_and_what_was_left_out_is_said(call, tmp_path):
    header = "id;X;Z;Y;intervention_targets"
    plain = [f"s{i};{line}" for i, line in enumerate(chain_lines())]
    lines = [line.replace(",", ";").replace(".", ",") for line in plain]
    path = write_table(tmp_path, [*lines, "s99;;1,0;2,0;"], header)
    options = ("--target", "y", "--maximize")
    done = call(path, *options)
    assert done.exit_code == 0, done.output
    assert "1 of 25 rows were left out" in done.output
    assert "'id' was left out" in done.output
    record = json.loads(call(path, *options, "--json").output)
    assert record["rows_left_out"] == 1
    low, high = record["ranges"]["X"]
    assert -5 < low < 0 < high < 5


def test_a_missing_file(call, tmp_path):
    assert call(tmp_path / "none.csv", "--target", "Y").exit_code == 2


@pytest.fixture
def call_graph(monkeypatch):
    monkeypatch.setattr(engine, "infer_graphs", without_network)
    return lambda *words: CliRunner().invoke(app, ["graph", *map(str, words)])


def test_edges_and_a_picture(call_graph, tmp_path):
    path, out = write_table(tmp_path), tmp_path / "deep" / "g.svg"
    done = call_graph(path, "--target", "Y", "--least", "0", "--out", out)
    assert done.exit_code == 0, done.output
    assert f"wrote {out}" in done.output
    assert out.read_text().count("data-edge") == 6
    edges = json.loads(call_graph(path, "--least", "0", "--json").output)
    chances = [edge["probability"] for edge in edges]
    assert chances == sorted(chances, reverse=True)
    # The edges of highest expected F1 are the likeliest ones, and some there are.
    likely = [edge["likely"] for edge in edges]
    assert likely == sorted(likely, reverse=True)
    assert likely[0]
    assert done.output.count("*") == sum(likely)
    assert {(e["cause"], e["effect"]) for e in edges} == {
        (a, b) for a in "XYZ" for b in "XYZ" if a != b
    }
    assert "no edge has a probability of 1" in call_graph(path, "--least", "1").output


def test_known_and_forbidden_edges_are_obeyed(call_graph, tmp_path):
    words = (
        write_table(tmp_path),
        "--least",
        "0",
        "--know",
        "Z->X",
        "--forbid",
        "Z->Y",
    )
    edges = json.loads(call_graph(*words, "--json").output)
    chance = {(e["cause"], e["effect"]): e["probability"] for e in edges}
    assert chance["Z", "X"] == pytest.approx(1)
    assert chance.get(("X", "Z"), 0) == pytest.approx(0)
    assert chance.get(("Z", "Y"), 0) == pytest.approx(0)


def test_many_variables_are_not_left_to_the_network(tmp_path):
    call_graph = lambda *words: CliRunner().invoke(app, ["graph", *map(str, words)])
    draw = np.random.default_rng(0)
    values = draw.normal(size=(60, 20))
    values[:, 1] += 2 * values[:, 0]
    header = ",".join(f"V{i}" for i in range(20))
    path = write_table(tmp_path, [",".join(map(str, row)) for row in values], header)
    done = call_graph(path, "--least", "0.3")
    assert "20 variables are more than the network" in " ".join(done.output.split())
    edges = json.loads(call_graph(path, "--least", "0.9", "--json").output)
    assert {(e["cause"], e["effect"]) for e in edges} <= {("V0", "V1"), ("V1", "V0")}


def test_a_table_unlike_training_is_told_so(monkeypatch, tmp_path):
    def against(values, intervened, **options):
        nothing = np.full((values.shape[1],) * 2, 0.05)
        return sample_graphs(values, intervened, opinion=nothing, **options)

    draw = np.random.default_rng(0)
    x = np.where(np.arange(90) < 60, draw.normal(size=90), 3.0)
    z = x + draw.normal(size=90)
    y = z + draw.normal(size=90)
    was_set = np.where(np.arange(90) < 60, "", "X")
    lines = [",".join(map(str, row)) for row in zip(x, z, y, was_set, strict=True)]
    monkeypatch.setattr(engine, "plan", middle_of_ranges)
    monkeypatch.setattr(engine, "infer_graphs", against)
    path = write_table(tmp_path, lines)
    words = [str(path), "--target", "Y", "--minimize"]
    done = CliRunner().invoke(app, ["suggest", *words])
    assert "unlike what the network was trained on" in " ".join(done.output.split())
    done = CliRunner().invoke(app, ["suggest", *words, "--json"])
    assert json.loads(done.output)["unlike_training"]


@pytest.mark.parametrize("option", ["--batch", "--at-once"])
def test_no_experiment_at_all_is_refused(call, tmp_path, option):
    words = ("--target", "Y", "--minimize", option, "0")
    done = call(write_table(tmp_path), *words)
    assert done.exit_code == 2
    assert f"Invalid value for '{option}'" in done.output


def test_what_cannot_be_drawn_is_refused_first(call_graph, tmp_path):
    done = call_graph(write_table(tmp_path), "--out", tmp_path / "g.doc")
    assert done.exit_code == 2
    assert "does not end in .svg or .png" in done.output
