"""Pairs of grids and whole tasks as SVG, every cell of one picture equally large."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from jaxarc.types import JaxArcTask, TaskPair
from jaxarc.utils.visualization.cells import Cells, GridLike, read_cells
from jaxarc.utils.visualization.drawing import (
    LINE_HEIGHT,
    UNIT,
    Drawing,
    arrow,
    beside,
    centered,
    padded,
    stacked,
    words,
)
from jaxarc.utils.visualization.svg import (
    FRAME,
    INPUT,
    OUTPUT,
    captioned,
    empty_tile,
    grid_tile,
)

GAP = 16.0
MARGIN = 16.0
ARROW = 28.0


def draw_task_pair_svg(
    input_grid: GridLike | TaskPair,
    output_grid: GridLike | None = None,
    width: float = 15.0,
    height: float = 8.0,
    label: str = "",
    input_mask: ArrayLike | None = None,
    output_mask: ArrayLike | None = None,
    scheme: str = "default",
) -> Drawing:
    """What is given, an arrow, what is asked for; an unknown output is a "?".

    Width and height are in units of 40 pixels.
    """
    if isinstance(input_grid, TaskPair):
        input_grid, output_grid = input_grid.input_grid, input_grid.output_grid
    given = read_cells(input_grid, input_mask)
    wanted = None if output_grid is None else read_cells(output_grid, output_mask)
    across = given.width + (wanted.width if wanted else 0)
    down = max(given.height, wanted.height if wanted else 0)
    fixed = ARROW + 2 * GAP + 4 * FRAME + 2 * MARGIN
    side = _side(width * UNIT - fixed, across, height * UNIT - 60, down)
    row = beside(
        [
            captioned(grid_tile(given, side, INPUT, scheme), f"Input ({given.size})"),
            arrow(),
            captioned(_answer(wanted, side, scheme), _answer_caption(wanted)),
        ],
        GAP,
        label or "Task pair",
    )
    parts = [words(label, bold=True), row] if label else [row]
    return padded(stacked(parts, 6.0, label or "Task pair"), MARGIN)


def draw_parsed_task_data_svg(
    task: JaxArcTask,
    width: float = 30.0,
    height: float = 20.0,
    include_test: bool = True,
    label: str = "",
    scheme: str = "default",
) -> Drawing:
    """A whole task: a column for each pair, inputs above outputs, tests on the right.

    Width and height are in units of 40 pixels; a test output that the file does not
    give is a "?".
    """
    pairs = [
        (f"Train {i + 1}", _cells_of(task.get_train_pair(i)))
        for i in range(int(task.num_train_pairs))
    ] + [
        (f"Test {i + 1}", _cells_of(task.get_test_pair(i)))
        for i in range(int(task.num_test_pairs) if include_test else 0)
    ]
    if not pairs:
        raise ValueError("the task has no pairs to draw: num_train_pairs is 0")
    across = sum(max(given.width, wanted.width) for _, (given, wanted) in pairs)
    tallest = [max(pair[row].height for _, pair in pairs) for row in (0, 1)]
    fixed = 3 * LINE_HEIGHT + ARROW + 40 + 4 * FRAME + 2 * MARGIN
    room = width * UNIT - len(pairs) * (GAP + 2 * FRAME) - 2 * MARGIN
    side = _side(room, across, height * UNIT - fixed, sum(tallest))
    areas = [max(rows, 1) * side + 2 * FRAME for rows in tallest]
    columns = [_column(name, pair, side, areas, scheme) for name, pair in pairs]
    whole = beside(_divided(columns, int(task.num_train_pairs)), GAP)
    parts = [words(label, bold=True), whole] if label else [whole]
    return padded(stacked(parts, 8.0, label or "Task"), MARGIN)


def _column(
    name: str,
    pair: tuple[Cells, Cells],
    side: float,
    areas: Sequence[float],
    scheme: str,
) -> Drawing:
    given, wanted = pair
    above = centered(grid_tile(given, side, INPUT, scheme), 0.0, areas[0])
    below = centered(_answer(wanted, side, scheme), 0.0, areas[1])
    parts = [
        words(name, bold=True),
        captioned(above, given.size),
        arrow(90),
        captioned(below, wanted.size if wanted.height else "unknown"),
    ]
    return stacked(parts, 6.0, name)


def _divided(columns: Sequence[Drawing], train: int) -> list[Drawing]:
    """A dashed line between demonstrations and tests."""
    if not 0 < train < len(columns):
        return list(columns)
    height = max(column.height for column in columns)
    line = (
        f'<path d="M1 0v{height:.0f}" stroke="currentColor" stroke-opacity="0.4" '
        'stroke-width="2" stroke-dasharray="6 5"/>'
    )
    return [*columns[:train], Drawing(2.0, height, line), *columns[train:]]


def _cells_of(pair: TaskPair) -> tuple[Cells, Cells]:
    return read_cells(pair.input_grid), read_cells(pair.output_grid)


def _answer(wanted: Cells | None, side: float, scheme: str) -> Drawing:
    if wanted is None or wanted.height == 0:
        return empty_tile("?", OUTPUT)
    return grid_tile(wanted, side, OUTPUT, scheme)


def _answer_caption(wanted: Cells | None) -> str:
    known = wanted is not None and wanted.height > 0
    return f"Output ({wanted.size})" if wanted is not None and known else "Output"


def _side(width: float, columns: int, height: float, rows: int) -> float:
    """A cell as large as fits, between 4 and 40 pixels."""
    fit = min(width / max(columns, 1), height / max(rows, 1))
    return float(min(max(fit, 4.0), UNIT))
