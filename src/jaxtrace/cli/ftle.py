"""`jaxrig trace ftle`: where a flow parts its particles."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from jaxrig.console import check_writable, make_console, say, warnings_as_lines
from jaxtrace.fields.analytic import FLOWS
from jaxtrace.workflow.case import Case, load_case
from jaxtrace.workflow.stretching import save_stretching, stretch
from jaxtrace.workflow.tables import Data, Flow, Output


def run_ftle(
    source: Annotated[
        str, typer.Argument(help="A case, files, or the name of an analytic flow.")
    ],
    start: Annotated[
        float | None, typer.Option("--t0", help="When particles start.")
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("-T", help="How long to follow them; below 0, back in time."),
    ] = None,
    resolution: Annotated[
        int | None, typer.Option("--resolution", help="Nodes along the longer axis.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write.")] = None,
) -> None:
    """Write the finite-time Lyapunov exponent over a plane, as arrays and a picture."""
    console = make_console()
    with warnings_as_lines(console):
        case = _case(source, out)
        given = {"t0": start, "T": duration, "resolution": resolution}
        changes = {name: value for name, value in given.items() if value is not None}
        case = replace(case, ftle=replace(case.ftle, **changes))
        check_writable(case.folder / "ftle.npz")
        found = stretch(case)
        for path in save_stretching(found, case.folder):
            say(console, f"wrote {path}")


def _case(source: str, out: Path | None) -> Case:
    if Path(source).suffix.lower() == ".toml":
        case = load_case(source)
        if out is None:
            return case
        return replace(case, output=replace(case.output, folder=str(out)))
    output = Output(folder=str(out or "out"))
    if source in FLOWS:
        return Case(flow=Flow(source), output=output)
    return Case(data=Data(source), output=output)
