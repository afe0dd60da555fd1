"""What the terminal shows of an episode, and what is written, drawn and sent of it.

The tracking service is played by a list here.
"""

import functools
import io
import json
import sys
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from arc_logs import clock, files, log_config, start_log, step_logs
from jaxarc.config import StorageConfig, WandbConfig
from jaxarc.draw.episodes import EpisodeFrame
from jaxarc.log.experiment import create_episode_summary, frame_of_log
from jaxarc.log.handlers import (
    ConsoleHandler,
    FileHandler,
    PictureHandler,
    RunFolder,
    WandbHandler,
    as_json,
    format_record,
)


def folder(path, **values):
    named: Any = {"base_output_dir": str(path), "run_name": "run"} | values
    return RunFolder(StorageConfig(**named), clock)


def fill(run, number):
    run.episodes.mkdir(exist_ok=True)
    (run.episodes / f"episode_{number:04d}.json").touch()
    run.episode_pictures(number).mkdir(parents=True)


def kept(run):
    return sorted(path.name for path in run.path.glob("*/episode_*"))


def test_a_run_without_a_name_has_the_time_and_a_name_is_no_path(tmp_path):
    first = folder(tmp_path, run_name=None)
    second = folder(tmp_path, run_name=None)
    assert first.path == tmp_path / "20250102_030405"
    assert second.path == tmp_path / "20250102_030405-2"
    for name in ("../x", "a/b", ".."):
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


def tell(handler, number=0, frames=()):
    """Tell a handler of the whole episode."""
    handler.start(start_log(number))
    for log in step_logs(number):
        handler.step(log)
    handler.episode(create_episode_summary(number, step_logs(number)), frames)


PARTS = ("log_operations", "log_rewards", "log_grid_changes")
DEBUG: Any = {"log_level": "DEBUG", "log_frequency": 1}
EVERYTHING: Any = DEBUG | dict.fromkeys(PARTS, True)


def written(tmp_path, policy="standard", **logging):
    config = log_config(tmp_path, logging=logging, storage={"policy": policy})
    folder = RunFolder(config.storage, clock)
    handler = FileHandler(config, folder, clock)
    tell(handler, 0, [EpisodeFrame(np.ones((2, 2), np.int8))])
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
    handler, _ = written(tmp_path, **DEBUG | {kept: True})
    step = json.loads(lines(handler)[1])
    common = {"time", "level", "event", "episode_num", "step_num"}
    assert set(step) == common | names


def test_formats_of_a_line():
    assert as_json([float("inf"), {"a": (1, 2.5)}]) == '[null, {"a": [1, 2.5]}]'
    values = {"task": 'a "b"', "reward": 0.123456, "steps": 3}
    args = ("T", "INFO", "episode", values)
    common = {"time": "T", "level": "INFO", "event": "episode"}
    assert json.loads(format_record("json", *args)) == common | values
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
        assert content.get("grids") == ([[[1, 1], [1, 1]]] if grids else None)


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


def shown(**groups):
    visualization = {"level": "full", "output_formats": ("console",)}
    groups["visualization"] = visualization | groups.get("visualization", {})
    config = log_config("out", **groups)
    console = Console(file=io.StringIO(), width=80, _environ={})
    with console.capture() as capture:
        tell(ConsoleHandler(config, console), 5)
    return capture.get()


@functools.cache
def everything_shown():
    return shown()


def test_an_episode_from_start_to_end():
    text = everything_shown()
    assert text.startswith("Episode 5: a task without id, pair 1\n")
    assert "Step 1, Op 2: Fill 2, reward -0.010, similarity 0.950 → 0.950" in text
    assert text.count("Working grid (4x5)") == 3
    assert "Episode 5: solved, 3 steps, reward" in text


@pytest.mark.parametrize(
    ("groups", "missing"),
    [
        ({"visualization": {"level": "minimal"}}, "Working grid"),
        ({"visualization": {"step_visualizations": False}}, "Working grid"),
        ({"visualization": {"episode_summaries": False}}, "solved, 3 steps"),
        ({"visualization": {"include_metrics": False}}, "similarity 0.950 →"),
        ({"visualization": {"show_operation_names": False}}, "Fill 2"),
        ({"logging": {"log_episode_start": False}}, "a task without id"),
        ({"logging": {"log_episode_end": False}}, "solved, 3 steps"),
    ],
)
def test_less_is_shown_where_less_is_asked_for(groups, missing):
    assert missing in everything_shown()
    assert missing not in shown(**groups)


def test_figures_are_lines():
    console = Console(file=io.StringIO(), width=80, _environ={})
    handler = ConsoleHandler(log_config("out"), console)
    with console.capture() as capture:
        handler.batch(3, {"loss": 0.123456, "envs": 4})
        handler.evaluation({"[bold]": 2, "nested": {"a": 1}})
    assert capture.get() == ("Update 3: loss 0.1235, envs 4\nEvaluation: [bold] 2\n")


def drawn(tmp_path, policy="research", frames=True, **visualization):
    config = log_config(
        tmp_path,
        visualization={"level": "full"} | visualization,
        storage={"policy": policy},
    )
    folder = RunFolder(config.storage, clock)
    shown = [frame_of_log(log) for log in (start_log(2), *step_logs(2))]
    tell(PictureHandler(config, folder), 2, shown if frames else [])
    return folder.pictures / "episode_0002"


def texts(path):
    tree = ElementTree.fromstring(path.read_text())
    return [str(node.text) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_everything(tmp_path):
    place = drawn(tmp_path, output_formats=("svg", "html"))
    steps = ["step_001.svg", "step_002.svg", "step_003.svg"]
    assert files(place) == ["episode.html", *steps, "summary.svg", "task_overview.svg"]
    assert "Step 1 · Op 2: Fill 2" in texts(place / "step_001.svg")
    assert "Episode 2" in texts(place / "summary.svg")
    assert "3 steps, solved." in (place / "episode.html").read_text()


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"level": "minimal"}, ["summary.svg"]),
        ({"policy": "minimal"}, ["summary.svg"]),
        ({"step_visualizations": False}, ["summary.svg", "task_overview.svg"]),
        ({"level": "standard", "episode_summaries": False}, ["task_overview.svg"]),
        ({"level": "minimal", "frames": False}, []),
        ({"level": "minimal", "output_formats": ("html",)}, ["episode.html"]),
    ],
)
def test_less_is_drawn_where_less_is_asked_for(tmp_path, changes, left):
    assert files(drawn(tmp_path, **changes)) == left


def test_what_a_step_shows_is_a_choice(tmp_path):
    off = ("show_operation_names", "highlight_changes", "include_metrics")
    less: Any = dict.fromkeys(off, False) | {"color_scheme": "high_contrast"}
    full = drawn(tmp_path / "full", show_coordinates=True) / "step_001.svg"
    bare = drawn(tmp_path / "bare", **less) / "step_001.svg"
    assert 'data-mark="number"' in full.read_text()
    assert 'data-mark="changed"' in full.read_text()
    assert any("reward" in text for text in texts(full))
    assert texts(bare) == ["Step 1", "Before (4x5)", "After (4x5)"]
    assert 'data-mark="changed"' not in bare.read_text()
    assert "#FF0000" in bare.read_text()  # red of the scheme
    assert "#FF4136" in full.read_text()


def test_png_needs_a_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install cairosvg"):
        drawn(tmp_path, output_formats=("png",))


@pytest.fixture
def service(monkeypatch):
    """Everything the service is told, in order."""
    told = SimpleNamespace(started={}, logged=[], summary={}, finished=0)

    def init(**values):
        told.started = values
        return SimpleNamespace(
            log=told.logged.append, summary=told.summary, finish=finish
        )

    def finish():
        told.finished += 1

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    return told


def handler(settings=None, **values):
    return WandbHandler(log_config("out", wandb=values), settings)


def test_a_run_starts_as_configured(service):
    given = {"entity": "e", "notes": "n", "group": "g", "job_type": "j"}
    handler(project_name="p", tags=("a", "b"), offline_mode=True, **given)
    config = service.started.pop("config")
    assert config["wandb"]["project_name"] == "p"
    wanted = {"project": "p", "tags": ["a", "b"], "mode": "offline"} | given
    assert service.started == wanted
    handler(save_config=False)
    assert service.started["config"] is None
    assert service.started["mode"] == "online"
    handler(WandbConfig(notes="mine"))
    assert service.started["config"]["notes"] == "mine"


def test_figures_are_sent_now_and_then(service):
    sender = handler(log_frequency=2)
    for number in range(1, 5):
        sender.batch(number, {"loss": float(number)})
        sender.episode(create_episode_summary(number, []), [])
    updates = [row for row in service.logged if "update_step" in row]
    assert updates == [{"update_step": 2, "loss": 2.0}, {"update_step": 4, "loss": 4.0}]
    episodes = [row["episode/episode_num"] for row in service.logged[1::2]]
    assert episodes == [2, 4]
    sender.evaluation({"rate": 0.5, "nested": {}})
    sender.close()
    assert service.summary == {"evaluation/rate": 0.5}
    assert service.finished == 1


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[wandb\]"'):
        handler()


def test_steps_between_those_written_cost_nothing(tmp_path):
    config = log_config(tmp_path, logging=EVERYTHING | {"log_frequency": 2})
    handler = FileHandler(config, RunFolder(config.storage, clock), clock)
    handler.step({"step_num": 1})  # its grids are not asked for
