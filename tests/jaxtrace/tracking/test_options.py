"""Sizes that options work out."""

import pytest

from jaxtrace.config import configure, reset_config
from jaxtrace.tracking.options import Progress, TrackerOptions

GIB = 1024**3


@pytest.fixture(autouse=True)
def _defaults():
    yield
    reset_config()


def test_calls_are_whole_runs_unless_memory_or_progress_asks():
    options = TrackerOptions()
    assert options.frames_per_call(7500, 1499, watched=False) == 1499
    assert options.frames_per_call(100, 1000, watched=True) == 50
    small = TrackerOptions(max_memory_gb=7500 * 12 * 4 * 100 / GIB)
    assert small.frames_per_call(7500, 1000, watched=False) == 100


@pytest.mark.parametrize("frames", [1, 2, 97, 1499])
def test_calls_are_never_longer_than_allowed(frames):
    small = TrackerOptions(max_memory_gb=10 * 12 * 4 * 7 / GIB)
    assert 1 <= small.frames_per_call(10, frames, watched=False) <= 7


def test_defaults_come_from_the_configuration():
    configure(memory_limit_gb=3.0, oom_recovery=False)
    options = TrackerOptions()
    assert options.max_memory_gb == 3.0
    assert not options.oom_recovery


def test_silent_unless_asked(capsys):
    progress = Progress(TrackerOptions())
    assert not progress.watched
    progress.start(3)
    progress.show(3)
    progress.stop()
    assert capsys.readouterr() == ("", "")
    assert Progress(TrackerOptions(progress_style="simple")).watched
