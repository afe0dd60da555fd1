"""What the commands share: the console, files to write, and common options."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jaxarc.draw.svg import Drawing, save_drawing
from jaxrig.console import check_writable

PICTURES = (".svg", ".png", ".pdf")
UNBOUNDED = 1000  # columns, more than two grids take

DatasetOption = Annotated[
    str,
    typer.Option("--dataset", "-d", help="AGI1, AGI2, AGI12, Mini or Concept."),
]
PathOption = Annotated[
    str,
    typer.Option(
        "--path",
        help="Folder of the data set; needed for Mini and Concept "
        "(see `jaxrig arc download`).",
    ),
]


def count_steps(steps: int) -> str:
    """How many steps, in words."""
    return f"{steps} step" if steps == 1 else f"{steps} steps"


def check_picture(path: Path | None) -> None:
    """The same for a picture, whose name says its format."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{path.name} does not end in {', '.join(PICTURES)}")
    check_writable(path)


def write_svg(drawing: Drawing, path: Path, console: Console) -> None:
    """Save a picture and say where it is."""
    save_drawing(drawing, path)
    console.print(f"wrote {path}", markup=False, highlight=False)
