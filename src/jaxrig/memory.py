"""Bytes: of a pytree, of this process, of a device, of a compiled function."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from jaxrig.compile_guard import compile_once
from jaxrig.devices import Device
from jaxrig.dtypes import is_key

MIB = 1024**2


def tree_bytes(tree: PyTree) -> int:
    """Return bytes of the arrays in a tree, or of the arrays its shapes describe."""
    leaves = jax.tree.leaves(tree)
    return sum(_leaf_bytes(leaf) for leaf in leaves if hasattr(leaf, "dtype"))


def _leaf_bytes(leaf: Any) -> int:
    if is_key(leaf.dtype):
        leaf = jax.eval_shape(jax.random.key_data, leaf)
    return int(np.prod(leaf.shape, dtype=np.int64)) * np.dtype(leaf.dtype).itemsize


@dataclass(frozen=True)
class HostMemory:
    """Bytes of this process and of the machine."""

    resident: int
    peak: int
    total: int


def host_memory() -> HostMemory:
    """Return the bytes this process holds, held at most, and the machine has."""
    unit = 1 if sys.platform == "darwin" else 1024  # what getrusage counts in
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    page, statm = os.sysconf("SC_PAGE_SIZE"), Path("/proc/self/statm")
    if statm.exists():
        resident = int(statm.read_text().split()[1]) * page
    else:
        command = ["ps", "-o", "rss=", "-p", str(os.getpid())]
        found = subprocess.run(command, capture_output=True, check=True)
        resident = int(found.stdout) * 1024
    return HostMemory(resident, max(peak, resident), page * os.sysconf("SC_PHYS_PAGES"))


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes in use on one device; None where its allocator keeps no such count."""

    in_use: int
    peak: int | None
    limit: int | None
    source: str


def device_memory(device: Device | None = None) -> DeviceMemory:
    """Return the memory of a device: its allocator's counts, or live arrays."""
    chosen: Device = jax.local_devices()[0] if device is None else device
    counts = chosen.memory_stats()
    if counts is None:
        shards = [
            # By shape: touching the data of a shard would make another live array.
            jax.ShapeDtypeStruct(array.sharding.shard_shape(array.shape), array.dtype)
            for array in jax.live_arrays()
            if chosen in array.sharding.addressable_devices
        ]
        return DeviceMemory(tree_bytes(shards), None, None, "live arrays")
    return DeviceMemory(
        counts["bytes_in_use"],
        counts.get("peak_bytes_in_use"),
        counts.get("bytes_limit"),
        "allocator",
    )


@dataclass(frozen=True)
class CompiledMemory:
    """XLA's own account of the bytes that one run of a compiled function takes."""

    arguments: int
    outputs: int
    temporaries: int
    aliased: int  # outputs that reuse the buffers of donated arguments

    @property
    def total(self) -> int:
        """Bytes needed while the function runs."""
        return self.arguments + self.outputs + self.temporaries - self.aliased


def compiled_memory(
    function: Callable[..., Any], *args: Any, **kwargs: Any
) -> CompiledMemory:
    """Compile for these arguments, arrays or shapes, and read XLA's memory analysis.

    >>> compiled_memory(lambda x: x + 1, np.ones(1000, np.float32)).arguments
    4000
    """
    lower = getattr(function, "lower", None) or compile_once(function).lower
    analysis = lower(*args, **kwargs).compile().memory_analysis()
    if analysis is None:
        raise RuntimeError(f"no memory analysis on {jax.default_backend()}")
    return CompiledMemory(
        analysis.argument_size_in_bytes,
        analysis.output_size_in_bytes,
        analysis.temp_size_in_bytes,
        analysis.alias_size_in_bytes,
    )
