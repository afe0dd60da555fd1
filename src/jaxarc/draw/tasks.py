"""Draw whole tasks as SVG, every cell of one picture equally large."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxarc.draw import svg
from jaxarc.draw.cells import Cells, read_cells
from jaxarc.draw.svg import Drawing

GAP = 16.0
MARGIN = 16.0
ARROW = 28.0
SMALLEST_CELL = 4.0  # pixels


class NamedPair(NamedTuple):
    """A pair of a task; the output is None where it is unknown or not to be shown."""

    name: str
    given: Cells
    wanted: Cells | None


def task_pairs(task: Any, tests: bool = True, answers: bool = True) -> list[NamedPair]:
    """Return the pairs of a JaxArcTask or a RawTask, demonstrations first."""
    if hasattr(task, "train"):
        found = {"Train": task.train, "Test": task.test if tests else ()}
    else:
        train, test = int(task.num_train_pairs), tests * int(task.num_test_pairs)
        pairs = [task.get_train_pair(i) for i in range(train)]
        pairs += [task.get_test_pair(i) for i in range(test)]
        grids = [(pair.input_grid, pair.output_grid) for pair in pairs]
        found = {"Train": grids[:train], "Test": grids[train:]}
    named = []
    for part, pairs in found.items():
        for number, (given, wanted) in enumerate(pairs, 1):
            shown = wanted if answers or part == "Train" else None
            answer = None if shown is None else read_cells(shown)
            # An answer that is all padding is not known.
            known = answer if answer and answer.height else None
            named.append(NamedPair(f"{part} {number}", read_cells(given), known))
    return named


def draw_task(
    task: Any,
    width: float = 30.0,
    height: float = 20.0,
    include_test: bool = True,
    label: str = "",
    scheme: str = "default",
    answers: bool = True,
) -> Drawing:
    """Draw a task: a column for each pair, inputs above outputs, tests on the right.

    Width and height are in units of 40 pixels. A test output is a "?" where it is not
    known, or without `answers`.
    """
    pairs = task_pairs(task, include_test, answers)
    if not pairs:
        raise ValueError("the task has no pairs to draw: num_train_pairs is 0")
    across = sum(max(p.given.width, p.wanted.width if p.wanted else 0) for p in pairs)
    tallest = [
        max(pair.given.height for pair in pairs),
        max(pair.wanted.height if pair.wanted else 0 for pair in pairs),
    ]
    fixed = 3 * svg.LINE_HEIGHT + ARROW + 40 + 4 * svg.FRAME + 2 * MARGIN
    room = width * svg.UNIT - len(pairs) * (GAP + 2 * svg.FRAME) - 2 * MARGIN
    fit = min(room / max(across, 1), (height * svg.UNIT - fixed) / max(sum(tallest), 1))
    side = min(max(fit, SMALLEST_CELL), svg.UNIT)
    areas = [max(rows, 1) * side + 2 * svg.FRAME for rows in tallest]
    columns = [_column(pair, side, areas, scheme) for pair in pairs]
    train = sum(pair.name.startswith("Train") for pair in pairs)
    whole = svg.beside(_divided(columns, train), GAP)
    parts = [svg.words(label, bold=True), whole] if label else [whole]
    return svg.padded(svg.stacked(parts, 8.0, label or "Task"), MARGIN)


def _column(
    pair: NamedPair,
    side: float,
    areas: Sequence[float],
    scheme: str,
) -> Drawing:
    name, given, wanted = pair
    above = svg.centered(svg.grid_tile(given, side, svg.INPUT, scheme), 0.0, areas[0])
    answer = svg.empty_tile("?", svg.OUTPUT)
    if wanted is not None:
        answer = svg.grid_tile(wanted, side, svg.OUTPUT, scheme)
    below = svg.centered(answer, 0.0, areas[1])
    parts = [
        svg.words(name, bold=True),
        svg.captioned(above, given.size),
        svg.arrow(90),
        svg.captioned(below, wanted.size if wanted else "unknown"),
    ]
    return svg.stacked(parts, 6.0, name)


def _divided(columns: Sequence[Drawing], train: int) -> list[Drawing]:
    """Put a dashed line between demonstrations and tests."""
    if not 0 < train < len(columns):
        return list(columns)
    height = max(column.height for column in columns)
    line = (
        f'<path d="M1 0v{height:.0f}" stroke="currentColor" stroke-opacity="0.4" '
        'stroke-width="2" stroke-dasharray="6 5"/>'
    )
    return [*columns[:train], Drawing(2.0, height, line), *columns[train:]]
