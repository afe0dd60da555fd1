"""Grids and tasks in a notebook: a drawing as the last value of a cell shows itself."""

from numpy.typing import ArrayLike

from jaxarc.types import JaxArcTask, TaskPair
from jaxarc.utils.visualization.cells import GridLike
from jaxarc.utils.visualization.drawing import Drawing
from jaxarc.utils.visualization.svg import draw_grid_svg
from jaxarc.utils.visualization.tasks import (
    draw_parsed_task_data_svg,
    draw_task_pair_svg,
)


def display_grid(
    grid: GridLike,
    mask: ArrayLike | None = None,
    title: str = "",
    scheme: str = "default",
) -> Drawing:
    """A grid that a notebook shows."""
    return draw_grid_svg(grid, mask, 8.0, 8.0, label=title, scheme=scheme)


def display_task(
    task: JaxArcTask | TaskPair, title: str = "", scheme: str = "default"
) -> Drawing:
    """A task, or one pair of it, that a notebook shows."""
    if isinstance(task, TaskPair):
        return draw_task_pair_svg(task, label=title, scheme=scheme)
    return draw_parsed_task_data_svg(task, label=title, scheme=scheme)
