"""The command runs a random agent, says what it did, and leaves an episode behind."""

import json

import pytest
from typer.testing import CliRunner

from arc_logs import files, log_config
from jaxarc.cli.app import app
from jaxarc.recording import load_recording, run_again

pytestmark = pytest.mark.slow  # many programs to compile


def run(*words):
    return CliRunner().invoke(app, ["rollout", *words])


def test_figures_and_a_replay_file(tmp_path):
    path = tmp_path / "e.json"
    words = ("--envs", "4", "--steps", "60", "--actions", "bbox", "--out", str(path))
    done = run("AGI1-00d62c1b", *words)
    assert done.exit_code == 0
    assert "4 x 60 = 240" in done.output
    assert "1 tasks, bbox actions" in done.output
    assert "steps per second" in done.output
    recording = load_recording(path)
    assert recording.task == "00d62c1b"
    assert len(run_again(recording, recording.load_task())) > 1


def test_wrong_words_are_explained():
    assert "has no selector 'x'" in str(run("AGI1-x").exception)
    assert run("AGI1", "--envs", "0").exit_code == 2
    assert run("AGI1", "--actions", "circle").exit_code == 2
    assert run("AGI1", "--out", "/").exit_code == 2


def test_a_run_is_logged_as_the_file_says(tmp_path):
    log_config(tmp_path).to_yaml_file(tmp_path / "log.yaml")
    words = ("--envs", "4", "--steps", "60", "--log", str(tmp_path / "log.yaml"))
    done = run("AGI1-00d62c1b", *words)
    assert done.exit_code == 0, done.output
    assert f"logged to {tmp_path / 'run'}" in done.output.replace("\n", "")
    found = json.loads((tmp_path / "run/logs/evaluation_summary.json").read_text())
    assert found["environments"] == 4
    assert "episodes/episode_0000.json" in files(tmp_path / "run")
