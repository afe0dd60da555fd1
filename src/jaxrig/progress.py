"""Progress of long work, on the host or inside a compiled scan.

Three meters of one interface: `RichMeter` draws a bar, `TextMeter` writes lines, the
silent `Meter` does nothing and leaves nothing in a compiled program.
"""

import io
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from rich import progress
from rich.console import Console

from jaxrig.callbacks import host_callback

Carry = TypeVar("Carry")
UPDATES_PER_SCAN = 50  # often enough to look smooth, too seldom to cost anything


class Meter:
    """A meter that shows nothing, and the interface of those that do."""

    silent = True

    def compiling(self, label: str) -> None:
        """Say that a piece of work compiles before it starts."""

    def start(self, label: str, total: int) -> None:
        """Begin a piece of work of `total` steps."""

    def show(self, done: int) -> None:
        """Say how many steps are done."""

    def stop(self) -> None:
        """End the piece of work, finished or not."""


class TextMeter(Meter):
    """Lines of text, at most one every few seconds: for logs and plain terminals."""

    silent = False

    def __init__(
        self,
        stream: io.TextIOBase | None = None,
        every_seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._stream = stream
        self._every = every_seconds
        self._clock = clock

    def compiling(self, label: str) -> None:
        """Write a line at once: compiling may take a minute."""
        self._write(f"{label}: compiling ...")

    def start(self, label: str, total: int) -> None:
        """Begin a piece of work."""
        self._label, self._total, self._shown = label, total, -1
        self._begin = self._last = self._clock()
        self._first: tuple[int, float] | None = None  # steps done and when

    def show(self, done: int) -> None:
        """Write a line, unless the last was just now; the end is always written."""
        now = self._clock()
        if self._first is None:
            self._first = (done, now)
        due = now - self._last >= self._every or done >= self._total
        if due and done != self._shown:
            self._shown, self._last = done, now
            share = 100 * done / self._total if self._total else 100
            self._write(
                f"{self._label}: {done}/{self._total} ({share:.0f} %), "
                f"{now - self._begin:.1f} s{self._left(done, now)}"
            )

    def _write(self, line: str) -> None:
        stream = self._stream or sys.stderr
        stream.write(f"{line}\n")
        stream.flush()

    def _left(self, done: int, now: float) -> str:
        """Time left at the pace since the first report, which followed compiling."""
        first, then = self._first or (done, now)
        if done == first:
            return ""
        return f", {(now - then) * (self._total - done) / (done - first):.1f} s left"


class RichMeter(Meter):
    """A progress bar on the terminal."""

    silent = False
    _bar: progress.Progress | None = None

    def compiling(self, label: str) -> None:
        """Draw a bar that pulses, until the work starts."""
        self._draw(f"{label}: compiling", None)

    def start(self, label: str, total: int) -> None:
        """Draw the bar."""
        self._draw(label, total)

    def _draw(self, label: str, total: int | None) -> None:
        self.stop()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            transient=True,
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(label, total=total)
        self._bar.start()

    def show(self, done: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def stop(self) -> None:
        """Take the bar away, if there is one."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def make_meter(kind: str = "auto") -> Meter:
    """Return a meter: auto (bar on a terminal, else text), rich, text or silent."""
    makers = {"rich": RichMeter, "text": TextMeter, "silent": Meter}
    if kind == "auto":
        kind = "rich" if sys.stderr.isatty() else "text"
    if kind not in makers:
        raise ValueError(f"progress {kind!r} is not one of: auto, {', '.join(makers)}")
    return makers[kind]()


def starting(meter: Meter, label: str) -> Callable[[int, int], None]:
    """Return the progress of work whose size is known at its first report."""
    started: list[int] = []

    def progress(done: int, total: int) -> None:
        if not started:
            meter.start(label, total)
            started.append(total)
        meter.show(done)

    return progress


def scan_with_progress(
    body: Callable[[Carry, Any], tuple[Carry, Any]],
    init: Carry,
    xs: PyTree = None,
    length: int | None = None,
    *,
    meter: Meter,
    label: str = "steps",
) -> tuple[Carry, Any]:
    """Run `jax.lax.scan` and tell a meter how far it is, from compiled code.

    The meter hears of about fifty steps. It gets its calls from the running
    program, so it may be a moment behind; `jax.effects_barrier()` waits for it.
    """
    lengths = {x.shape[0] for x in jax.tree.leaves(xs)}
    lengths |= {length} - {None}
    if len(lengths) != 1:
        raise ValueError(
            "all scan inputs must have the same length, got: "
            f"{sorted(lengths) or 'none'}"
        )
    length = int(lengths.pop())
    if meter.silent or length == 0:
        return jax.lax.scan(body, init, xs, length)
    meter.compiling(label)  # this line runs while the program is traced
    tell = _teller(meter, label, length)
    block = max(1, length // UPDATES_PER_SCAN)
    blocks, rest = divmod(length, block)

    # A scan of scans: asking at every step whether to report would make an
    # accelerator wait for the host at every step.
    def run_block(carry: Carry, block_and_xs: tuple[jax.Array, Any]):
        index, part = block_and_xs
        carry, ys = jax.lax.scan(body, carry, part, block)
        return tell(carry, rest + (index + 1) * block), ys

    # What is left over goes first and unreported. At the end its report would wait for
    # nothing: XLA drops barriers, and the call came before those of the blocks.
    carry, first = init, None
    if rest:
        head = jax.tree.map(lambda x: x[:rest], xs)
        carry, first = jax.lax.scan(body, carry, head, rest)
    whole = jax.tree.map(lambda x: x[rest:].reshape(blocks, block, *x.shape[1:]), xs)
    carry, ys = jax.lax.scan(run_block, carry, (jnp.arange(blocks), whole), blocks)
    ys = jax.tree.map(lambda y: y.reshape(blocks * block, *y.shape[2:]), ys)
    if rest:
        ys = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, ys)
    return carry, ys


def _teller(
    meter: Meter, label: str, total: int
) -> Callable[[Carry, jax.Array], Carry]:
    """Show in compiled code, once `carry` is computed, that `done` steps are."""
    shown = [total]

    def report(value: np.ndarray) -> None:
        done = int(value)
        # Calls are not ordered, as ordered ones cannot run on several devices: one
        # that comes late is no news. A run that broke off is followed by a fresh one.
        if shown[0] == total or done < shown[0] // 2:
            meter.start(label, total)
            shown[0] = 0
        shown[0] = max(shown[0], done)
        meter.show(shown[0])
        if shown[0] == total:
            meter.stop()

    def tell(carry: Carry, done: jax.Array) -> Carry:
        # Without the barrier nothing keeps the call from running before the steps.
        carry, done = jax.lax.optimization_barrier((carry, done))
        host_callback(report, done, name=f"progress of {label}")
        return carry

    return tell
