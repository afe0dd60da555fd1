"""Small pictures for a terminal: two rows of cells in a line, and a color legend."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from jaxarc.ops.names import COLORS
from jaxarc.utils.visualization.cells import Cells, GridLike, read_cells
from jaxarc.utils.visualization.console import BORDERS
from jaxarc.utils.visualization.palette import cell_color, ink_on

UPPER_HALF = "▀"


class CompactGrid:
    """A grid with square cells of half a line; digits where colors are too few."""

    def __init__(self, grid: GridLike):
        self.cells: Cells = read_cells(grid)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        """Half as many lines as rows, in color."""
        if is_distinct(console):
            yield from (self._halves(row) for row in range(0, self.cells.height, 2))
        else:
            for row in self.cells.values:
                yield Text("".join(map(str, row)), no_wrap=True, overflow="ignore")

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        """One column for each cell."""
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


def framed(grid: GridLike, title: str, border: str) -> Panel:
    """A small grid in a panel; the border is "input" or "output"."""
    style = BORDERS[border]
    return Panel(CompactGrid(grid), title=title, border_style=style, expand=False)


def is_distinct(console: Console) -> bool:
    """Whether the console has enough colors to tell cells apart."""
    return not console.no_color and console.color_system in ("256", "truecolor")


def legend() -> Text:
    """The number of every color, on that color."""
    line = Text("colors ")
    for color in range(COLORS):
        shade = cell_color(color)
        line.append(f" {color} ", Style(color=ink_on(shade), bgcolor=shade))
    return line
