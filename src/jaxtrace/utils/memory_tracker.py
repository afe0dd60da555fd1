"""A record of memory over time: events, variables and operations."""

import json
import os
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from jaxtyping import PyTree
from rich.console import Console
from rich.table import Table

from jaxrig.atomic import atomic_write
from jaxrig.devices import devices_are_open
from jaxrig.memory import MIB, device_memory, host_memory, tree_bytes
from jaxtrace.utils.devices import devices_in_use


@dataclass(frozen=True)
class MemorySnapshot:
    """Bytes in use at one moment; `variable` and its bytes where one was named."""

    event: str
    seconds: float  # since the tracker began
    host_bytes: int
    device_bytes: dict[str, int]
    variable: str | None = None
    variable_bytes: int | None = None
    stack: tuple[str, ...] = ()


@dataclass
class OperationTotals:
    """All runs of one operation: how often, how long, what memory they added."""

    calls: int = 0
    seconds: float = 0.0
    host_growth_bytes: int = 0
    device_growth_bytes: int = 0


@dataclass
class MemoryTotals:
    """The latest and the highest bytes seen, of the process and of each device."""

    host: int = 0
    host_peak: int = 0
    devices: dict[str, int] = field(default_factory=dict)
    device_peaks: dict[str, int] = field(default_factory=dict)


class GPUMemoryTracker:
    """Records memory at events, without waiting for the device.

    Every snapshot is kept and, with a `log_file`, written as one line of JSON; with
    `enable_detailed_tracking=False` only totals are kept. `overhead_seconds` is what
    the tracker itself has cost.
    """

    def __init__(
        self,
        log_file: str | os.PathLike[str] | None = None,
        enable_detailed_tracking: bool = True,
        track_stack_traces: bool = False,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.snapshots: list[MemorySnapshot] = []
        self.operations: dict[str, OperationTotals] = {}
        self.variables: dict[str, int] = {}
        self.overhead_seconds = 0.0
        self._detailed = enable_detailed_tracking
        self._stacks = track_stack_traces
        self._clock = clock
        self._begin = clock()
        self._totals = MemoryTotals()
        self._log = None if log_file is None else open(log_file, "w", buffering=1)  # noqa: SIM115
        if self._log is not None:
            weakref.finalize(self, self._log.close)
        self.set_baseline()

    def create_snapshot(
        self, event: str, variable_name: str | None = None, data: PyTree = None
    ) -> MemorySnapshot:
        """Record memory in use now, and the bytes of `data` under its name."""
        begin = self._clock()
        devices = self._read_devices()
        host = host_memory()
        totals = self._totals
        totals.host, totals.host_peak = host.resident, host.peak
        totals.devices = devices
        size = None if variable_name is None and data is None else tree_bytes(data)
        if variable_name is not None and size is not None:
            self.variables[variable_name] = size
        snapshot = MemorySnapshot(
            event,
            begin - self._begin,
            host.resident,
            devices,
            variable_name,
            size,
            _stack() if self._stacks else (),
        )
        if self._detailed:
            self.snapshots.append(snapshot)
            self._write(asdict(snapshot))
        self.overhead_seconds += self._clock() - begin
        return snapshot

    def track_variable(self, name: str, data: PyTree) -> int:
        """Record the bytes of a tree of arrays under a name."""
        self.create_snapshot("variable", name, data)
        return self.variables[name]

    @contextmanager
    def track_operation(self, name: str) -> Iterator[None]:
        """Record memory before and after a block, failed or not."""
        before = self.create_snapshot(f"{name}: begin")
        try:
            yield
        finally:
            after = self.create_snapshot(f"{name}: end")
            totals = self.operations.setdefault(name, OperationTotals())
            totals.calls += 1
            totals.seconds += after.seconds - before.seconds
            totals.host_growth_bytes += after.host_bytes - before.host_bytes
            totals.device_growth_bytes += sum(after.device_bytes.values()) - sum(
                before.device_bytes.values()
            )

    def set_baseline(self) -> None:
        """Count growth from here."""
        self._baseline = self.create_snapshot("baseline")

    def get_memory_summary(self) -> dict[str, Any]:
        """Current, peak and baseline bytes, and the totals of each operation."""
        totals = self._totals
        return {
            "current": {"host": totals.host, "devices": dict(totals.devices)},
            "peak": {"host": totals.host_peak, "devices": dict(totals.device_peaks)},
            "baseline": {
                "host": self._baseline.host_bytes,
                "devices": dict(self._baseline.device_bytes),
            },
            "operations": {name: asdict(o) for name, o in self.operations.items()},
            "variables": dict(self.variables),
            "overhead_seconds": self.overhead_seconds,
        }

    def print_memory_report(self, console: Console | None = None) -> None:
        """Print current and peak memory and the operations as a table."""
        totals = self._totals
        table = Table("", "current MiB", "peak MiB", title="Memory")
        table.add_row("host", _mib(totals.host), _mib(totals.host_peak))
        for name, used in totals.devices.items():
            table.add_row(name, _mib(used), _mib(totals.device_peaks[name]))
        for name, done in self.operations.items():
            growth = _mib(done.host_growth_bytes + done.device_growth_bytes)
            table.add_row(f"{name}: {done.calls} calls", f"grew by {growth}", "")
        (Console() if console is None else console).print(table)

    def save_detailed_report(self, path: str | os.PathLike[str]) -> None:
        """Write the summary and every snapshot kept as one JSON file."""
        kept = [asdict(snapshot) for snapshot in self.snapshots]
        report = {"summary": self.get_memory_summary(), "snapshots": kept}
        with atomic_write(path) as file:
            file.write(json.dumps(report, indent=1).encode())

    def close(self) -> None:
        """Close the log file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _read_devices(self) -> dict[str, int]:
        if not devices_are_open():
            return {}
        used = {}
        for device in devices_in_use():
            memory = device_memory(device)
            name = f"{device.platform}:{device.id}"
            used[name] = memory.in_use
            peaks = self._totals.device_peaks
            peaks[name] = max(peaks.get(name, 0), memory.peak or 0, memory.in_use)
        return used

    def _write(self, record: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.write(json.dumps(record) + "\n")


def _stack() -> tuple[str, ...]:
    """Where the snapshot was asked for, without the frames of this file."""
    frames = [f for f in traceback.extract_stack() if f.filename != __file__]
    return tuple(f"{f.filename}:{f.lineno} {f.name}" for f in frames)


def _mib(count: int) -> str:
    return f"{count / MIB:,.1f}"
