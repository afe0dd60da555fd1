"""Grids and tasks in a terminal: colored blocks, or digits without color."""

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

from jaxarc.types import JaxArcTask
from jaxarc.utils.visualization.cells import Cells, GridLike, read_cells
from jaxarc.utils.visualization.palette import cell_color, ink_on

BORDERS = {"default": "bright_black", "input": "blue", "output": "green"}
WIDEST = 1000  # columns, more than any task of ours takes


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
        """One line of text for each row."""
        ways = _ways(console)
        if self.cells.height == 0:
            yield Text("empty", style="dim")
        elif self.show_coordinates:
            yield from self._header()
        for row in range(self.cells.height):
            yield self._line(row, *ways)

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        """As wide as the cells are, never squeezed."""
        columns = self.pitch * self.cells.width + 3 * self.show_coordinates
        width = columns if self.cells.height else len("empty")
        return Measurement(width, width)

    def _header(self) -> Iterator[Text]:
        """Column numbers from top to bottom, so that those of two digits stay apart."""
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


def visualize_grid_rich(
    grid: GridLike,
    mask: ArrayLike | None = None,
    title: str = "Grid",
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
    border_style: str = "default",
    scheme: str = "default",
) -> Panel:
    """A grid as a rich panel; the border is "input", "output" or any rich style."""
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
    """Show a grid in the terminal, in a panel titled with its height and width."""
    options = (show_coordinates, show_numbers, double_width, "default", scheme)
    panel = visualize_grid_rich(grid_input, mask, title, *options)
    console = Console()
    # Rich would cut cells off; a wrapped line at least shows all of them.
    console.width = max(console.width, _width(panel, console))
    console.print(panel)


def visualize_task_pair_rich(
    input_grid: GridLike,
    output_grid: GridLike | None = None,
    title: str = "Task Pair",
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
    console: Console | None = None,
) -> None:
    """Show what is given and what is asked for, side by side where there is room."""
    console = console or Console()
    options = (show_coordinates, show_numbers, double_width)
    console.print(Text(title, "bold"), _pair(input_grid, output_grid, options, console))


def visualize_parsed_task_data_rich(
    task: JaxArcTask,
    show_test: bool = True,
    show_coordinates: bool = False,
    show_numbers: bool = False,
    double_width: bool = True,
    console: Console | None = None,
) -> None:
    """Show all pairs of a task, one below the other."""
    shown: dict[str, Any] = {
        "show_coordinates": show_coordinates,
        "show_numbers": show_numbers,
        "double_width": double_width,
        "console": console or Console(),
    }
    for index in range(int(task.num_train_pairs)):
        pair = task.get_train_pair(index)
        title = f"Train {index + 1}"
        visualize_task_pair_rich(pair.input_grid, pair.output_grid, title, **shown)
    for index in range(int(task.num_test_pairs) if show_test else 0):
        pair = task.get_test_pair(index)
        title = f"Test {index + 1}"
        visualize_task_pair_rich(pair.input_grid, pair.output_grid, title, **shown)


def render_ansi(
    grid: GridLike,
    mask: ArrayLike | None = None,
    show_numbers: bool = False,
    scheme: str = "default",
) -> str:
    """A grid as text with true-color ANSI codes, a line for each row."""
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


def _pair(
    input_grid: GridLike,
    output_grid: GridLike | None,
    options: tuple[bool, bool, bool],
    console: Console,
) -> RenderableType:
    given = visualize_grid_rich(
        input_grid, None, "Input", *options, border_style="input"
    )
    known = output_grid is not None and read_cells(output_grid).height > 0
    wanted = (
        visualize_grid_rich(
            output_grid, None, "Output", *options, border_style="output"
        )
        if output_grid is not None and known
        else _panel(Text("?"), "Output", "output")
    )
    row = Table.grid(padding=(0, 1))
    for _ in range(3):
        row.add_column(vertical="middle")
    row.add_row(given, Text("→"), wanted)
    if _width(row, console) <= console.width:
        return row
    return Group(given, Text("↓"), wanted)


def _ways(console: Console) -> tuple[bool, bool]:
    """Whether there is color, and enough of it to tell cells apart."""
    colored = not console.no_color and console.color_system is not None
    return colored, console.color_system in ("256", "truecolor")


def _panel(inside: RenderableType, title: str, border: str) -> Panel:
    # The title is text, so that its brackets are not taken for markup.
    style = BORDERS.get(border, border)
    middle = Align.center(inside)
    return Panel(middle, title=Text(title), border_style=style, expand=False)


def _width(renderable: RenderableType, console: Console) -> int:
    options = console.options.update(max_width=WIDEST)
    return Measurement.get(console, options, renderable).maximum
