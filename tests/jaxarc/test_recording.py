"""Oracle: a recorded episode runs again with the same rewards, or says why not.

Oracle: the environment itself, stepped without the player.
"""

import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxarc.actions import create_bbox_action, create_mask_action, create_point_action
from jaxarc.config import DatasetConfig
from jaxarc.envs import arc_reset, arc_step
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import (
    TaskPlayer,
    action_numbers,
    action_of,
    load_recording,
    player_config,
    run_again,
    save_recording,
)
from jaxarc.tasks import create_demo_task
from jaxrig.testing import assert_trees_close

pytestmark = pytest.mark.slow  # compiles programs of its own

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
    moved = recording.in_folder(tmp_path)
    assert moved.config.dataset.dataset_path == str(tmp_path)
    assert moved.in_folder("") == recording


def test_running_again_gives_the_same_frames(player):
    again = run_again(player.recording(), TASK)
    for one, other in zip(player.frames, again, strict=True):
        np.testing.assert_array_equal(one.grid, other.grid)
        assert (one.operation, one.reward) == (other.operation, other.reward)


@pytest.mark.parametrize("wrong", [5.0, float("nan")])
def test_another_reward_is_an_error(player, wrong):
    recording = player.recording()
    rewards = (recording.rewards[0], wrong, recording.rewards[2])
    with pytest.raises(ValueError, match=r"step 1 .* but (5|nan) was recorded"):
        run_again(dataclasses.replace(recording, rewards=rewards), TASK)


@pytest.mark.parametrize(
    ("form", "action"),
    [
        ("point", create_point_action(3, 1, 2)),
        ("bbox", create_bbox_action(3, 1, 2, 3, 4)),
        ("mask", create_mask_action(3, np.arange(25).reshape(5, 5) % 3 == 0)),
    ],
)
def test_actions_come_back_from_their_numbers(form, action):
    assert_trees_close(action_of(form, action_numbers(action), (5, 5)), action)


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


CONFIG = player_config(
    DatasetConfig(max_grid_height=7, max_grid_width=7, max_train_pairs=1)
)


@pytest.fixture
def task_player():
    return TaskPlayer(create_demo_task(7, 7), "made up", CONFIG)


def test_steps_are_those_of_the_environment(task_player):
    state, _ = arc_reset(jax.random.key(0), CONFIG, task_player.task, 0, 0)
    for operation, box in ((3, (0, 1, 2, 2)), (15, (4, 4, 4, 4)), (20, (1, 1, 1, 3))):
        action = create_bbox_action(operation, *box)
        state, grid, reward, _, info = arc_step(state, action, CONFIG)
        frame = task_player.step(operation, box)
        np.testing.assert_array_equal(frame.grid, grid)
        assert frame.reward == float(reward)
        assert frame.similarity == float(info["similarity"])
    assert task_player.steps == 3
    assert [f.operation for f in task_player.frames] == [None, 3, 15, 20]
    assert (task_player.step(Op.FILL_5).grid == 5).all()  # no cells are all of them


def test_undo_brings_back_everything(task_player):
    task_player.step(Op.FILL_1, (0, 0, 0, 0))
    before, recorded = task_player.frame, task_player.recording()
    task_player.step(Op.SUBMIT)
    assert task_player.done
    task_player.undo()
    assert not task_player.done
    assert task_player.frame is before
    assert task_player.recording() == recorded
    task_player.undo()
    with pytest.raises(ValueError, match="no step to undo"):
        task_player.undo()


def test_solving_the_pair_is_seen_and_ends_the_only_one(task_player):
    task_player.step(Op.FLOOD_FILL_2, (3, 3, 3, 3))
    assert task_player.solved.tolist() == [True]
    assert task_player.done
    with pytest.raises(ValueError, match="has ended: use undo or quit"):
        task_player.step(Op.FILL_0)


def test_a_paste_at_a_cell_brings_the_whole_clipboard(task_player):
    task_player.step(Op.COPY, (2, 2, 4, 4))
    grid = task_player.step(Op.PASTE, (0, 0, 0, 0)).grid
    assert (grid[:3, :3] == 1).all()
    assert task_player.recording().actions[-1] == (Op.PASTE, 0, 0, 6, 6)


def test_a_resize_may_reach_into_the_padding_and_nothing_else(task_player):
    task_player.step(Op.RESIZE, (0, 0, 2, 1))
    assert task_player.frame.grid.shape == (3, 2)
    with pytest.raises(ValueError, match="column 2 is outside: columns go from 0 to 1"):
        task_player.step(Op.FILL_1, (0, 2, 0, 2))
    assert task_player.step(Op.RESIZE, (0, 0, 6, 6)).grid.shape == (7, 7)
    with pytest.raises(ValueError, match="row 7 is outside"):
        task_player.step(Op.RESIZE, (0, 0, 7, 0))
    assert task_player.steps == 2


def test_tests_hide_the_target():
    task_player = TaskPlayer(create_demo_task(7, 7), "made up", CONFIG, mode=1)
    assert task_player.frame.target is None
    task_player.step(Op.FLOOD_FILL_2, (3, 3, 3, 3))
    assert task_player.solved.tolist() == [False]
    task_player.step(Op.SUBMIT)
    assert task_player.solved.tolist() == [True]
