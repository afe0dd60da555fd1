"""Seconds, measured honestly: compiling apart from running, always until the device
is done, and per CPU second too, since wall time on shared machines wanders.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxrig.compilation import record_compilations
from jaxrig.memory import MIB, host_memory


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
        """Items per wall second when one run handles `items`."""
        return items / self.median

    def per_cpu_second(self, items: float) -> float:
        """Items per second of CPU time, over all threads of the process."""
        return items / max(float(np.median(self.cpu_seconds)), 1e-9)


def _run(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, wall seconds and CPU seconds of one run, waiting for the device."""
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
    if repeats < 1 or warmup < 0:
        raise ValueError(f"repeats={repeats}, warmup={warmup}: need >= 1 and >= 0")
    compile_seconds = {}
    for name, function in functions.items():
        with record_compilations() as log:
            _run(function)
        compile_seconds[name] = log.seconds
        for _ in range(warmup):
            _run(function)
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


class PerformanceMonitor:
    """Times of steps, resets and batches of any environment, as they happen.

    Seconds spent compiling go to `metrics["jit_compilation_times"]` by function name,
    and a call that compiled is not among the timed ones. `metrics["memory_usage"]` is
    this process in MiB.
    """

    def __init__(
        self,
        step: Callable[..., Any] | None = None,
        reset: Callable[..., Any] | None = None,
        batch_step: Callable[..., Any] | None = None,
    ):
        self._functions = {"step": step, "reset": reset, "batch_step": batch_step}
        self.metrics: dict[str, Any] = {
            "step_times": [],
            "reset_times": [],
            "memory_usage": [],
            "throughput": [],
            "jit_compilation_times": {},
        }

    def time_function(
        self, function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> tuple[Any, float]:
        """The result of a call and the seconds it ran, compiling not counted."""
        with record_compilations() as log:
            result, seconds, _ = _run(lambda: function(*args, **kwargs))
        if log.compilations:
            name = getattr(function, "__name__", type(function).__name__)
            times = self.metrics["jit_compilation_times"]
            times[name] = times.get(name, 0.0) + log.seconds
        return result, max(seconds - log.seconds, 0.0)

    def monitor_step(self, *args: Any) -> Any:
        """Run and time one step."""
        return self._monitor("step", "step_times", lambda seconds: seconds, *args)

    def monitor_reset(self, *args: Any) -> Any:
        """Run and time one reset."""
        return self._monitor("reset", "reset_times", lambda seconds: seconds, *args)

    def monitor_batch_step(self, states: Any, *args: Any) -> Any:
        """Run and time one step of a batch; records environments per second."""
        arrays = [x for x in jax.tree.leaves(states) if hasattr(x, "shape")]
        count = arrays[0].shape[0]
        rate = lambda seconds: count / max(seconds, 1e-9)
        return self._monitor("batch_step", "throughput", rate, states, *args)

    def _monitor(
        self, role: str, metric: str, convert: Callable[[float], float], *args: Any
    ) -> Any:
        function, times = self._function(role), self.metrics["jit_compilation_times"]
        compiled = sum(times.values())
        result, seconds = self.time_function(function, *args)
        if sum(times.values()) == compiled:
            self.metrics[metric].append(convert(seconds))
        self.metrics["memory_usage"].append(host_memory().resident / MIB)
        return result

    def get_statistics(self) -> dict[str, float]:
        """Mean, spread and extremes of what was recorded; absent when nothing was."""
        statistics = {}
        for name, reductions in (
            ("step_time", ("mean", "std", "min", "max")),
            ("reset_time", ("mean", "std")),
            ("throughput", ("mean", "max")),
        ):
            values = self.metrics[name if name == "throughput" else f"{name}s"]
            if values:
                for reduction in reductions:
                    value = getattr(np, reduction)(values)
                    statistics[f"{name}_{reduction}"] = float(value)
        return statistics

    def print_report(self) -> None:
        """Write the statistics to standard output, times in milliseconds."""
        lines = ["Performance report"]
        for name, value in self.get_statistics().items():
            rate = name.startswith("throughput")
            shown = f"{value:,.0f} per second" if rate else f"{value * 1e3:.3f} ms"
            lines.append(f"  {name}: {shown}")
        for name, value in self.metrics["jit_compilation_times"].items():
            lines.append(f"  compiling {name}: {value:.2f} s")
        sys.stdout.write("\n".join(lines) + "\n")

    def _function(self, role: str) -> Callable[..., Any]:
        function = self._functions[role]
        if function is None:
            raise ValueError(
                f"give the monitor a {role}: PerformanceMonitor({role}=...)"
            )
        return function
