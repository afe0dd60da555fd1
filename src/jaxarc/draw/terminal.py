"""Print grids and tasks in a terminal: colored blocks, or digits without color."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from rich.align import Align
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from jaxarc.draw.cells import (
    Cells,
    GridLike,
    cell_color,
    ink_on,
    read_cells,
    task_pairs,
)
from jaxarc.ops.operations import COLORS

BORDERS = {"default": "bright_black", "input": "blue", "output": "green"}
WIDEST = 1000  # columns, more than any task takes
UPPER_HALF = "▀"


@dataclass(frozen=True)
class GridCells:
    """The cells of a grid for a rich console, without a frame.

    A console without color (a file, a pipe, NO_COLOR) gets digits; one of 16 colors,
    where some of ours fall together, gets both. With `compact` two rows share a line
    where there are colors enough.
    """

    cells: Cells
    show_coordinates: bool = False
    show_numbers: bool = False
    double_width: bool = True
    scheme: str = "default"
    compact: bool = False

    @property
    def pitch(self) -> int:
        """Return the columns that a cell takes."""
        return 1 + self.double_width

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Yield one line of text for each row, or for every two."""
        colored = not console.no_color and console.color_system is not None
        if self.cells.height == 0:
            yield Text("empty", style="dim")
        elif self.show_coordinates:
            yield from self._header()
        distinct = is_distinct(console)
        halves = self.compact and distinct
        for row in range(0, self.cells.height, 1 + halves):
            yield self._halves(row) if halves else self._line(row, colored, distinct)

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        """Ask for the width of the cells, never squeezed."""
        columns = self.pitch * self.cells.width + 3 * self.show_coordinates
        width = columns if self.cells.height else len("empty")
        return Measurement(width, width)

    def _header(self) -> Iterator[Text]:
        """Yield column numbers top to bottom, so that two digits stay apart."""
        first = self.cells.left
        numbers = [str(n) for n in range(first, first + self.cells.width)]
        tall = max(map(len, numbers))
        for line in zip(*(number.rjust(tall) for number in numbers), strict=True):
            labels = "".join(digit.rjust(self.pitch) for digit in line)
            yield Text(" " * 3 + labels, "dim", no_wrap=True, overflow="ignore")

    def _line(self, row: int, colored: bool, distinct: bool) -> Text:
        line = Text(no_wrap=True, overflow="ignore")
        if self.show_coordinates:
            line.append(f"{self.cells.top + row:>2} ", "dim")
        cells = zip(self.cells.values[row], self.cells.active[row], strict=True)
        for value, real in cells:
            color = cell_color(int(value), self.scheme)
            number = str(value) if len(str(value)) <= self.pitch else "?"
            if not real:
                line.append("·" * self.pitch, Style(dim=True))
            elif not colored:
                line.append(number.rjust(self.pitch))
            elif self.show_numbers or not distinct:
                style = Style(color=ink_on(color), bgcolor=color)
                line.append(number.rjust(self.pitch), style)
            else:
                line.append("█" * self.pitch, Style(color=color))
        return line

    def _halves(self, row: int) -> Text:
        """Draw two rows in one line: the color of a block and the one behind it."""
        line = Text(no_wrap=True, overflow="ignore")
        for values in self.cells.values[row : row + 2].T.tolist():
            upper, *lower = (cell_color(value, self.scheme) for value in values)
            behind = lower[0] if lower else None
            line.append(UPPER_HALF * self.pitch, Style(color=upper, bgcolor=behind))
        return line


def grid_panel(
    grid: GridLike,
    mask: ArrayLike | None = None,
    title: str = "Grid",
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
    border_style: str = "default",
    scheme: str = "default",
) -> Panel:
    """Return a panel of a grid; the border is "input", "output" or any rich style."""
    cells = read_cells(grid, mask)
    inside = GridCells(cells, show_coordinates, show_numbers, double_width, scheme)
    return _panel(inside, f"{title} ({cells.size})", border_style)


def compact_panel(grid: GridLike, title: str, border: str) -> Panel:
    """Return a panel of a grid whose cells take half a line."""
    inside = GridCells(read_cells(grid), double_width=False, compact=True)
    return _panel(inside, title, border)


def log_grid_to_console(
    grid_input: GridLike,
    mask: ArrayLike | None = None,
    title: str = "Grid",
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
    scheme: str = "default",
) -> None:
    """Print a grid in a panel titled with its height and width."""
    options = (show_coordinates, show_numbers, double_width, "default", scheme)
    panel = grid_panel(grid_input, mask, title, *options)
    console = Console()
    # Rich would cut cells off; a wrapped line at least shows all of them.
    console.width = max(console.width, _width(panel, console))
    console.print(panel)


def print_task(
    task: Any,
    show_test: bool = True,
    show_numbers: bool = False,
    console: Console | None = None,
    answers: bool = True,
) -> None:
    """Print all pairs of a task, one below the other, side by side if there is room.

    A test output is a "?" where it is not known, or without `answers`.
    """
    console = console or Console()

    def panel(cells: Cells, title: str) -> Panel:
        inside = GridCells(cells, show_numbers=show_numbers)
        return _panel(inside, f"{title} ({cells.size})", title.lower())

    for name, given, wanted in task_pairs(task, show_test, answers):
        above = panel(given, "Input")
        below = _panel(Text("?"), "Output", "output")
        if wanted:
            below = panel(wanted, "Output")
        row, column = ([above, Text(arrow), below] for arrow in "→↓")
        console.print(Text(name, "bold"), beside(row, console, column))


def render_ansi(
    grid: GridLike,
    mask: ArrayLike | None = None,
    show_numbers: bool = False,
    scheme: str = "default",
) -> str:
    """Return a grid as text with true-color ANSI codes, a line for each row."""
    cells = GridCells(read_cells(grid, mask), False, show_numbers, scheme=scheme)
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        width=WIDEST,
        _environ={},  # NO_COLOR and FORCE_COLOR are for the terminal, not for text
    )
    with console.capture() as capture:
        console.print(cells)
    return capture.get()


def _panel(inside: RenderableType, title: str, border: str) -> Panel:
    # The title is text, so that its brackets are not taken for markup.
    style = BORDERS.get(border, border)
    middle = Align.center(inside)
    return Panel(middle, title=Text(title), border_style=style, expand=False)


def _width(renderable: RenderableType, console: Console) -> int:
    options = console.options.update(max_width=WIDEST)
    return Measurement.get(console, options, renderable).maximum


def is_distinct(console: Console) -> bool:
    """Return whether the console has enough colors to tell cells apart."""
    return not console.no_color and console.color_system in ("256", "truecolor")


def beside(
    panels: Sequence[RenderableType],
    console: Console,
    instead: Sequence[RenderableType] = (),
) -> RenderableType:
    """Put panels side by side; without room, others `instead`, or one below another."""
    for choice in (panels, instead or panels):
        row = Table.grid(padding=(0, 1))
        for _ in choice:
            row.add_column(vertical="middle")
        row.add_row(*choice)
        if _width(row, console) <= console.width:
            return row
    return Group(*(instead or panels))


def legend() -> Text:
    """Return the number of every color, on that color."""
    line = Text("colors ")
    for color in range(COLORS):
        shade = cell_color(color)
        line.append(f" {color} ", Style(color=ink_on(shade), bgcolor=shade))
    return line
