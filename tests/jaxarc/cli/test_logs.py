"""What `--log` reads, and an episode told step by step."""

import json

import pytest
import typer

from arc_logs import files, log_config
from jaxarc.cli.logs import log_recording, read_log_settings
from jaxarc.config import EnvironmentConfig, JaxArcConfig, RewardConfig
from jaxarc.log import ExperimentLogger
from jaxarc.recording import TaskPlayer, player_config
from jaxarc.tasks import open_dataset


def test_the_groups_of_a_log_are_read(tmp_path):
    config = log_config(tmp_path, "verbose", logging={"log_format": "text"})
    config.to_yaml_file(tmp_path / "log.yaml")
    assert read_log_settings(tmp_path / "log.yaml") == config


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (JaxArcConfig(reward=RewardConfig(step_penalty=0.0)), "reward"),
        (
            JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=3)),
            "environment",
        ),
    ],
)
def test_rules_are_not_for_a_log(tmp_path, config, name):
    config.to_yaml_file(tmp_path / "log.yaml")
    with pytest.raises(typer.BadParameter, match=f"sets {name}, which the command"):
        read_log_settings(tmp_path / "log.yaml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(typer.BadParameter, match="is not there"):
        read_log_settings(tmp_path / "none.yaml")


@pytest.mark.slow
def test_a_recorded_episode_is_told(tmp_path):
    tasks = open_dataset("AGI1", split="train")
    task = tasks.get_task_by_id("00d62c1b")
    player = TaskPlayer(task, "00d62c1b", player_config(tasks.config))
    player.step(14, (2, 2, 2, 2))
    player.step(0, (0, 0, 0, 0))
    recording = player.recording()
    config = log_config(tmp_path, visualization={"level": "full"})
    with ExperimentLogger(config) as log:
        log_recording(log, recording, recording.load_task(), 4)
    assert "visualizations/episode_0004/step_002.svg" in files(tmp_path / "run")
    content = json.loads((tmp_path / "run/episodes/episode_0004.json").read_text())
    found = [row["reward"] for row in content["step_data"]]
    assert found == pytest.approx(recording.rewards)
