"""What the terminal shows of an episode.

Pictures of an episode, by what is asked for.

What is sent to the tracking service, which is played by a list here.
"""

import io
import sys
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest
from rich.console import Console

from arc_logs import clock, files, log_config, start_log, step_logs
from jaxarc.config import WandbConfig
from jaxarc.log.events import Detail, create_episode_summary, frame_of_log
from jaxarc.log.files import RunFolder
from jaxarc.log.handlers import ConsoleHandler, PictureHandler, WandbHandler


def shown(**groups):
    visualization = {"level": "full", "output_formats": ("console",)}
    groups["visualization"] = visualization | groups.get("visualization", {})
    config = log_config("out", **groups)
    console = Console(file=io.StringIO(), width=80, _environ={})
    handler = ConsoleHandler(config, Detail.of(config), console)
    with console.capture() as capture:
        handler.start(start_log(5))
        for log in step_logs(5):
            handler.step(log)
        handler.episode(create_episode_summary(5, step_logs()), [])
    return capture.get()


def test_an_episode_from_start_to_end():
    text = shown()
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
    assert missing in shown()
    assert missing not in shown(**groups)


def test_figures_are_lines():
    config = log_config("out")
    console = Console(file=io.StringIO(), width=80, _environ={})
    handler = ConsoleHandler(config, Detail.of(config), console)
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
    handler = PictureHandler(config.visualization, Detail.of(config), folder)
    handler.start(start_log(2))
    logs = step_logs(2)
    for log in logs:
        handler.step(log)
    shown = [frame_of_log(log) for log in (start_log(2), *logs)] if frames else []
    handler.episode(create_episode_summary(2, logs), shown)
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
    full = drawn(tmp_path / "full", show_coordinates=True) / "step_001.svg"
    bare = (
        drawn(
            tmp_path / "bare",
            show_operation_names=False,
            highlight_changes=False,
            include_metrics=False,
            color_scheme="high_contrast",
        )
        / "step_001.svg"
    )
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
    handler(
        project_name="p",
        entity="e",
        tags=("a", "b"),
        notes="n",
        group="g",
        job_type="j",
        offline_mode=True,
    )
    config = service.started.pop("config")
    assert config["wandb"]["project_name"] == "p"
    assert service.started == {
        "project": "p",
        "entity": "e",
        "tags": ["a", "b"],
        "notes": "n",
        "group": "g",
        "job_type": "j",
        "mode": "offline",
    }


def test_the_configuration_kept_is_a_choice(service):
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
