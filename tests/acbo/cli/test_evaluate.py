"""Tables, files and runs say what the report and the problem say."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from acbo.cli import app
from acbo.cli import evaluate as command
from acbo.evaluation.report import EPISODES, PARENTS, Cell, Report, Result
from acbo.problems import names
from causal_policies import small_policy, small_surrogate

CELL = Cell("chain", 5, 20, 10)


def made_up(seed=0, problems=12):
    random = np.random.default_rng(seed)
    shares = random.random((2, problems, 2))
    bins = np.stack([np.full((problems, 2), 4.0), *shares], axis=1)
    parents = lambda name: Result(
        CELL,
        name,
        PARENTS,
        {n: random.random(problems) for n in ("f1", "auprc", "log_loss")},
        {},
        bins,
    )
    episodes = lambda name: Result(
        CELL,
        name,
        EPISODES,
        {n: random.random(problems) for n in ("simple_regret", "parent_rate")},
        {"simple_regret": random.random((problems, 3))},
    )
    results = parents("surrogate"), parents("exact"), episodes("policy")
    results += (episodes("random"),)
    return Report(results, ("random", "exact"), 0, {})


def test_pictures_are_of_what_took_part():
    assert set(command.draw_report(made_up())) == {"calibration", "regret"}


@pytest.fixture
def call(monkeypatch):
    seen = {}

    def evaluate(systems, **options):
        seen.update(options, systems=list(systems))
        return made_up()

    monkeypatch.setattr(command, "evaluate", evaluate)
    return seen, lambda *words: CliRunner().invoke(app, ["eval", *map(str, words)])


def test_options_and_files(call, tmp_path):
    seen, run = call
    words = ("--scms", 3, "--sizes", "4,6", "--families", "chain", "--rows", "20+5,8+0")
    done = run(*words, "--out", tmp_path / "b", "--systems", "random,regression")
    assert done.exit_code == 0, done.output
    assert made_up().table() in done.output
    assert (seen["n_scms"], seen["sizes"], seen["rows"]) == (
        3,
        [4, 6],
        [(20, 5), (8, 0)],
    )
    assert seen["systems"] == ["random", "regression"]
    written = (tmp_path / "b" / "results.json").read_text()
    assert json.loads(written) == json.loads(run("--json").stdout)
    assert (tmp_path / "b" / "regret.svg").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--systems", "luck"), "system 'luck' is not known"),
        (("--systems", "random", "--sizes", "four"), "--sizes has 'four'"),
        (("--systems", "random", "--rows", "20"), "--rows has '20'"),
    ],
)
def test_wrong_words(call, words, message):
    done = call[1](*words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


@pytest.fixture
def call_optimize(monkeypatch):
    monkeypatch.setattr(command, "load_policy", small_policy)
    monkeypatch.setattr(command, "load_surrogate", small_surrogate)
    return lambda *words: CliRunner().invoke(app, [*map(str, words)])


def test_all_problems_are_listed(call_optimize):
    text = call_optimize("problems").output
    assert all(f" {name} " in text for name in names())


def test_a_run_with_a_baseline(call_optimize):
    words = ("optimize", "simple", "--steps", "3", "--rows", "5", "--with", "random")
    done = call_optimize(*words)
    assert done.exit_code == 0, done.output
    assert (
        "of the improvement from 0 (no intervention) to -10 (best single intervention, "
        "X = -5)" in done.output
    )
    record = json.loads(call_optimize(*words, "--json").output)
    shares = [step["share"] for step in record["steps"]]
    assert len(shares) == 3
    assert shares == sorted(shares)
    assert shares[-1] == record["share"] <= 1


@pytest.mark.slow
def test_a_run_with_the_policy_and_pictures(call_optimize, tmp_path):
    out = tmp_path / "pictures"
    done = call_optimize("optimize", "simple", "--steps", "2", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    files = {path.name for path in out.iterdir()}
    pictures = {"outcomes.svg", "graph.svg", "causes.svg"}
    assert files == pictures | {"report.html"}
    share = json.loads(done.stdout)["share"]
    told = (out / "report.html").read_text()
    assert f"<h1>{share:.0%} of the way to the optimum of simple</h1>" in told
    assert f"simple --steps 2 --rows 20 --seed 0 --with policy --out {out}" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "problem 'nowhere' is not known; no name is similar"),
        (("simple", "--with", "exact"), "--with 'exact' finds causes and proposes"),
        (("simple", "--with", "luck"), "system 'luck' is not known"),
    ],
)
def test_wrong_names(call_optimize, words, message):
    done = call_optimize("optimize", *words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())
