"""Memory in use now: of this process, of each device, against the limit set."""

from dataclasses import dataclass
from typing import Any

import jax

from jaxrig.memory import MIB, DeviceMemory, HostMemory, device_memory, host_memory
from jaxtrace.config import memory_budget_bytes, working_device
from jaxtrace.utils.devices import devices_in_use


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
    """Memory of this process and of every device, and which device is in use."""
    return MemoryReport(
        host_memory(),
        {_name(device): device_memory(device) for device in devices_in_use()},
        _name(working_device()),
        memory_budget_bytes(),
    )


def memory_info() -> dict[str, float]:
    """Memory of this process and of the machine, in MiB."""
    host = host_memory()
    return {
        "rss_mb": host.resident / MIB,
        "peak_mb": host.peak / MIB,
        "total_mb": host.total / MIB,
        "percent": 100 * host.resident / host.total,
    }


def gpu_memory_info() -> list[dict[str, Any]]:
    """Memory of each accelerator in MiB; empty where there is none."""
    found = []
    for device in jax.local_devices():
        if device.platform != "cpu":
            memory = device_memory(device)
            limit = None if memory.limit is None else memory.limit / MIB
            peak = None if memory.peak is None else memory.peak / MIB
            row = {"used_mb": memory.in_use / MIB, "peak_mb": peak, "total_mb": limit}
            found.append({"device": _name(device), **row})
    return found


def _name(device: Any) -> str:
    return f"{device.platform}:{device.id} {device.device_kind}"
