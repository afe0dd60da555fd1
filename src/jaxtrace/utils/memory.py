"""Memory tracking that may stay in the code: until initialized it does nothing."""

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

from jaxtyping import PyTree

from jaxrig.devices import set_accelerator_memory
from jaxtrace.utils.memory_tracker import GPUMemoryTracker

P = ParamSpec("P")
Result = TypeVar("Result")

_running: list[GPUMemoryTracker] = []  # the tracker in use, if any


def initialize_memory_tracking(
    log_file: str | os.PathLike[str] | None = None,
    enable_detailed_tracking: bool = True,
    track_stack_traces: bool = False,
) -> GPUMemoryTracker:
    """Start tracking memory; a tracker started earlier is closed."""
    tracker = GPUMemoryTracker(log_file, enable_detailed_tracking, track_stack_traces)
    stop_memory_tracking()
    _running.append(tracker)
    return tracker


def stop_memory_tracking() -> None:
    """Stop tracking, and close the log."""
    while _running:
        _running.pop().close()


def get_memory_tracker() -> GPUMemoryTracker | None:
    """The tracker in use, None before tracking is initialized."""
    return _running[0] if _running else None


def track_memory(
    event: str, variable_name: str | None = None, data: PyTree = None
) -> None:
    """Record memory in use at an event."""
    if _running:
        _running[0].create_snapshot(event, variable_name, data)


def track_variable_memory(variable_name: str, data: PyTree) -> None:
    """Record the bytes of a tree of arrays."""
    if _running:
        _running[0].track_variable(variable_name, data)


def track_operation_memory(operation_name: str) -> AbstractContextManager[None]:
    """Record memory before and after a block.

    >>> with track_operation_memory("load"):
    ...     data = list(range(10))
    """
    if _running:
        return _running[0].track_operation(operation_name)
    return nullcontext()


def memory_tracked(name: str | Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Record memory around every call of a function, bare or with a name given."""
    if callable(name):
        return _tracked(name, name.__name__)
    return lambda function: _tracked(function, name or function.__name__)


def _tracked(function: Callable[P, Result], name: str) -> Callable[P, Result]:
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        with track_operation_memory(name):
            return function(*args, **kwargs)

    return call


def configure_memory_optimization(
    preallocate: bool = False, mem_fraction: float | None = None
) -> None:
    """Have JAX take accelerator memory as needed; before it opens a device."""
    set_accelerator_memory(preallocate=preallocate, fraction=mem_fraction)
