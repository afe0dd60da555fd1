"""What the terminal shows of an episode."""

import io

import pytest
from rich.console import Console

from arc_logs import log_config, start_log, step_logs
from jaxarc.utils.logging.detail import Detail
from jaxarc.utils.logging.payloads import create_episode_summary
from jaxarc.utils.logging.terminal import ConsoleHandler, step_words


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


def test_coordinates_may_be_shown():
    assert "0 1 2 3 4" in shown(visualization={"show_coordinates": True})


def test_figures_are_lines():
    config = log_config("out")
    console = Console(file=io.StringIO(), width=80, _environ={})
    handler = ConsoleHandler(config, Detail.of(config), console)
    with console.capture() as capture:
        handler.batch(3, {"loss": 0.123456, "envs": 4})
        handler.evaluation({"[bold]": 2, "nested": {"a": 1}})
    assert capture.get() == ("Update 3: loss 0.1235, envs 4\nEvaluation: [bold] 2\n")


def test_a_step_in_words():
    log = step_logs()[0]
    assert step_words(log, named=False, figures=False) == "Step 1"
