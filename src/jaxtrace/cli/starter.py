"""`jaxrig trace new`: a case to start from, with every key explained."""

from pathlib import Path
from typing import Annotated

import typer

from jaxrig.atomic import atomic_write
from jaxrig.console import check_writable, make_console, say
from jaxtrace.workflow.starter import starter


def write_starter(
    case: Annotated[Path, typer.Argument(help="File to write, e.g. case.toml.")],
    data: Annotated[
        str, typer.Option("--data", help="Files to track in, e.g. 'flow/*.vtu'.")
    ] = "",
) -> None:
    """Write a commented case: for files if given, else for an analytic flow."""
    check_writable(case)
    if case.exists():
        raise typer.BadParameter(f"{case} exists: give another name or remove it")
    with atomic_write(case) as file:
        file.write(starter(data or None).encode())
    console = make_console()
    say(console, f"wrote {case}")
    say(console, f"next: jaxrig trace run {case}")
