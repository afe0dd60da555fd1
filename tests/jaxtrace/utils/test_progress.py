"""Lines that a loop writes, with a clock of our own."""

import io
import itertools

import pytest

from jaxtrace.utils.progress import create_progress_callback


def test_lines_and_rates():
    stream = io.StringIO()
    ticks = itertools.count()
    report = create_progress_callback(
        "Track", update_every=10, stream=stream, clock=lambda: next(ticks) / 4
    )
    for step in range(26):
        report(step, 25)
    assert stream.getvalue().splitlines() == [
        "Track: 0/25 (0 %)",
        "Track: 10/25 (40 %), 4 steps/s",
        "Track: 20/25 (80 %), 4 steps/s",
        "Track: 25/25 (100 %), 4 steps/s",
    ]


def test_a_second_run_starts_afresh():
    stream = io.StringIO()
    times = iter([0.0, 10.0, 100.0, 101.0])
    report = create_progress_callback(
        update_every=1, stream=stream, clock=lambda: next(times)
    )
    for step, total in ((1, 2), (2, 2), (0, 2), (2, 2)):
        report(step, total)
    assert stream.getvalue().splitlines()[-1] == "Progress: 2/2 (100 %), 2 steps/s"


def test_memory_and_default_stream(capsys):
    create_progress_callback("A", 1, show_memory=True, show_rate=False)(1, 1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("A: 1/1 (100 %), ")
    assert captured.err.endswith(" MiB\n")
    with pytest.raises(ValueError, match="update_every=0"):
        create_progress_callback(update_every=0)
