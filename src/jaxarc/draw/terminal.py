"""Print grids and tasks in a terminal: colored blocks, or digits without color."""

import io
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike
from rich.align import Align
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from jaxarc.draw.cells import Cells, GridLike, cell_color, ink_on, read_cells
from jaxarc.draw.tasks import NamedPair, task_pairs
from jaxarc.ops.operations import COLORS

BORDERS = {"default": "bright_black", "input": "blue", "output": "green"}
WIDEST = 1000  # columns, more than any task takes
UPPER_HALF = "▀"


class GridCells:
    """The cells of a grid for a rich console, without a frame.

    A console without color (a file, a pipe, NO_COLOR) gets digits; one of 16 colors,
    where some of ours fall together, gets both.
    """

    def __init__(
        self,
        cells: Cells,
        show_coordinates: bool = False,
        show_numbers: bool = False,
        double_width: bool = True,
        scheme: str = "default",
    ):
        self.cells = cells
        self.show_coordinates = show_coordinates
        self.show_numbers = show_numbers
        self.pitch = 2 if double_width else 1
        self.scheme = scheme

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Yield one line of text for each row."""
        colored = not console.no_color and console.color_system is not None
        if self.cells.height == 0:
            yield Text("empty", style="dim")
        elif self.show_coordinates:
            yield from self._header()
        for row in range(self.cells.height):
            yield self._line(row, colored, is_distinct(console))

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
        for value, real in zip(
            self.cells.values[row], self.cells.active[row], strict=True
        ):
            line.append(*self._cell(int(value), bool(real), colored, distinct))
        return line

    def _cell(
        self, value: int, real: bool, colored: bool, distinct: bool
    ) -> tuple[str, Style]:
        if not real:
            return "·" * self.pitch, Style(dim=True)
        color = cell_color(value, self.scheme)
        number = str(value) if len(str(value)) <= self.pitch else "?"
        if not colored:
            return number.rjust(self.pitch), Style()
        if self.show_numbers or not distinct:
            return number.rjust(self.pitch), Style(color=ink_on(color), bgcolor=color)
        return "█" * self.pitch, Style(color=color)


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
    for pair in task_pairs(task, show_test, answers):
        console.print(Text(pair.name, "bold"), _pair_view(pair, show_numbers, console))


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


def _pair_view(pair: NamedPair, numbers: bool, console: Console) -> RenderableType:
    panel = lambda cells, title: grid_panel(
        *(cells.values, cells.active, title),
        show_numbers=numbers,
        border_style=title.lower(),
    )
    given, wanted = panel(pair.given, "Input"), _panel(Text("?"), "Output", "output")
    if pair.wanted:
        wanted = panel(pair.wanted, "Output")
    row = Table.grid(padding=(0, 1))
    for _ in range(3):
        row.add_column(vertical="middle")
    row.add_row(given, Text("→"), wanted)
    if _width(row, console) <= console.width:
        return row
    return Group(given, Text("↓"), wanted)


def _panel(inside: RenderableType, title: str, border: str) -> Panel:
    # The title is text, so that its brackets are not taken for markup.
    style = BORDERS.get(border, border)
    middle = Align.center(inside)
    return Panel(middle, title=Text(title), border_style=style, expand=False)


def _width(renderable: RenderableType, console: Console) -> int:
    options = console.options.update(max_width=WIDEST)
    return Measurement.get(console, options, renderable).maximum


class CompactGrid:
    """A grid with square cells of half a line; digits where colors are too few."""

    def __init__(self, grid: GridLike):
        self.cells: Cells = read_cells(grid)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Yield half as many lines as rows, in color."""
        if is_distinct(console):
            yield from (self._halves(row) for row in range(0, self.cells.height, 2))
        else:
            for row in self.cells.values:
                yield Text("".join(map(str, row)), no_wrap=True, overflow="ignore")

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        """Ask for one column for each cell."""
        return Measurement(self.cells.width, self.cells.width)

    def _halves(self, row: int) -> Text:
        line = Text(no_wrap=True, overflow="ignore")
        below = row + 1 < self.cells.height
        for column in range(self.cells.width):
            upper = cell_color(int(self.cells.values[row, column]))
            lower = None
            if below:
                lower = cell_color(int(self.cells.values[row + 1, column]))
            line.append(UPPER_HALF, Style(color=upper, bgcolor=lower))
        return line


def compact_panel(grid: GridLike, title: str, border: str) -> Panel:
    """Return a panel of a small grid; the border is "input" or "output"."""
    style = BORDERS[border]
    return Panel(CompactGrid(grid), title=title, border_style=style, expand=False)


def is_distinct(console: Console) -> bool:
    """Return whether the console has enough colors to tell cells apart."""
    return not console.no_color and console.color_system in ("256", "truecolor")


def beside(
    panels: list[Panel], console: Console, smaller: list[Panel] | None = None
) -> RenderableType:
    """Put panels side by side; without room, smaller ones, or one below another."""
    for choice in (panels, smaller or panels):
        row = Table.grid(padding=(0, 2))
        row.add_row(*choice)
        if _width(row, console) <= console.width:
            return row
    return Group(*(smaller or panels))


def legend() -> Text:
    """Return the number of every color, on that color."""
    line = Text("colors ")
    for color in range(COLORS):
        shade = cell_color(color)
        line.append(f" {color} ", Style(color=ink_on(shade), bgcolor=shade))
    return line
