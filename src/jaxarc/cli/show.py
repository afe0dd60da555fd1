"""`jaxrig arc show`: a task in the terminal and as a picture."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from jaxarc.cli.output import DatasetOption, PathOption, check_picture, write_svg
from jaxarc.tasks import open_dataset
from jaxarc.types import JaxArcTask
from jaxarc.utils.visualization import (
    draw_parsed_task_data_svg,
    visualize_parsed_task_data_rich,
    visualize_task_pair_rich,
)
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
    if answer:
        visualize_parsed_task_data_rich(shown, show_numbers=numbers, console=console)
    else:
        visualize_parsed_task_data_rich(
            shown, show_test=False, show_numbers=numbers, console=console
        )
        for index in range(int(shown.num_test_pairs)):
            given = shown.get_test_pair(index).input_grid
            title = f"Test {index + 1}"
            visualize_task_pair_rich(
                given, None, title, show_numbers=numbers, console=console
            )
    if svg is not None:
        label = f"{task} ({dataset})"
        pictured = shown if answer else without_answers(shown)
        write_svg(draw_parsed_task_data_svg(pictured, label=label), svg, console)


def without_answers(task: JaxArcTask) -> JaxArcTask:
    """The task with the outputs of its tests unknown."""
    hidden = task.true_test_output_masks & False
    return JaxArcTask(
        task.input_grids_examples,
        task.input_masks_examples,
        task.output_grids_examples,
        task.output_masks_examples,
        task.num_train_pairs,
        task.test_input_grids,
        task.test_input_masks,
        task.true_test_output_grids * 0 - 1,
        hidden,
        task.num_test_pairs,
        task_index=task.task_index,
    )
