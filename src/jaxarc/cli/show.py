"""`jaxrig arc show`: a task in the terminal and as a picture."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from jaxarc.cli.output import DatasetOption, PathOption, check_picture, write_svg
from jaxarc.draw import (
    draw_task,
    print_task,
)
from jaxarc.tasks import open_dataset
from jaxrig.console import make_console


def show(
    task: Annotated[str, typer.Argument(help="The id of a task, e.g. 00d62c1b.")],
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write a picture to this file.")
    ] = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Show the answers of the tests too.")
    ] = False,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Write the colors as digits too.")
    ] = False,
) -> None:
    """Show the demonstrations and tests of a task."""
    check_picture(svg)
    console = make_console()
    shown = open_dataset(dataset, path).get_task_by_id(task)
    console.print(Text(f"{task} ({dataset})", "bold"))
    print_task(shown, show_numbers=numbers, console=console, answers=answer)
    if svg is not None:
        label = f"{task} ({dataset})"
        write_svg(draw_task(shown, label=label, answers=answer), svg, console)
