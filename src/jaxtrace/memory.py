"""Memory in use, now and over time: of this process, of each device, of variables.

Calls that track memory may stay in production code: until tracking starts they do
nothing, and once it has they never wait for a device.
"""

import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import PyTree

from jaxrig.devices import Device, devices_are_open
from jaxrig.memory import (
    MIB,
    DeviceMemory,
    HostMemory,
    device_memory,
    host_memory,
    tree_bytes,
)
from jaxtrace.config import memory_budget_bytes, working_device


@dataclass(frozen=True)
class MemoryReport:
    """Where data is: bytes of this process and of each device, by name."""

    host: HostMemory
    devices: dict[str, DeviceMemory]
    working_device: str
    budget_bytes: int

    def __str__(self) -> str:
        host = f"host: {self.host.resident / MIB:,.0f} of {self.host.total / MIB:,.0f}"
        lines = [f"{host} MiB, at most {self.host.peak / MIB:,.0f} MiB so far"]
        for name, memory in self.devices.items():
            of = "" if memory.limit is None else f" of {memory.limit / MIB:,.0f}"
            used = f"{memory.in_use / MIB:,.1f}{of} MiB ({memory.source})"
            mark = ", working device" if name == self.working_device else ""
            lines.append(f"{name}: {used}{mark}")
        return "\n".join([*lines, f"limit set: {self.budget_bytes / MIB:,.0f} MiB"])


def memory_report() -> MemoryReport:
    """Return the memory of this process and every device, and the device in use."""
    name = lambda device: f"{device.platform}:{device.id} {device.device_kind}"
    return MemoryReport(
        host_memory(),
        {name(device): device_memory(device) for device in _devices()},
        name(working_device()),
        memory_budget_bytes(),
    )


def _devices() -> list[Device]:
    """Return the devices that JAX prefers, and the one in use if it is another."""
    devices, chosen = jax.local_devices(), working_device()
    return devices if chosen in devices else [*devices, chosen]


@dataclass(frozen=True)
class MemorySnapshot:
    """Bytes in use at one moment; `variable` and its bytes where one was named."""

    event: str
    seconds: float  # since tracking started
    host_bytes: int
    device_bytes: dict[str, int]
    variable: str | None = None
    variable_bytes: int | None = None


class MemoryTracker:
    """A record of memory at events; made by `start_memory_tracking`."""

    def __init__(self) -> None:
        self.snapshots: list[MemorySnapshot] = []
        self.operations: dict[str, Counter[str]] = {}
        self._begin = time.perf_counter()
        self.snapshot("start")

    def snapshot(
        self, event: str, variable: str | None = None, data: PyTree = None
    ) -> MemorySnapshot:
        """Record memory in use now, and the bytes of `data` under its name."""
        used: dict[str, int] = {}
        if devices_are_open():
            for device in _devices():
                used[f"{device.platform}:{device.id}"] = device_memory(device).in_use
        taken = MemorySnapshot(
            event,
            time.perf_counter() - self._begin,
            host_memory().resident,
            used,
            variable,
            None if variable is None and data is None else tree_bytes(data),
        )
        self.snapshots.append(taken)
        return taken

    @contextmanager
    def operation(self, name: str) -> Generator[None, None, None]:
        """Record memory before and after a block, failed or not."""
        before = self.snapshot(f"{name}: begin")
        try:
            yield
        finally:
            after = self.snapshot(f"{name}: end")
            used = [sum(taken.device_bytes.values()) for taken in (before, after)]
            growth: dict[str, Any] = {
                "calls": 1,
                "seconds": after.seconds - before.seconds,
                "host_growth_bytes": after.host_bytes - before.host_bytes,
                "device_growth_bytes": used[1] - used[0],
            }
            self.operations.setdefault(name, Counter()).update(growth)

    def summary(self) -> dict[str, Any]:
        """Return peak bytes, and the totals of each operation and variable."""
        devices: dict[str, int] = {}
        for taken in self.snapshots:
            for name, used in taken.device_bytes.items():
                devices[name] = max(used, devices.get(name, 0))
        return {
            "peak_host_bytes": host_memory().peak,
            "peak_device_bytes": devices,
            "operations": {name: dict(o) for name, o in self.operations.items()},
            "variables": {
                taken.variable: taken.variable_bytes
                for taken in self.snapshots
                if taken.variable is not None
            },
        }


_running: list[MemoryTracker] = []  # the tracker in use, if any


def start_memory_tracking() -> MemoryTracker:
    """Start tracking memory and return the record; an earlier one ends."""
    _running[:] = [MemoryTracker()]
    return _running[0]


def stop_memory_tracking() -> None:
    """Stop tracking memory."""
    _running.clear()


def track_memory(
    event: str, variable_name: str | None = None, data: PyTree = None
) -> None:
    """Record memory in use at an event, and the bytes of a named tree of arrays."""
    if _running:
        _running[0].snapshot(event, variable_name, data)


@contextmanager
def track_operation_memory(operation_name: str) -> Generator[None, None, None]:
    """Record memory before and after a block, or around a function as a decorator.

    >>> with track_operation_memory("load"):
    ...     data = list(range(10))
    """
    if not _running:
        yield
        return
    with _running[0].operation(operation_name):
        yield
