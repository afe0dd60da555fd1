"""Seconds, measured honestly: compiling apart from running, always until the device
is done, and per CPU second too, since wall time on shared machines wanders.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxrig.compile_cache import record_compilations
from jaxrig.settings import whole


@dataclass(frozen=True)
class Timing:
    """Seconds of one function over several runs, after it was compiled."""

    compile_seconds: float
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median wall seconds of a run."""
        return float(np.median(self.seconds))

    @property
    def p95(self) -> float:
        """95th percentile of the wall seconds of a run."""
        return float(np.percentile(self.seconds, 95))

    @property
    def spread(self) -> float:
        """Interquartile range over median: how far to trust the median."""
        low, high = np.percentile(self.seconds, [25, 75])
        return float((high - low) / self.median) if self.median else 0.0

    def per_second(self, items: float) -> float:
        """Return items per wall second when one run handles `items`."""
        return items / self.median

    def per_cpu_second(self, items: float) -> float:
        """Return items per second of CPU time, over all threads of the process."""
        return items / max(float(np.median(self.cpu_seconds)), 1e-9)


def _run(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return result, wall and CPU seconds of one run; wait for the device."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(function())
    return result, time.perf_counter() - wall, time.process_time() - cpu


def compare(
    functions: Mapping[str, Callable[[], Any]], *, repeats: int = 10, warmup: int = 1
) -> dict[str, Timing]:
    """Time several functions in turns, so that a busy moment hits them alike.

    Every second round runs in reverse order. Calls made before timing: one that
    compiles, then `warmup` more.
    """
    whole()(repeats, "repeats")
    whole(at_least=0)(warmup, "warmup")
    compile_seconds = {}
    for name, function in functions.items():
        with record_compilations() as log:
            _run(function)
        compile_seconds[name] = log.seconds
        for _ in range(warmup):
            _run(function)
    # In turns and back again: a clock that throttles or a neighbor that wakes up during
    # the measurement then slows all functions alike.
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    names = list(functions)
    for repeat in range(repeats):
        for name in names if repeat % 2 == 0 else reversed(names):
            runs[name].append(_run(functions[name])[1:])
    return {
        name: Timing(compile_seconds[name], *map(tuple, zip(*pairs, strict=True)))
        for name, pairs in runs.items()
    }


def measure(
    function: Callable[..., Any], *args: Any, repeats: int = 10, warmup: int = 1
) -> Timing:
    """Time one function: compile seconds of the first call, then every later run."""
    timed = {"function": lambda: function(*args)}
    return compare(timed, repeats=repeats, warmup=warmup)["function"]


def time_call(
    function: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[Any, float, float]:
    """Return the result of one call, the seconds it ran, and those it compiled."""
    with record_compilations() as log:
        result, seconds, _ = _run(lambda: function(*args, **kwargs))
    return result, max(seconds - log.seconds, 0.0), log.seconds
