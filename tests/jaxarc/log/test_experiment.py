"""A whole run through the logger: who hears of it, and what is left behind."""

import io
import json
import logging
import threading

import jax.numpy as jnp
import pytest
from rich.console import Console

from arc_logs import clock, files, log_config, play
from jaxarc.config import (
    ConfigValidationError,
    DebugConfig,
    EnvironmentConfig,
    JaxArcConfig,
    MemoryConfig,
)
from jaxarc.draw import callbacks
from jaxarc.log import ExperimentLogger, Handler

ASYNC = DebugConfig(level="full", async_logging=True)
BLOCKING = DebugConfig(level="full", async_logging=False)
NO_FILES = {"storage": {"policy": "none"}}


def opened(folder, **groups):
    return ExperimentLogger(log_config(folder, **groups), clock=clock)


@pytest.mark.parametrize("debug", [None, ASYNC, BLOCKING])
def test_a_run_leaves_its_files(tmp_path, debug):
    pictures = {"level": "full", "debug": debug}
    with opened(
        tmp_path, visualization=pictures, storage={"policy": "research"}
    ) as log:
        assert log.path == tmp_path / "run"
        for number in range(2):
            play(log, number)
    steps = [f"step_{n:03d}.svg" for n in (1, 2, 3)]
    drawn = [*steps, "summary.svg", "task_overview.svg"]
    assert files(tmp_path / "run") == [
        "episodes/episode_0000.json",
        "episodes/episode_0001.json",
        "logs/run.jsonl",
        *(f"visualizations/episode_0000/{name}" for name in drawn),
        *(f"visualizations/episode_0001/{name}" for name in drawn),
    ]
    content = json.loads((tmp_path / "run/episodes/episode_0001.json").read_text())
    assert len(content["grids"]) == 4
    assert content["success"] is True


def test_off_is_silent(tmp_path):
    config = log_config(tmp_path, "off", wandb={"enabled": True})
    with ExperimentLogger(config) as log:
        play(log)
        log.log_batch_step({"update_step": 0})
        log.log_evaluation_summary({"a": 1})
        assert log.path is None
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ({}, ["files", "pictures"]),
        ({"visualization": {"enabled": False}}, ["files"]),
        ({"visualization": {"output_formats": ("console",)}}, ["console", "files"]),
        (NO_FILES, []),
        (
            NO_FILES | {"visualization": {"output_formats": ("console", "svg")}},
            ["console"],
        ),
    ],
)
def test_who_hears_of_it(tmp_path, groups, names):
    with opened(tmp_path, **groups) as log:
        assert [handler.name for handler in log.handlers] == names


def test_the_terminal_is_the_one_given(tmp_path):
    console = Console(file=io.StringIO(), width=80, _environ={})
    config = log_config(tmp_path, visualization={"output_formats": ("console",)})
    with console.capture() as capture, ExperimentLogger(config, console=console) as log:
        play(log, 3)
    assert "Episode 3: solved" in capture.get()


class Broken(Handler):
    name = "broken"

    def step(self, log):
        raise OSError("no space left")


@pytest.mark.parametrize("monitored", [True, False])
def test_one_that_fails_stops_nobody(tmp_path, caplog, monitored):
    callbacks.reset_callback_performance_stats()
    debug = DebugConfig(async_logging=False, performance_monitoring=monitored)
    log = opened(tmp_path, visualization={"debug": debug})
    log.handlers = (Broken(), *log.handlers)
    with caplog.at_level(logging.ERROR):
        play(log)
    log.close()
    assert "no space left" in caplog.text
    assert "episodes/episode_0000.json" in files(tmp_path / "run")
    found = callbacks.get_callback_performance_stats()
    assert ("experiment_broken" in found) == monitored
    if monitored:
        assert found["experiment_broken"]["error_count"] == 3
    callbacks.reset_callback_performance_stats()


@pytest.mark.parametrize(("debug", "beside"), [(ASYNC, True), (BLOCKING, False)])
def test_the_thread_is_a_choice(tmp_path, debug, beside):
    log, threads = opened(tmp_path, visualization={"debug": debug}), set()

    class Watching(Handler):
        def step(self, log):
            threads.add(threading.current_thread())

    log.handlers = (Watching(),)
    play(log)
    log.close()
    assert (threads != {threading.current_thread()}) == beside
    assert not any(t.name.startswith("jaxarc-log") for t in threading.enumerate())


def test_batches_are_logged_now_and_then(tmp_path):
    rules = {"batched_logging_enabled": True, "log_frequency": 2}
    with opened(tmp_path / "off") as log:  # which is the default
        log.log_batch_step({"update_step": 10, "loss": 1.0})
    assert files(tmp_path) == []
    with opened(tmp_path, logging=rules) as log:
        for number in range(1, 5):
            batch = {"episode_returns": jnp.arange(4.0), "policy_loss": 0.5}
            log.log_batch_step({"update_step": number} | batch)
        log.log_evaluation_summary({"rate": 1.0})
    text = (tmp_path / "run/logs/batch_metrics.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["update_step"] for row in rows] == [2, 4]
    assert (rows[0]["episode_returns_mean"], rows[0]["policy_loss"]) == (1.5, 0.5)
    assert (tmp_path / "run/logs/evaluation_summary.json").exists()


def test_frames_that_are_lost_are_said(tmp_path, caplog):
    memory = MemoryConfig(lazy_loading=False, max_total_mb=1e6)
    debug = DebugConfig(memory_management=memory)
    pictures = {"max_memory_mb": 1e-6, "debug": debug}
    with (
        caplog.at_level(logging.WARNING),
        opened(tmp_path, visualization=pictures) as log,
    ):
        play(log)
    assert "4 of 4 frames of the episode did not fit" in caplog.text


def test_a_configuration_that_is_not_valid_is_refused():
    wrong = JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=0))
    with pytest.raises(ConfigValidationError, match="max_episode_steps"):
        ExperimentLogger(wrong)
