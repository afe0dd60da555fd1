"""Where the files of a run lie, and what is in them."""

import json
from typing import Any

import numpy as np
import pytest

from arc_logs import clock, log_config, start_log, step_logs
from jaxarc.config import StorageConfig
from jaxarc.draw.episodes import EpisodeFrame
from jaxarc.log.events import create_episode_summary
from jaxarc.log.files import FileHandler, RunFolder, as_json, format_record


def folder(path, **values):
    named: Any = {"base_output_dir": str(path), "run_name": "run"} | values
    return RunFolder(StorageConfig(**named), clock)


def fill(run, number):
    run.episode_file(number).touch()
    run.episode_pictures(number).mkdir(parents=True)


def kept(run):
    return sorted(path.name for path in run.path.glob("*/episode_*"))


def test_a_run_without_a_name_has_the_time(tmp_path):
    first = folder(tmp_path, run_name=None)
    second = folder(tmp_path, run_name=None)
    assert first.path == tmp_path / "20250102_030405"
    assert second.path == tmp_path / "20250102_030405-2"


@pytest.mark.parametrize("name", ["../x", "a/b", ".."])
def test_a_name_is_no_path(tmp_path, name):
    with pytest.raises(ValueError, match="plain name"):
        folder(tmp_path, run_name=name)


def test_only_its_own_folders_are_cleared(tmp_path):
    fill(folder(tmp_path), 1)
    (tmp_path / "run" / "mine.txt").write_text("kept")
    assert kept(folder(tmp_path)) == ["episode_0001", "episode_0001.json"]
    assert kept(folder(tmp_path, clear_output_on_start=True)) == []
    assert (tmp_path / "run" / "mine.txt").exists()


def test_the_oldest_give_way(tmp_path):
    run = folder(tmp_path, max_episodes_per_run=2)
    for number in range(4):
        run.make_room()
        fill(run, number)
    assert kept(run)[::2] == ["episode_0002", "episode_0003"]


EVERYTHING = {
    "log_level": "DEBUG",
    "log_operations": True,
    "log_rewards": True,
    "log_grid_changes": True,
    "log_frequency": 1,
}


def written(tmp_path, policy="standard", **logging):
    config = log_config(tmp_path, logging=logging)
    folder = RunFolder(config.storage, clock)
    handler = FileHandler(config, folder, policy, clock)
    handler.start(start_log())
    for log in step_logs():
        handler.step(log)
    frames = [EpisodeFrame(np.ones((2, 2), np.int8))]
    handler.episode(create_episode_summary(0, step_logs()), frames)
    return handler, folder


def lines(handler):
    text = handler.path.read_text() if handler.path.exists() else ""
    return text.splitlines()


def test_all_there_is_to_say(tmp_path):
    handler, _ = written(tmp_path, **EVERYTHING)
    records = [json.loads(line) for line in lines(handler)]
    assert [r["event"] for r in records] == ["start", *["step"] * 3, "episode"]
    assert {r["time"] for r in records} == {"20250102_030405"}
    first = records[1]
    assert first["level"] == "DEBUG"
    assert (first["operation"], first["operation_name"]) == (2, "Fill 2")
    assert first["changed_cells"] == [[0, 0, 0, 2]]
    assert first["reward"] == step_logs()[0]["reward"]
    assert records[-1]["success"] is True
    assert "step_data" not in records[-1]


@pytest.mark.parametrize(
    ("changes", "events"),
    [
        ({}, ["start", *["step"] * 3, "episode"]),
        ({"log_frequency": 2}, ["start", "step", "episode"]),
        ({"log_level": "INFO"}, ["start", "episode"]),
        ({"log_level": "WARNING"}, []),
        ({"log_episode_start": False}, [*["step"] * 3, "episode"]),
        ({"log_episode_end": False}, ["start", *["step"] * 3]),
    ],
)
def test_less_is_written_where_less_is_asked_for(tmp_path, changes, events):
    handler, _ = written(tmp_path, **EVERYTHING | changes)
    assert [json.loads(line)["event"] for line in lines(handler)] == events


@pytest.mark.parametrize(
    ("kept", "names"),
    [
        ("log_operations", {"operation", "operation_name"}),
        ("log_rewards", {"reward", "similarity"}),
        ("log_grid_changes", {"changed_cells"}),
    ],
)
def test_each_part_of_a_step_is_a_choice(tmp_path, kept, names):
    asked: Any = {"log_level": "DEBUG", "log_frequency": 1, kept: True}
    handler, _ = written(tmp_path, **asked)
    step = json.loads(lines(handler)[1])
    common = {"time", "level", "event", "episode_num", "step_num"}
    assert set(step) == common | names


def test_formats_of_a_line():
    values = {"task": 'a "b"', "reward": 0.123456, "steps": 3}
    args = ("T", "INFO", "episode", values)
    assert json.loads(format_record("json", *args)) == {
        "time": "T",
        "level": "INFO",
        "event": "episode",
        **values,
    }
    assert format_record("text", *args) == (
        'T INFO episode: task a "b", reward 0.1235, steps 3'
    )
    assert format_record("structured", *args) == (
        'time="T" level="INFO" event="episode" task="a \\"b\\"" reward=0.123456 steps=3'
    )


@pytest.mark.parametrize(
    ("policy", "there", "grids"),
    [("minimal", False, False), ("standard", True, False), ("research", True, True)],
)
def test_the_policy_says_what_is_kept_of_an_episode(tmp_path, policy, there, grids):
    _, folder = written(tmp_path, policy)
    path = folder.episodes / "episode_0000.json"
    assert path.exists() == there
    if there:
        content = json.loads(path.read_text())
        assert len(content["step_data"]) == 3
        assert ("grids" in content) == grids
        assert content.get("grids", [[[1, 1], [1, 1]]]) == [[[1, 1], [1, 1]]]


def test_figures_and_warnings(tmp_path):
    handler, folder = written(tmp_path, log_level="INFO")
    handler.batch(3, {"loss": float("nan"), "returns_mean": 1.5})
    handler.evaluation({"solved": 2, "by": {"task": [1.0]}})
    handler.warning("full")
    batch = json.loads((folder.logs / "batch_metrics.jsonl").read_text())
    assert batch == {"update_step": 3, "loss": None, "returns_mean": 1.5}
    found = json.loads((folder.logs / "evaluation_summary.json").read_text())
    assert found == {"solved": 2, "by": {"task": [1.0]}}
    assert json.loads(lines(handler)[-1])["message"] == "full"


def test_json_has_no_nan():
    assert as_json([float("inf"), {"a": (1, 2.5)}]) == '[null, {"a": [1, 2.5]}]'
