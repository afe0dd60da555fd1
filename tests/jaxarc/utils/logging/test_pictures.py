"""Pictures of an episode, by what is asked for."""

import sys
import xml.etree.ElementTree as ElementTree

import pytest

from arc_logs import clock, files, log_config, start_log, step_logs
from jaxarc.utils.logging.detail import Detail
from jaxarc.utils.logging.folder import RunFolder
from jaxarc.utils.logging.frames import frame_of_log
from jaxarc.utils.logging.payloads import create_episode_summary
from jaxarc.utils.logging.pictures import PictureHandler


def drawn(tmp_path, policy="research", frames=True, accepts=True, **visualization):
    config = log_config(
        tmp_path,
        visualization={"level": "full"} | visualization,
        storage={"policy": policy},
    )
    folder = RunFolder(config.storage, clock)
    folder.accepts = accepts
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
        ({"accepts": False, "output_formats": ("svg", "html")}, []),
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


def test_a_summary_may_do_without_figures(tmp_path):
    found = texts(drawn(tmp_path, include_metrics=False) / "summary.svg")
    assert not any("reward" in text for text in found)


def test_png_needs_a_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install cairosvg"):
        drawn(tmp_path, output_formats=("png",))
