"""`jaxrig arc bench`: the ARC part of `jaxrig bench`."""

from pathlib import Path
from typing import Annotated

import typer


def run_bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names, e.g. scan or arc.scan; default: all."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the results to this file.")
    ] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="List the benchmarks and stop.")
    ] = False,
) -> None:
    """Measure ARC environments here; the same as `jaxrig bench arc`."""
    # The front door loads this module, so it is asked for only now.
    from jaxrig.cli import run_bench as run_all

    chosen = [f"arc.{name.removeprefix('arc.')}" for name in names or []]
    run_all(chosen or ["arc"], json, list_only)
