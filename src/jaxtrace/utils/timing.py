"""Seconds of a block or of a function, counted until the device is done."""

import time
from collections.abc import Callable
from typing import Any

import jax

from jaxrig.devices import devices_are_open
from jaxrig.timing import Timing, measure


class Timer:
    """Seconds of a `with` block, in `elapsed`; inside it, seconds so far.

    JAX works ahead of Python. The timer waits for every array that is alive, so
    neither work from before the block counts nor work from within it is missed.
    """

    def __init__(self, name: str = ""):
        self.name = name
        self._start: float | None = None
        self._seconds = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of the block."""
        if self._start is None:
            return self._seconds
        return time.perf_counter() - self._start

    def __enter__(self) -> "Timer":
        _wait()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        _wait()
        self._seconds = self.elapsed
        self._start = None

    def __repr__(self) -> str:
        return f"Timer({self.name!r}, {self.elapsed:.6f} s)"


def timeit(
    function: Callable[..., Any], *args: Any, repeats: int = 10, warmup: int = 1
) -> Timing:
    """Time a function: seconds to compile, then the seconds of every run."""
    return measure(function, *args, repeats=repeats, warmup=warmup)


def _wait() -> None:
    if devices_are_open():
        jax.block_until_ready(jax.live_arrays())
