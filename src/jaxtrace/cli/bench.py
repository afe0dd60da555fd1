"""`jaxrig trace bench`: the tracking part of `jaxrig bench`."""

from pathlib import Path
from typing import Annotated

import typer


def run_bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names, e.g. grid or trace.grid; default: all."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the results to this file.")
    ] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="List the benchmarks and stop.")
    ] = False,
) -> None:
    """Measure particle tracking here; the same as `jaxrig bench trace`."""
    # The front door loads this module, so it is asked for only now.
    from jaxrig.cli import run_bench as run_all

    chosen = [f"trace.{name.removeprefix('trace.')}" for name in names or []]
    run_all(chosen or ["trace"], json, list_only)
