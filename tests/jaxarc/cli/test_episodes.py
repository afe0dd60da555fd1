"""Rollouts, logs and replays of the command line, against the episodes played."""

import dataclasses
import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from arc_logs import files, log_config
from jaxarc.cli import app
from jaxarc.cli.episodes import log_recording, read_log_settings, rollout_table
from jaxarc.config import EnvironmentConfig, JaxArcConfig, RewardConfig
from jaxarc.log import ExperimentLogger
from jaxarc.recording import (
    TaskPlayer,
    load_recording,
    player_config,
    run_again,
    save_recording,
)
from jaxarc.rollouts import RolloutResult
from jaxarc.tasks import open_dataset


def test_the_groups_of_a_log_are_read(tmp_path):
    config = log_config(tmp_path, "verbose", logging={"log_format": "text"})
    config.to_yaml_file(tmp_path / "log.yaml")
    assert read_log_settings(tmp_path / "log.yaml") == config


def test_rules_are_not_for_a_log_and_a_missing_file_is_named(tmp_path):
    rules = {
        "reward": JaxArcConfig(reward=RewardConfig(step_penalty=0.0)),
        "environment": JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=3)),
    }
    for name, config in rules.items():
        config.to_yaml_file(tmp_path / "log.yaml")
        with pytest.raises(typer.BadParameter, match=f"sets {name}, which are set by"):
            read_log_settings(tmp_path / "log.yaml")
    with pytest.raises(typer.BadParameter, match="does not exist"):
        read_log_settings(tmp_path / "none.yaml")


@pytest.mark.slow  # compiles a program of its own
def test_a_recorded_episode_is_told(file, tmp_path):
    recording = load_recording(file)
    config = log_config(tmp_path, visualization={"level": "full"})
    with ExperimentLogger(config) as log:
        log_recording(log, recording, recording.load_task(), 4)
    assert "visualizations/episode_0004/step_002.svg" in files(tmp_path / "run")
    content = json.loads((tmp_path / "run/episodes/episode_0004.json").read_text())
    found = [row["reward"] for row in content["step_data"]]
    assert found == pytest.approx(recording.rewards)


def rollout(*words):
    return CliRunner().invoke(app, ["rollout", *words])


@pytest.mark.slow  # many programs
def test_a_log_that_cannot_be_written_is_refused_before_the_run(tmp_path, monkeypatch):
    drawn = {"visualization": {"output_formats": ["png"]}}
    log_config(tmp_path, **drawn).to_yaml_file(tmp_path / "log.yaml")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = rollout("AGI1-00d62c1b", "--log", str(tmp_path / "log.yaml"))
    assert isinstance(done.exception, ImportError)
    assert "steps per second" not in done.output


def test_figures_a_replay_file_and_a_log(tmp_path):
    path = tmp_path / "e.json"
    log_config(tmp_path).to_yaml_file(tmp_path / "log.yaml")
    words = ("--envs", 4, "--steps", 60, "--actions", "bbox", "--out", path)
    done = rollout(
        "AGI1-00d62c1b", *map(str, words), "--log", str(tmp_path / "log.yaml")
    )
    assert done.exit_code == 0, done.output
    assert "4 x 60 = 240" in done.output
    assert "1 task, bbox actions" in done.output
    assert "steps per second" in done.output
    recording = load_recording(path)
    assert recording.task == "00d62c1b"
    assert len(run_again(recording, recording.load_task())) > 1
    assert f"logged to {tmp_path / 'run'}" in done.output.replace("\n", "")
    found = json.loads((tmp_path / "run/logs/evaluation_summary.json").read_text())
    assert found["environments"] == 4
    assert "episodes/episode_0000.json" in files(tmp_path / "run")


def test_without_an_ended_episode_there_are_no_means():
    none = RolloutResult(4, 5, 1, "point", 0.1, 2.0, 0, 0, np.nan, np.nan, 0.5, None)
    ended = dataclasses.replace(none, episodes=2, mean_return=1.5, mean_length=4.0)
    for result, wanted in (
        (none, ["unknown (no episode ended)", "unknown"]),
        (ended, ["1.500", "4.0"]),
    ):
        assert list(rollout_table("Mini", result).columns[1].cells)[-3:-1] == wanted


def test_wrong_words_are_explained():
    assert "has no selector 'x'" in str(rollout("AGI1-x").exception)
    assert rollout("AGI1", "--envs", "0").exit_code == 2
    assert rollout("AGI1", "--actions", "circle").exit_code == 2
    assert rollout("AGI1", "--out", "/").exit_code == 2


@pytest.fixture
def file(tmp_path):
    tasks = open_dataset("AGI1", split="train")
    task = tasks.get_task_by_id("00d62c1b")
    player = TaskPlayer(task, "00d62c1b", player_config(tasks.config))
    player.step(14, (2, 2, 2, 2))
    player.step(14, (3, 3, 3, 3))
    return save_recording(tmp_path / "e.json", player.recording())


def replay(*words):
    return CliRunner().invoke(app, ["replay", *map(str, words)])


@pytest.mark.slow  # compiles a program of its own
def test_every_frame_in_the_terminal(file):
    output = replay(file).output
    assert "0: Start" in output
    assert output.count("Working grid (6x6)") == 3
    assert "all rewards match" in output
    for shown in (output, replay(file, "--speed", "1000").output):
        assert "2: Op 14: Flood Fill 4" in shown


@pytest.mark.slow  # compiles a program of its own
def test_a_page_and_a_picture(file, tmp_path):
    page, picture = tmp_path / "e.html", tmp_path / "e.svg"
    done = replay(file, "--html", page, "--svg", picture)
    assert done.exit_code == 0
    assert "Working grid (6x6)" not in done.output
    text = page.read_text()
    assert "Task 00d62c1b" in text
    assert "2: Op 14: Flood Fill 4" in text
    assert picture.read_text().startswith("<svg")


@pytest.mark.slow  # compiles a program of its own
def test_wrong_files_are_explained(file, tmp_path):
    assert "no replay file" in str(replay(tmp_path / "none.json").exception)
    assert "is not a folder" in str(replay(file, "--path", "/none").exception)
    assert replay(file, "--html", tmp_path).exit_code == 2
    text = file.read_text().replace('"success_bonus": 10.0', '"success_bonus": 9.0')
    file.write_text(text)
    assert "step 1 of the episode has reward" in str(replay(file).exception)
