"""Oracle: a recorded episode runs again with the same rewards, or says why not."""

import dataclasses
import json

import numpy as np
import pytest

from jaxarc.actions import create_bbox_action, create_mask_action, create_point_action
from jaxarc.config import DatasetConfig
from jaxarc.recording import (
    TaskPlayer,
    action_form,
    action_numbers,
    action_of,
    load_recording,
    player_config,
    run_again,
    save_recording,
)
from jaxarc.tasks import create_demo_task
from jaxrig.testing import assert_trees_close

pytestmark = pytest.mark.slow  # many programs to compile

TASK = create_demo_task(5, 5)


@pytest.fixture
def player():
    dataset = DatasetConfig(max_grid_height=5, max_grid_width=5)
    player = TaskPlayer(TASK, "made up", player_config(dataset))
    player.step(3, (0, 0, 1, 1))
    player.step(12, (3, 3, 3, 3))
    player.step(34)
    return player


def test_a_file_gives_back_an_equal_recording(player, tmp_path):
    recording = player.recording()
    path = save_recording(tmp_path / "folder" / "e.json", recording)
    assert load_recording(path) == recording
    assert recording.dataset == "arc-agi-1"


def test_running_again_gives_the_same_frames(player):
    again = run_again(player.recording(), TASK)
    for one, other in zip(player.frames, again, strict=True):
        np.testing.assert_array_equal(one.grid, other.grid)
        assert (one.operation, one.reward) == (other.operation, other.reward)


@pytest.mark.parametrize("wrong", [5.0, float("nan")])
def test_another_reward_is_an_error(player, wrong):
    recording = player.recording()
    rewards = (recording.rewards[0], wrong, recording.rewards[2])
    with pytest.raises(ValueError, match=r"step 1 .* recorded is (5|nan)"):
        run_again(dataclasses.replace(recording, rewards=rewards), TASK)


@pytest.mark.parametrize(
    "action",
    [
        create_point_action(3, 1, 2),
        create_bbox_action(3, 1, 2, 3, 4),
        create_mask_action(3, np.arange(25).reshape(5, 5) % 3 == 0),
    ],
)
def test_actions_come_back_from_their_numbers(action):
    form = action_form(action)
    assert_trees_close(action_of(form, action_numbers(action), (5, 5)), action)


def test_another_folder_changes_nothing_else(player, tmp_path):
    moved = player.recording().in_folder(tmp_path)
    assert moved.config.dataset.dataset_path == str(tmp_path)
    assert moved.in_folder("") == player.recording()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other"}, "schema is not"),
        ({"form": "circle"}, "form 'circle' is not one of"),
        ({"actions": [[1, 2]]}, "not whole numbers of the form 'bbox'"),
        ({"actions": [[42, 0, 0, 0, 0]] * 3}, "not whole numbers"),
        ({"actions": [[1, 0, 0, 0, True]] * 3}, "not whole numbers"),
        ({"rewards": [1.0]}, "one reward for every action"),
        ({"rewards": ["x", "y", "z"]}, "could not convert"),
        ({"more": 1}, "missing or unknown: more"),
        ({"config": {"environment": {"max_episode_steps": 0}}}, "max_episode_steps"),
    ],
)
def test_unsound_files_are_refused_with_a_reason(player, tmp_path, change, message):
    path = save_recording(tmp_path / "e.json", player.recording())
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"e\.json: not a replay file .*{message}"):
        load_recording(path)


def test_no_file_and_no_json(tmp_path):
    with pytest.raises(FileNotFoundError, match="no replay file"):
        load_recording(tmp_path / "none.json")
    (tmp_path / "bad.json").write_bytes(b"\xff{")
    with pytest.raises(ValueError, match="not a replay file"):
        load_recording(tmp_path / "bad.json")
