"""Oracle: the plain scan for results, a recording meter for what is shown."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from helpers import compiled_text
from jaxrig import progress
from jaxrig.progress import Meter, RichMeter, TextMeter, make_meter, scan_with_progress
from jaxrig.sharding import make_mesh, shard_batch


class Recorder(Meter):
    silent = False

    def __init__(self):
        self.events = []

    def start(self, label, total):
        self.events.append((label, total))

    def show(self, done):
        self.events.append(done)

    def stop(self):
        self.events.append("stop")


def body(carry, x):
    return carry * 0.9 + x, carry


@pytest.mark.parametrize("length", [1, 7, 1060])  # of which blocks leave 10 steps
def test_scan_gives_the_same_result_and_reports_to_the_end(length):
    meter, xs = Recorder(), np.arange(length, dtype=np.float32)
    run = jax.jit(lambda xs: scan_with_progress(body, 0.0, xs, meter=meter, label="s"))
    result = run(xs)
    jax.effects_barrier()
    expected = jax.jit(lambda xs: jax.lax.scan(body, 0.0, xs))(xs)
    jax.tree.map(np.testing.assert_array_equal, result, expected)
    start, *shown, stop = meter.events
    assert (start, stop) == (("s", length), "stop")
    assert shown == sorted(set(shown))
    assert shown[-1] == length
    assert len(shown) <= 60


def test_a_compiled_scan_reports_on_every_run():
    meter = Recorder()
    run = jax.jit(
        lambda x: scan_with_progress(body, x, jnp.ones(3), meter=meter, label="s")
    )
    for _ in range(2):
        run(0.0)
        jax.effects_barrier()
    assert meter.events == [("s", 3), 1, 2, 3, "stop"] * 2


def test_silent_leaves_nothing_in_the_program():
    def program(meter):
        run = lambda xs: scan_with_progress(body, 0.0, xs, meter=meter)
        return compiled_text(run, np.ones(9, np.float32))

    assert "custom-call" in program(Recorder())
    assert "custom-call" not in program(Meter())


@pytest.mark.parametrize("transform", [jax.vmap, lambda f: f], ids=["rows", "devices"])
def test_a_scan_reports_once_not_per_row_or_device(transform):
    meter = Recorder()
    run = lambda x: scan_with_progress(body, x, jnp.ones(4), meter=meter)[0]
    jax.jit(transform(run))(shard_batch(jnp.arange(16.0), make_mesh()))
    jax.effects_barrier()
    assert meter.events == [("steps", 4), 1, 2, 3, 4, "stop"]


def test_gradients_pass_through_the_scan():
    run = lambda x: scan_with_progress(body, x, jnp.ones(4), meter=Recorder())[0]
    assert float(jax.jit(jax.grad(run))(1.0)) == pytest.approx(0.9**4)


def test_a_broken_meter_does_not_break_the_scan(caplog):
    class Broken(Recorder):
        def show(self, done):
            raise OSError("terminal gone")

    with caplog.at_level("CRITICAL", logger="jaxrig.callbacks"):
        run = jax.jit(lambda xs: scan_with_progress(body, 0.0, xs, meter=Broken()))
        carry, _ = run(np.ones(3, np.float32))
        jax.effects_barrier()
    assert float(carry) == pytest.approx(2.71)


def test_text_lines_are_spaced_in_time_and_end_at_the_end():
    now, stream = [0.0], io.StringIO()
    meter = TextMeter(stream, every_seconds=2.0, clock=lambda: now[0])
    meter.compiling("work")
    meter.start("work", 10)
    now[0] += 30.0  # compiling: not part of the pace
    for step in range(1, 11):
        now[0] += 0.5
        meter.show(step)
    meter.stop()
    assert stream.getvalue().splitlines() == [
        "work: compiling ...",
        "work: 1/10 (10 %), 30.5 s",
        "work: 5/10 (50 %), 32.5 s, 2.5 s left",
        "work: 9/10 (90 %), 34.5 s, 0.5 s left",
        "work: 10/10 (100 %), 35.0 s, 0.0 s left",
    ]


def test_rich_meter_draws_and_leaves_the_cursor_as_it_was(monkeypatch):
    stream = io.StringIO()
    terminal = Console(file=stream, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Console", lambda stderr: terminal)
    meter = RichMeter()
    meter.stop()  # nothing to take away yet
    meter.compiling("work")
    meter.start("work", 3)
    meter.show(3)
    meter.stop()
    shown = stream.getvalue()
    assert "work: compiling" in shown
    assert "3/3" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


@pytest.mark.parametrize(("xs", "length"), [(np.ones(10), 5), (None, None)])
def test_a_scan_needs_one_length(xs, length):
    with pytest.raises(ValueError, match="the same length"):
        scan_with_progress(body, 0.0, xs, length, meter=Recorder())


def test_meters_by_name():
    assert type(make_meter("silent")) is Meter
    assert isinstance(make_meter("auto"), TextMeter)  # pytest is no terminal
    with pytest.raises(ValueError, match="'loud' is not one of: auto, rich"):
        make_meter("loud")
