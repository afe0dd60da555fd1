"""What a terminal shows, with and without color."""

import io
import re

import jax.numpy as jnp
import numpy as np
import pytest
from rich.color import Color
from rich.console import Console
from rich.panel import Panel

from jaxarc.draw import terminal
from jaxarc.draw.cells import cell_color, read_cells
from jaxarc.tasks.task_json import RawTask
from jaxarc.types import Grid

GRID = np.array([[1, 2, 0], [3, 4, 1], [0, 2, 3]])
MASK = np.array([[True, True, False], [True, True, True], [False, True, True]])
BLUE, GREEN = "\x1b[34m", "\x1b[32m"


def shown(renderable, width=80, **console):
    out = Console(file=io.StringIO(), width=width, _environ={}, **console)
    with out.capture() as capture:
        out.print(renderable)
    return capture.get()


def colored(renderable, system="truecolor"):
    return shown(renderable, force_terminal=True, color_system=system)


def printed(task, width=100, **options):
    console = Console(file=io.StringIO(), width=width, _environ={})
    with console.capture() as capture:
        terminal.print_task(task, console=console, **options)
    return capture.get()


def inside(text):
    return [line.strip("│ \n") for line in text.splitlines()[1:-1]]


def test_without_color_there_are_digits_and_dots():
    text = shown(terminal.grid_panel(GRID, MASK, "Input"))
    assert "Input (3x3)" in text
    assert inside(text) == ["1 2··", "3 4 1", "·· 2 3"]


def test_with_color_there_are_blocks_of_it():
    text = colored(terminal.grid_panel(GRID, MASK))
    assert text.count("██") == MASK.sum()
    assert text.count("··") == (~MASK).sum()
    assert "38;2;0;116;217m██" in text
    # Sixteen colors are too few without digits.
    text = colored(terminal.grid_panel(np.array([[1, 8]])), "standard")
    assert "█" not in text
    assert re.search(r"m 1\x1b.*m 8\x1b", text)


def test_single_width_and_numbers():
    text = shown(terminal.grid_panel(GRID, double_width=False))
    assert inside(text) == ["120", "341", "023"]
    assert "█" not in colored(terminal.grid_panel(GRID, show_numbers=True))


def test_coordinates_are_those_of_the_whole_array():
    grid = np.full((4, 4), -1)
    grid[2, 1:3] = 7
    text = shown(terminal.grid_panel(grid, show_coordinates=True))
    assert "(1x2)" in text
    assert inside(text) == ["1 2", "2  7 7"]


@pytest.mark.parametrize("double_width", [True, False])
def test_column_numbers_of_two_digits_stay_apart(double_width):
    grid = np.full((1, 13), -1)
    grid[0, 8:] = 5
    panel = terminal.grid_panel(
        grid, show_coordinates=True, double_width=double_width, title="g"
    )
    gap = " " if double_width else ""
    tens, ones, row = (line.rstrip() for line in inside(shown(panel)))
    assert tens == gap.join("111")
    assert ones == gap.join("89012")
    assert row == "0" + " " + gap + gap.join("55555")


def test_titles_are_not_markup(capsys):
    assert terminal.log_grid_to_console(GRID, title="[bold]x[/bold]") is None
    assert "[bold]x[/bold] (3x3)" in capsys.readouterr().out


def test_wide_grids_are_never_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal.log_grid_to_console(jnp.full((2, 30), 7, jnp.int32))
    assert capsys.readouterr().out.count("7") == 60


def test_inputs_are_blue_and_outputs_green():
    assert BLUE in colored(terminal.grid_panel(GRID, border_style="input"))
    assert GREEN in colored(terminal.grid_panel(GRID, border_style="output"))
    assert "\x1b[35m" in colored(terminal.grid_panel(GRID, border_style="magenta"))


@pytest.mark.parametrize(("width", "sign"), [(80, "→"), (20, "↓")])
def test_pairs_stand_side_by_side_where_there_is_room(width, sign):
    text = printed(RawTask("a", ((GRID, GRID),), ()), width)
    assert all(word in text for word in ("Train 1", "Input", "Output", sign))


def test_a_task_shows_every_pair_and_what_is_unknown(task, pairs):
    text = printed(task)
    assert re.findall(r"(?:Train|Test) \d", text) == ["Train 1", "Train 2", "Test 1"]
    assert text.count("?") == 1
    for row in pairs[1][1]:
        assert " ".join(map(str, row)) in text
    assert "Test" not in printed(task, show_test=False)
    known = RawTask("a", ((GRID, GRID),), ((GRID, GRID), (GRID, None)))
    for answers, unknown in ((True, 1), (False, 2)):
        assert printed(known, answers=answers).count("?") == unknown


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR"])
def test_ansi_text_does_not_depend_on_the_terminal(variable, monkeypatch):
    monkeypatch.setenv(variable, "1")
    grid = Grid(jnp.array([[1, 2]], jnp.int32), jnp.array([[True, False]]))
    assert terminal.render_ansi(grid) == "\x1b[38;2;0;116;217m██\x1b[0m\n"


COMPACT = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.int32)


def test_two_rows_share_a_line():
    cells = terminal.GridCells(read_cells(COMPACT), double_width=False, compact=True)
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="truecolor", _environ={}
    )
    lines = console.render_lines(cells, pad=False)
    seen = [
        [(s.style.color, s.style.bgcolor) for s in line if s.style and s.text == "▀"]
        for line in lines
    ]
    shade = lambda value: Color.parse(cell_color(int(value)))
    assert seen == [
        [(shade(a), shade(b)) for a, b in zip(COMPACT[0], COMPACT[1], strict=True)],
        [(shade(a), None) for a in COMPACT[2]],
    ]


def test_few_colors_give_digits():
    panel = terminal.compact_panel(COMPACT, "a", "input")
    assert inside(shown(panel)) == ["123", "456", "789"]
    assert "▀" not in colored(panel, "standard")


def test_panels_are_stacked_where_there_is_no_room_for_smaller_ones():
    large, small = Panel("x" * 20, expand=False), Panel("y", expand=False)
    for width, alone, replaced in ((60, 3, 3), (40, 6, 3), (24, 6, 6)):
        console = Console(width=width)
        lines = lambda *choice, c=console: len(c.render_lines(terminal.beside(*choice)))
        assert lines([large, large], console) == alone
        assert lines([large, large], console, [large, small]) == replaced
