"""Edges with probabilities, as a table, as JSON and as a picture."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from acbo.cli import suggest as command
from acbo.cli.app import app
from causal_tables import write_table


class Counting:
    """Edges ever less likely, row by row."""

    def edge_probs(self, values, intervened):
        d = values.shape[1]
        return np.linspace(0.9, 0.2, d * d).reshape(d, d)


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setattr(command, "load_surrogate", Counting)
    return lambda *words: CliRunner().invoke(app, ["graph", *map(str, words)])


def test_edges_and_a_picture(call, tmp_path):
    path, out = write_table(tmp_path), tmp_path / "deep" / "g.svg"
    done = call(path, "--target", "Y", "--least", "0", "--out", out)
    assert done.exit_code == 0, done.output
    assert f"wrote {out}" in done.output
    assert out.read_text().count("data-edge") == 6
    edges = json.loads(call(path, "--least", "0", "--json").output)
    chances = [edge["probability"] for edge in edges]
    assert chances == sorted(chances, reverse=True)
    assert {(e["cause"], e["effect"]) for e in edges} == {
        (a, b) for a in "XYZ" for b in "XYZ" if a != b
    }
    assert "no edge has a probability of 1" in call(path, "--least", "1").output


def test_what_cannot_be_drawn_is_refused_first(call, tmp_path):
    done = call(write_table(tmp_path), "--out", tmp_path / "g.doc")
    assert done.exit_code == 2
    assert "does not end in .svg or .png" in done.output
