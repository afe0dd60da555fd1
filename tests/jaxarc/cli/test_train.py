"""The commands leave a run in its folder, and figures of what the agent solves."""

import json
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from arc_agents import write_small_tasks
from arc_logs import log_config
from jaxarc.cli import app
from jaxarc.learning.training import load_config, read_metrics

KINDS = ("demonstrations", "tests")
# So few environments leave most of the eight virtual devices idle, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:4 and 2 items do not divide")
SMALL = ("--envs", "4", "--steps", "4", "--features", "8", "--depth", "0")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return write_small_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def trained(tasks, tmp_path_factory):
    """A folder of a run long enough for episodes to end, and what was said."""
    out = tmp_path_factory.mktemp("runs") / "run"
    words = ("--path", tasks, "--answer", "--seed", 3, "--updates", 14)
    return out, run("train", "Mini-all", "--out", out, *words, *SMALL)


@pytest.mark.slow
def test_training_fills_the_folder(trained):
    out, done = trained
    assert done.exit_code == 0, done.output
    assert "14 updates, 224 steps; mean return" in done.output
    assert f"next: jaxrig arc eval {out}" in done.output.replace("\n", "")
    config = load_config(out)
    assert (config.answer, config.seed, config.features) == (True, 3, 8)
    assert config.ppo.environments == config.ppo.steps == 4
    records = read_metrics(out)
    assert [record["step"] for record in records] == list(range(1, 15))
    assert any(record["mean_return"] is not None for record in records)
    picture = (out / "curve.svg").read_text()
    assert picture.lstrip().startswith("<svg")
    assert "mean return" in picture


@pytest.mark.slow
def test_figures_of_agent_and_chance(trained, tmp_path):
    out, _ = trained
    figures = tmp_path / "deep" / "figures.json"
    page = tmp_path / "page.html"
    words = ("--out", figures, "--html", page)
    done = run("eval", out, "--seeds", 2, "--attempts", 1, *words)
    assert done.exit_code == 0, done.output
    assert "after 14 updates" in done.output
    record = json.loads(figures.read_text())
    assert (record["run"], record["updates"]) == (str(out), 14)
    names = {f"{who}/{on}" for who in ("agent", "random") for on in KINDS}
    assert set(record["figures"]) == names
    for name, found in record["figures"].items():
        assert found["pairs"] == [6.0 if "demonstrations" in name else 3.0, 0.0]
        assert 0.0 <= found["pair_rate"][0] <= 1.0
    for word in ("player", "agent", "random", "demonstrations", "tests"):
        assert word in done.output
    told, share = page.read_text(), record["figures"]["agent/tests"]["pair_rate"][0]
    assert f"<h1>{share:.0%} of 3 tests solved</h1>" in told
    assert "shown the answers" in told
    assert f"jaxrig arc eval {out} --seeds 2 --attempts 1 --html {page}" in told


@pytest.mark.slow
def test_running_again_goes_on(tasks, tmp_path):
    words = ("train", "--out", tmp_path / "r", "--path", tasks, *SMALL)
    assert run(*words, "--updates", 1).exit_code == 0
    assert not (tmp_path / "r" / "curve.svg").exists()
    done = run(*words, "--updates", 2)
    assert "mean return unknown (no episode ended)" in done.output
    assert [r["step"] for r in read_metrics(tmp_path / "r")] == [1, 2]
    other = run(*words, "--updates", 3, "--seed", 1)
    assert "a run with a different configuration" in str(other.exception)
    assert "is at update 2, beyond updates=1" in str(
        run(*words, "--updates", 1).exception
    )


@pytest.mark.slow  # many programs
def test_metrics_go_to_wandb_where_it_is(tasks, tmp_path, monkeypatch):
    logged, started, ended = [], [], []

    def init(**values):
        started.append(values)
        return SimpleNamespace(log=logged.append, finish=lambda: ended.append(True))

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    words = ("--out", tmp_path / "r", "--path", tasks, "--updates", 2, "--wandb")
    assert run("train", *words, *SMALL).exit_code == 0
    wanted = [(r["step"], r["loss"]) for r in read_metrics(tmp_path / "r")]
    assert [(row["update_step"], row["loss"]) for row in logged] == wanted
    assert started[0]["config"]["features"] == 8
    assert started[0]["project"] == "jaxarc-experiments"
    assert ended == [True]


@pytest.mark.slow  # compiles a program of its own
def test_updates_are_logged_as_the_file_says(tasks, tmp_path):
    rules = {"batched_logging_enabled": True, "log_frequency": 2}
    words = ("--out", tmp_path / "r", "--path", tasks, "--updates", 3)
    words = ("train", *words, "--log", tmp_path / "log.yaml", *SMALL)
    log_config(tmp_path).to_yaml_file(tmp_path / "log.yaml")
    assert run(*words).exit_code == 2  # a file that logs nothing
    assert not (tmp_path / "r").exists()
    log_config(tmp_path, logging=rules).to_yaml_file(tmp_path / "log.yaml")
    done = run(*words)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "run/logs/batch_metrics.jsonl").read_text()
    (row,) = map(json.loads, text.splitlines())
    assert (row["update_step"], row["loss"]) == (
        2,
        read_metrics(tmp_path / "r")[1]["loss"],
    )


def test_wrong_words_are_explained(tmp_path):
    assert run("train", "--updates", 0).exit_code == 2
    assert run("eval").exit_code == 2
    assert "does not contain a run" in str(run("eval", tmp_path).exception)
    assert run("eval", tmp_path, "--out", tmp_path).exit_code == 2
