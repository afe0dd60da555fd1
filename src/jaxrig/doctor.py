"""A truthful page about this installation: what is there, what works, what to do."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from jaxrig.compilation import record_compilations
from jaxrig.machine import EXTRAS, describe_machine, missing_modules, package_versions
from jaxrig.memory import device_memory, host_memory

GIB = 1024**3


@dataclass(frozen=True)
class CompileCheck:
    """Whether a small program compiles and gives the right numbers here."""

    right: bool
    seconds: float
    device: str


def compile_check() -> CompileCheck:
    """Compile and run a matrix product, and compare it with NumPy."""
    rows = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    with record_compilations() as log:
        result = jax.jit(lambda x: jnp.tanh(x @ x.T / 8))(rows)
        found = np.asarray(result)
    # TF32 on recent cards keeps about three digits of a product's inputs.
    right = np.allclose(found, np.tanh(rows @ rows.T / 8), atol=5e-3)
    (device,) = result.devices()
    return CompileCheck(bool(right), log.seconds, f"{device.platform}:{device.id}")


def _versions_table() -> Table:
    table = Table(title="Versions", title_justify="left")
    table.add_column("package")
    table.add_column("version")
    for name, version in package_versions().items():
        table.add_row(name, version)
    return table


def _machine_table() -> Table:
    machine, host = describe_machine(), host_memory()
    table = Table(title="Machine", title_justify="left", show_header=False)
    table.add_row("processor", f"{machine['processor']}, {machine['cores']} cores")
    table.add_row("system", str(machine["system"]))
    table.add_row(
        "memory",
        f"{host.total / GIB:.1f} GiB, this process {host.resident / GIB:.2f} GiB",
    )
    for device in jax.local_devices():
        memory = device_memory(device)
        limit = "" if memory.limit is None else f" of {memory.limit / GIB:.1f} GiB"
        table.add_row(
            f"{device.platform}:{device.id}",
            f"{device.device_kind}, {memory.in_use / GIB:.2f} GiB in use{limit} "
            f"({memory.source})",
        )
    return table


def _extras_table() -> Table:
    table = Table(title="Extras", title_justify="left")
    table.add_column("extra")
    table.add_column("state")
    for extra in EXTRAS:
        missing = missing_modules(extra)
        remedy = f'missing {", ".join(missing)}: pip install -e ".[{extra}]"'
        table.add_row(extra, Text(remedy if missing else "installed"))
    return table


def examine(console: Console) -> bool:
    """Print the page; whether jaxrig can work here."""
    check = compile_check()
    verdict = "right" if check.right else "WRONG: do not trust results on this device"
    console.print(Group(_versions_table(), _machine_table(), _extras_table()))
    console.print(
        f"Compile check on {check.device}: {verdict}, compiled in {check.seconds:.2f} s"
    )
    if check.device.startswith("cpu"):
        console.print(
            "JAX uses the CPU. For an NVIDIA card: pip install -e '.[cuda]'",
            markup=False,
        )
    return check.right
