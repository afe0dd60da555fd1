"""`jaxrig trace convert`: recorded paths and velocity series in other formats."""

from pathlib import Path
from typing import Annotated

import typer

from jaxrig.console import check_writable, make_console, say, warnings_as_lines
from jaxrig.progress import make_meter
from jaxtrace.workflow.conversion import convert


def convert_files(
    source: Annotated[
        str, typer.Argument(help="A store of paths (.zarr, .h5, .pvd) or velocities.")
    ],
    target: Annotated[
        Path,
        typer.Argument(help="Paths: .vtp, .pvd, .zarr, .h5; velocities: .pvd, .nc."),
    ],
) -> None:
    """Write paths or velocities in the format of another file's suffix."""
    console, meter = make_console(), make_meter()
    check_writable(target)
    total: list[int] = []

    def progress(done: int, of: int) -> None:
        if not total:
            meter.start("converting", of)
            total.append(of)
        meter.show(done)

    with warnings_as_lines(console):
        try:
            written = convert(source, target, progress)
        finally:
            meter.stop()
    for path in written:
        say(console, f"wrote {path}")
