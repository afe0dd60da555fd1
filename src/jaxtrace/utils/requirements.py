"""What is installed, what a kind of work needs, and how to get the rest."""

import importlib.util

import jax
from rich.console import Console
from rich.table import Table

from jaxrig.machine import install_command

MODULES = {  # module: the extra that brings it, "" for the core
    "numpy": "",
    "scipy": "",
    "jax": "",
    "vtk": "trace",
    "h5py": "trace",
    "xarray": "trace",
    "h5netcdf": "trace",
    "zarr": "trace",
    "matplotlib": "viz",
    "plotly": "viz",
    "imageio": "viz",
    "imageio_ffmpeg": "viz",
}
WORKFLOWS = {
    "basic": ("numpy", "scipy", "jax", "matplotlib"),
    "advanced": ("numpy", "scipy", "jax", "matplotlib", "vtk", "h5py"),
    "full": tuple(MODULES),
}


def check_system_requirements(verbose: bool = True) -> dict[str, bool]:
    """Which packages are installed, and whether JAX has an accelerator ("gpu").

    Prints them as a table when verbose.
    """
    found = _installed() | {"gpu": jax.default_backend() != "cpu"}
    if verbose:
        table = Table(title="jaxtrace", title_justify="left", show_header=False)
        for name, there in found.items():
            table.add_row(name, "yes" if there else "no")
        console = Console()
        console.print(table)
        for command in suggest_installation_commands():
            console.print(command, markup=False)
    return found


def check_requirements_for_workflow(workflow_type: str) -> dict[str, bool]:
    """Which packages of a "basic", "advanced" or "full" workflow are installed."""
    if workflow_type not in WORKFLOWS:
        raise ValueError(
            f"workflow {workflow_type!r} is not one of: {', '.join(WORKFLOWS)}"
        )
    found = _installed()
    return {name: found[name] for name in WORKFLOWS[workflow_type]}


def suggest_installation_commands() -> list[str]:
    """The commands that install what is missing; empty when nothing is."""
    missing = {MODULES[name] for name, there in _installed().items() if not there}
    return [install_command(extra) for extra in sorted(missing)]


def _installed() -> dict[str, bool]:
    return {name: importlib.util.find_spec(name) is not None for name in MODULES}
