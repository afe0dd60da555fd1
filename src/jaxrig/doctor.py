"""A truthful page about this installation: what is there, what works, what to do."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxrig.compile_cache import cache_folder, record_compilations
from jaxrig.machine import (
    EXTRAS,
    describe_machine,
    install_command,
    missing_modules,
    package_versions,
)
from jaxrig.memory import device_memory, host_memory
from jaxrig.systems import load_systems

GIB = 1024**3


def compile_check() -> tuple[bool, float, str]:
    """Compile and run a matrix product: is it right, the seconds, and the device."""
    rows = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    with record_compilations() as log:
        result = jax.jit(lambda x: jnp.tanh(x @ x.T / 8))(rows)
        found = np.asarray(result)
    # TF32 on recent cards keeps about three digits of a product's inputs.
    right = np.allclose(found, np.tanh(rows @ rows.T / 8), atol=5e-3)
    (device,) = result.devices()
    return bool(right), log.seconds, f"{device.platform}:{device.id}"


def _table(title: str, rows: list[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def _extra(name: str) -> str:
    missing = ", ".join(missing_modules(name))
    return f"missing {missing}: {install_command(name)}" if missing else "installed"


def _cache() -> tuple[str, str]:
    folder = Path(jax.config.values["jax_compilation_cache_dir"] or cache_folder())
    existing = next((p for p in (folder, *folder.parents) if p.exists()), folder)
    usable = existing.is_dir() and os.access(existing, os.W_OK)
    state = "" if usable else " (not writable: set JAXRIG_CACHE to another folder)"
    return "compile cache", f"{folder}{state}"


def _machine() -> list[tuple[str, str]]:
    machine, host = describe_machine(), host_memory()
    rows = [
        ("processor", f"{machine['processor']}, {machine['cores']} cores"),
        ("system", str(machine["system"])),
        (
            "memory",
            f"{host.total / GIB:.1f} GiB, this process {host.resident / GIB:.2f} GiB",
        ),
    ]
    for device in jax.local_devices():
        memory = device_memory(device)
        limit = "" if memory.limit is None else f" of {memory.limit / GIB:.1f} GiB"
        use = f"{memory.in_use / GIB:.2f} GiB in use{limit} ({memory.source})"
        rows.append((f"{device.platform}:{device.id}", f"{device.device_kind}, {use}"))
    return [*rows, _cache()]


def examine(console: Console) -> bool:
    """Print the page; whether jaxrig can work here."""
    console.print(_table("Versions", list(package_versions().items())))
    console.print(_table("Extras", [(extra, _extra(extra)) for extra in EXTRAS]))
    systems, problems = load_systems()
    found = [(system.name, system.title) for system in systems]
    console.print(_table("Systems", [*found, *problems.items()]))
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # what JAX raises without a device
        console.print(
            f"No device: {str(error) or 'JAX could not start a backend'}. "
            f"JAX_PLATFORMS is {os.environ.get('JAX_PLATFORMS')!r}. Unset it, or "
            f"install the platform it names (for cuda: {install_command('cuda')})",
            markup=False,
        )
        return False
    console.print(_table("Machine", _machine()))
    right, seconds, device = compile_check()
    verdict = "right" if right else "FAILED: results on this device are wrong"
    console.print(f"Compile check on {device}: {verdict}, compiled in {seconds:.2f} s")
    if device.startswith("cpu"):
        console.print(
            f"JAX uses the CPU. For an NVIDIA GPU: {install_command('cuda')}",
            markup=False,
        )
    return right
