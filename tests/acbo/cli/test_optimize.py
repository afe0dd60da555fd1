"""Problems are listed, and a run on one is told step by step."""

import json

import pytest
from typer.testing import CliRunner

from acbo.cli import evaluate as command
from acbo.cli.app import app
from acbo.problems import names
from causal_policies import small_policy, small_surrogate


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setattr(command, "load_policy", small_policy)
    monkeypatch.setattr(command, "load_surrogate", small_surrogate)
    return lambda *words: CliRunner().invoke(app, [*map(str, words)])


def test_all_problems_are_listed(call):
    text = call("problems").output
    assert all(f" {name} " in text for name in names())


def test_a_run_with_a_baseline(call):
    words = ("optimize", "simple", "--steps", "3", "--rows", "5", "--with", "random")
    done = call(*words)
    assert done.exit_code == 0, done.output
    assert (
        "of the way from 0 (nothing set) to -10 (the best of one variable, X = -5)"
        in done.output
    )
    record = json.loads(call(*words, "--json").output)
    shares = [step["share"] for step in record["steps"]]
    assert len(shares) == 3
    assert shares == sorted(shares)
    assert shares[-1] == record["share"] <= 1


@pytest.mark.slow
def test_a_run_with_the_policy_and_pictures(call, tmp_path):
    out = tmp_path / "pictures"
    done = call("optimize", "simple", "--steps", "2", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    files = {path.name for path in out.iterdir()}
    assert files == {"shares.svg", "graph.svg", "causes.svg"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "problem 'nowhere' is not known; did you mean"),
        (("simple", "--with", "luck"), "--with 'luck' is not one of: policy, random"),
    ],
)
def test_wrong_names(call, words, message):
    done = call("optimize", *words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())
