"""The guide's tools: what a step costs (compiling, running, memory), and names as
hashable static arguments.
"""

import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import jax

from jaxrig.memory import device_memory
from jaxrig.timing import compare


def measure_compilation_speedup(
    jax_train_step: Callable[..., Any], *args: Any
) -> tuple[float, Any, Any]:
    """Return the seconds of the first call over those of the second, and both results.

    The ratio says what compiling costs in runs. It is not a speed-up over anything that
    does the same work: `benchmark_sustained_performance` measures that.
    """
    results, seconds = [], []
    for _ in range(2):
        start = perf_counter()
        results.append(jax.block_until_ready(jax_train_step(*args)))
        seconds.append(perf_counter() - start)
    return seconds[0] / seconds[1], results[0], results[1]


def benchmark_sustained_performance(
    jax_step: Callable[..., Any],
    regular_step: Callable[..., Any],
    args: Sequence[Any],
    n_runs: int = 10,
) -> float:
    """Return seconds of the regular step over those of the compiled one, both warm.

    Medians over runs in turns, so that a busy moment hits both alike.
    """
    both = {"jax": lambda: jax_step(*args), "regular": lambda: regular_step(*args)}
    times = compare(both, repeats=n_runs)
    return times["regular"].median / times["jax"].median


class _MemoryUse(NamedTuple):
    result: Any
    memory_increase: int
    peak_memory: int


class MemoryUse(_MemoryUse):
    """Result of a call and bytes of the Python heap, plus those on the device."""

    device_increase: int
    device_peak: int | None


def monitor_memory_usage(
    training_function: Callable[..., Any], *args: Any
) -> MemoryUse:
    """Run once and see what it takes: Python heap, and memory of the device."""
    before = device_memory()
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    start, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    try:
        result = jax.block_until_ready(training_function(*args))
        now, peak = tracemalloc.get_traced_memory()
    finally:
        if not tracing:
            tracemalloc.stop()
    after = device_memory()
    use = MemoryUse(result, now - start, peak)
    use.device_increase = after.in_use - before.in_use
    use.device_peak = after.peak
    return use


StaticArguments = tuple[tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]


def prepare_static_args(
    parent_sets: Sequence[Sequence[Iterable[str]]],
    variable_orders: Sequence[Sequence[str]],
    target_variables: Sequence[str],
) -> StaticArguments:
    """Return every set a sorted tuple, every list a tuple; the order of sets is kept.

    Our compiled steps need none of this: they take arrays. It serves functions of
    one's own that must have names as static arguments.
    """
    return (
        tuple(tuple(tuple(sorted(one)) for one in sets) for sets in parent_sets),
        tuple(tuple(order) for order in variable_orders),
        tuple(target_variables),
    )


def restore_static_args(
    hashable_args: StaticArguments,
) -> tuple[list[list[frozenset[str]]], list[list[str]], list[str]]:
    """Return what `prepare_static_args` was given, as lists and frozensets."""
    parent_sets, variable_orders, target_variables = hashable_args
    return (
        [[frozenset(one) for one in sets] for sets in parent_sets],
        [list(order) for order in variable_orders],
        list(target_variables),
    )
