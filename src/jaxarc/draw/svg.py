"""Draw grids and tasks as SVG, put drawings side by side, and save them as files."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike

from jaxarc.draw.cells import (
    PADDING,
    Cells,
    GridLike,
    NamedPair,
    cell_color,
    read_cells,
    task_pairs,
)
from jaxrig.atomic import write_file
from jaxrig.report.axes import document, label, pixel, text_width

UNIT = 40.0  # pixels per unit of the documented sizes
TEXT_SIZE = 15
LINE_HEIGHT = 22
INK = "#1b1f24"
NEUTRAL, INPUT, OUTPUT = "#7d8590", "#2f81f7", "#2da44e"  # borders
FRAME = 2.0  # width of a border
GAP = 16.0  # between the pairs of a task, and around them
SMALLEST_CELL = 4.0
ARROW = 28.0  # side of the square that an arrow takes
DARK, LIGHT = "#101010", "#ffffff"  # drawn together they show on every color


@dataclass(frozen=True)
class Drawing:
    """A picture in pixels. Text takes the color of the page it is shown on."""

    width: float
    height: float
    body: str
    title: str = "Drawing"

    def as_svg(self, background: str = "") -> str:
        """Return an SVG document; on a background of its own, with dark text."""
        if not background:
            return document(self.width, self.height, self.title, "", [self.body])
        sheet = f'<rect width="100%" height="100%" fill="{background}"/>'
        body = [sheet, self.body]
        text = document(self.width, self.height, self.title, "", body)
        return text.replace('"currentColor"', f'"{INK}"')

    def as_group(self, x: float = 0.0, y: float = 0.0) -> str:
        """Return an SVG group, to be part of a larger picture."""
        return f'<g transform="translate({pixel(x)} {pixel(y)})">{self.body}</g>'

    def _repr_svg_(self) -> str:
        return self.as_svg()


def beside(parts: Sequence[Drawing], gap: float = 0.0, title: str = "") -> Drawing:
    """Put pictures in a row, centered on one line."""
    height = max(part.height for part in parts)
    x, body = 0.0, []
    for part in parts:
        body.append(part.as_group(x, (height - part.height) / 2))
        x += part.width + gap
    return Drawing(x - gap, height, "\n".join(body), title or parts[0].title)


def stacked(parts: Sequence[Drawing], gap: float = 0.0, title: str = "") -> Drawing:
    """Put pictures in a column, centered on one line."""
    width = max(part.width for part in parts)
    y, body = 0.0, []
    for part in parts:
        body.append(part.as_group((width - part.width) / 2, y))
        y += part.height + gap
    return Drawing(width, y - gap, "\n".join(body), title or parts[0].title)


def padded(part: Drawing, margin: float) -> Drawing:
    """Add a margin around a picture."""
    width, height = part.width + 2 * margin, part.height + 2 * margin
    return Drawing(width, height, part.as_group(margin, margin), part.title)


def centered(part: Drawing, width: float, height: float) -> Drawing:
    """Put a picture in the middle of an area at least as large as itself."""
    width, height = max(width, part.width), max(height, part.height)
    at = (width - part.width) / 2, (height - part.height) / 2
    return Drawing(width, height, part.as_group(*at), part.title)


def words(text: str, bold: bool = False) -> Drawing:
    """Draw a line of text."""
    width = text_width(text, TEXT_SIZE)
    weight = ' font-weight="600"' if bold else ""
    extra = f' font-size="{TEXT_SIZE}"{weight}'
    body = label(width / 2, LINE_HEIGHT / 2, text, "middle", extra)
    return Drawing(width, LINE_HEIGHT, body, text)


def arrow(turn: int = 0) -> Drawing:
    """Draw an arrow to the right, turned clockwise by `turn` degrees."""
    body = (
        f'<path transform="rotate({turn} 14 14)" d="M2 14h22m-8-8l8 8-8 8" fill="none" '
        'stroke="currentColor" stroke-width="2.5" stroke-opacity="0.7"/>'
    )
    return Drawing(ARROW, ARROW, body, "arrow")


def save_drawing(drawing: Drawing, filename: str | os.PathLike[str]) -> Path:
    """Write a picture on white, as svg, png or pdf by the suffix of the name.

    Missing folders are created; png and pdf need the package `cairosvg`.
    """
    path = Path(filename)
    kind = path.suffix.lower()
    if kind not in (".svg", ".png", ".pdf"):
        raise ValueError(f"{path.name!r} ends in {kind!r}: use .svg, .png or .pdf")
    content = drawing.as_svg("#ffffff").encode()
    if kind != ".svg":
        try:
            cairosvg = importlib.import_module("cairosvg")
        except ImportError as error:
            raise ImportError(
                f"{kind[1:]} files need cairosvg: pip install cairosvg, or save as .svg"
            ) from error
        content = getattr(cairosvg, f"svg2{kind[1:]}")(bytestring=content)
    return write_file(path, content)


def grid_tile(
    cells: Cells,
    side: float,
    border: str = NEUTRAL,
    scheme: str = "default",
    selection: ArrayLike | None = None,
    changed: ArrayLike | None = None,
) -> Drawing:
    """Draw cells as squares of `side` pixels, selection outlined, changes ringed."""
    if cells.height == 0:
        return empty_tile("empty", border)
    width, height = cells.width * side, cells.height * side
    ringed = _boxes(cells.crop(changed), side, 0.2 * side)
    body = [
        *_squares(cells, side, scheme),
        _lines(cells, side),
        _dots(cells, side),
        _two_tone("changed", ringed, max(side / 20, 1.0), ""),
        _outline(cells.crop(selection), side),
    ]
    inside = Drawing(width, height, "\n".join(filter(None, body)), f"Grid {cells.size}")
    return framed(inside, border)


def framed(inside: Drawing, border: str, dash: str = "") -> Drawing:
    """Put a picture in a border of this color."""
    part = padded(inside, FRAME)
    width, height = part.width - FRAME, part.height - FRAME
    frame = (
        f'<rect x="{FRAME / 2}" y="{FRAME / 2}" width="{pixel(width)}" '
        f'height="{pixel(height)}" fill="none" stroke="{border}" '
        f'stroke-width="{FRAME}"{dash}/>'
    )
    return Drawing(part.width, part.height, part.body + frame, part.title)


def empty_tile(text: str, border: str = NEUTRAL) -> Drawing:
    """Draw a dashed box with a word in it, where there is no grid to draw."""
    words_in_box = label(1.5 * UNIT / 2, UNIT / 2, text, "middle", ' font-size="13"')
    inside = Drawing(1.5 * UNIT, UNIT, words_in_box, text)
    return framed(inside, border, ' stroke-dasharray="5 4"')


def numbered(tile: Drawing, cells: Cells, side: float) -> Drawing:
    """Add the numbers of columns above a tile and of rows on its left."""
    size = min(12.0, 0.55 * side)
    margin, extra = 2 * size, f' font-size="{pixel(size)}" data-mark="number"'
    middle = lambda index: margin + FRAME + (index + 0.5) * side
    columns = [
        label(middle(c), size, str(cells.left + c), "middle", extra)
        for c in range(cells.width)
    ]
    rows = [
        label(size, middle(r), str(cells.top + r), "middle", extra)
        for r in range(cells.height)
    ]
    body = "".join([tile.as_group(margin, margin), *columns, *rows])
    # As much room on the right, so that captions stay below the middle of the grid.
    return Drawing(tile.width + 2 * margin, tile.height + margin, body, tile.title)


def fit_side(cells: Cells, width: float, height: float) -> float:
    """Return the side of a cell with which the grid just fits into an area."""
    return min(width / max(cells.width, 1), height / max(cells.height, 1))


def captioned(tile: Drawing, text: str) -> Drawing:
    """Put a line of text below a picture."""
    return stacked([tile, words(text)], 4.0, text) if text else tile


def draw_grid(
    grid: GridLike,
    mask: ArrayLike | None = None,
    max_width: float = 10.0,
    max_height: float = 10.0,
    label: str = "",
    show_size: bool = True,
    scheme: str = "default",
    selection: ArrayLike | None = None,
    changed: ArrayLike | None = None,
) -> Drawing:
    """Draw a grid, cropped to its real cells, with its label and size below.

    Lengths are in units of 40 pixels. `selection` and `changed` are masks over the
    uncropped grid.
    """
    cells = read_cells(grid, mask)
    side = fit_side(cells, max_width * UNIT, max_height * UNIT)
    tile = grid_tile(cells, side, NEUTRAL, scheme, selection, changed)
    caption = f"{label} ({cells.size})" if label else cells.size
    return padded(captioned(tile, caption if show_size else label), UNIT / 2)


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
    fixed = 3 * LINE_HEIGHT + ARROW + 40 + 4 * FRAME + 2 * GAP
    room = width * UNIT - len(pairs) * (GAP + 2 * FRAME) - 2 * GAP
    fit = min(room / max(across, 1), (height * UNIT - fixed) / max(sum(tallest), 1))
    side = min(max(fit, SMALLEST_CELL), UNIT)
    areas = [max(rows, 1) * side + 2 * FRAME for rows in tallest]
    columns = [_column(pair, side, areas, scheme) for pair in pairs]
    train = sum(pair.name.startswith("Train") for pair in pairs)
    if 0 < train < len(columns):  # a dashed line before the tests
        tall = max(column.height for column in columns)
        line = (
            f'<path d="M1 0v{tall:.0f}" stroke="currentColor" stroke-opacity="0.4" '
            'stroke-width="2" stroke-dasharray="6 5"/>'
        )
        columns.insert(train, Drawing(2.0, tall, line))
    whole = beside(columns, GAP)
    parts = [words(label, bold=True), whole] if label else [whole]
    return padded(stacked(parts, 8.0, label or "Task"), GAP)


def _column(
    pair: NamedPair,
    side: float,
    areas: Sequence[float],
    scheme: str,
) -> Drawing:
    name, given, wanted = pair
    above = centered(grid_tile(given, side, INPUT, scheme), 0.0, areas[0])
    answer = empty_tile("?", OUTPUT)
    if wanted is not None:
        answer = grid_tile(wanted, side, OUTPUT, scheme)
    below = centered(answer, 0.0, areas[1])
    parts = [
        words(name, bold=True),
        captioned(above, given.size),
        arrow(90),
        captioned(below, wanted.size if wanted else "unknown"),
    ]
    return stacked(parts, 6.0, name)


def _boxes(marked: Bool[np.ndarray, "h w"], side: float, inset: float = 0.0) -> str:
    """Return the path around every marked cell, or inside of it."""
    inner = pixel(side - 2 * inset)
    return "".join(
        f"M{pixel(c * side + inset)} {pixel(r * side + inset)}"
        f"h{inner}v{inner}h-{inner}z"
        for r, c in np.argwhere(marked).tolist()
    )


def _squares(cells: Cells, side: float, scheme: str) -> list[str]:
    """Draw one path per color: many times smaller than an element per cell."""
    return [
        f'<path data-value="{value}" '
        f'fill="{cell_color(value if value >= 0 else PADDING, scheme)}" '
        f'd="{_boxes(cells.values == value, side)}"/>'
        for value in np.unique(cells.values).tolist()
    ]


def _lines(cells: Cells, side: float) -> str:
    across = pixel(cells.width * side)
    down = pixel(cells.height * side)
    rows = [f"M0 {pixel(r * side)}h{across}" for r in range(1, cells.height)]
    columns = [f"M{pixel(c * side)} 0v{down}" for c in range(1, cells.width)]
    steps = "".join(rows + columns)
    return steps and f'<path d="{steps}" stroke="#6e6e6e"/>'


def _dots(cells: Cells, side: float) -> str:
    """Draw a dot where a cell of the box is not part of the grid."""
    radius = pixel(side / 10)
    return "".join(
        f'<circle cx="{pixel((c + 0.5) * side)}" cy="{pixel((r + 0.5) * side)}" '
        f'r="{radius}" fill="#808080"/>'
        for r, c in np.argwhere(~cells.active).tolist()
    )


def _outline(selected: Bool[np.ndarray, "h w"], side: float) -> str:
    """Draw the edges between selected cells and the others."""
    room = np.pad(selected, 1)
    flat = np.argwhere(room[1:, 1:-1] != room[:-1, 1:-1]).tolist()
    upright = np.argwhere(room[1:-1, 1:] != room[1:-1, :-1]).tolist()
    steps = [f"M{pixel(c * side)} {pixel(r * side)}h{pixel(side)}" for r, c in flat]
    steps += [f"M{pixel(c * side)} {pixel(r * side)}v{pixel(side)}" for r, c in upright]
    dash = pixel(side / 5)
    dashes = f' stroke-dasharray="{dash}"'
    return _two_tone("selection", "".join(steps), max(side / 12, 1.5), dashes)


def _two_tone(kind: str, steps: str, width: float, dashes: str) -> str:
    if not steps:
        return ""
    common = f'fill="none" stroke-linecap="square" d="{steps}"'
    return (
        f'<path data-mark="{kind}" {common} stroke="{DARK}" '
        f'stroke-width="{pixel(2.2 * width)}"/>'
        f'<path {common} stroke="{LIGHT}" stroke-width="{pixel(width)}"{dashes}/>'
    )
