"""`jaxrig arc play`: read commands, step, and show the grids."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
import typer
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxarc.cli.tasks import DatasetOption, PathOption, TaskArgument
from jaxarc.draw import grid_panel
from jaxarc.draw.terminal import beside, compact_panel, legend
from jaxarc.ops.operations import COLORS, get_operation_name
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.tasks import open_dataset
from jaxrig.console import check_writable, make_console
from jaxrig.report.text import count_of
from jaxrig.settings import nearest

if TYPE_CHECKING:
    from jaxarc.recording import TaskPlayer
    from jaxarc.types import JaxArcTask

HELP = """\
Cells are rows and columns from 0; two corners make a rectangle; without cells an
operation takes the whole grid. Colors are 0 to 9.

fill COLOR [cells]         paint cells: fill 3, fill 3 0 0, fill 3 0 0 2 2
flood COLOR ROW COLUMN     paint the area of one color around a cell
move up|down|left|right [cells]
rotate cw|ccw [cells]      flip h|v [cells]
copy [cells]               cut [cells]      clear [cells]
paste ROW COLUMN           the upper left corner goes to this cell
input                      begin again from the input
resize HEIGHT WIDTH        change the size of the grid
submit                     hand the grid in: this ends the episode
next  prev  unsolved       go to another pair; one is solved once its grid is right
reset                      this pair from its start
N [cells]                  an operation by its number (or op N)
undo                       take the last step back
demos  show                look at the demonstrations, at the grid
save FILE                  write the episode for `jaxrig arc replay`
help  quit"""


Box: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class Act:
    """A step of the episode; no box stands for the whole grid."""

    operation: int
    box: Box | None = None


@dataclass(frozen=True)
class Order:
    """Something to do that is not a step."""

    name: str
    argument: str = ""


Command: TypeAlias = Act | Order
Words: TypeAlias = Sequence[str]

DIRECTIONS = ("up", "down", "left", "right")
ORDERS = ("undo", "demos", "show", "help", "quit")
SYNONYMS = {
    "exit": "quit",
    "q": "quit",
    "h": "help",
    "?": "help",
    "previous": "prev",
    "flood_fill": "flood",
    "floodfill": "flood",
    "u": "undo",
}
_OPERATIONS: dict[str, int] = {
    **{f"fill {color}": Op.FILL_0 + color for color in range(COLORS)},
    **{f"flood {color}": Op.FLOOD_FILL_0 + color for color in range(COLORS)},
    **{f"move {way}": Op[f"MOVE_{way.upper()}"] for way in DIRECTIONS},
    **{"rotate cw": Op.ROTATE_C, "rotate ccw": Op.ROTATE_CC},
    **{"flip h": Op.FLIP_HORIZONTAL, "flip v": Op.FLIP_VERTICAL},
    **{"copy": Op.COPY, "cut": Op.CUT, "clear": Op.CLEAR, "paste": Op.PASTE},
    **{"input": Op.COPY_INPUT, "submit": Op.SUBMIT, "reset": Op.RESET_CURRENT_PAIR},
}
_PAIRS = {  # for demonstrations, for tests
    "next": (Op.SWITCH_TO_NEXT_DEMO_PAIR, Op.SWITCH_TO_NEXT_TEST_PAIR),
    "prev": (Op.SWITCH_TO_PREV_DEMO_PAIR, Op.SWITCH_TO_PREV_TEST_PAIR),
    "unsolved": (Op.SWITCH_TO_FIRST_UNSOLVED_DEMO, Op.SWITCH_TO_FIRST_UNSOLVED_TEST),
}
# How many numbers may follow a word; no cells, one, or two corners unless it is here.
_COUNTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((*ORDERS, *_PAIRS, "input", "submit", "reset"), (0,)),
    **dict.fromkeys(("flood", "paste", "resize"), (2,)),
}
_TAKES: dict[tuple[int, ...], str] = {
    (0,): "nothing after it",
    (2,): "two numbers: a row and a column, or a height and a width",
    (0, 2, 4): "cells: nothing, a row and a column, or two corners",
}


def parse_command(line: str, testing: bool = False) -> Command | None:
    """Parse a line; None for an empty one or a comment (`# ...`).

    ValueError with a sentence where it asks for nothing known. Pairs are tests where
    `testing`.

    >>> parse_command("fill 3 0 1")
    Act(operation=3, box=(0, 1, 0, 1))
    """
    words = line.partition("#")[0].split()
    if not words:
        return None
    name, rest = SYNONYMS.get(words[0].lower(), words[0].lower()), words[1:]
    if name == "save":
        if not rest:
            raise ValueError("save needs a file: save episode.json")
        return Order("save", line.strip().partition(" ")[2].strip())
    if name == "op":
        if not rest or not rest[0].isdecimal():
            raise ValueError("op needs a number: op 34")
        name, *rest = rest
    if name in ORDERS:
        _cells(name, rest)
        return Order(name)
    if name == "resize":
        return Act(int(Op.RESIZE), _resized(rest))
    if name in _PAIRS:
        operation = _PAIRS[name][testing]
    elif name.isdecimal():
        get_operation_name(operation := int(name))  # refuses unknown ones
    else:
        operation, rest = _operation(name, rest)
    return Act(int(operation), _cells(name, rest))


def _operation(name: str, rest: Words) -> tuple[int, Words]:
    """Return the operation of a word, or of a word and its color or direction."""
    if name in _OPERATIONS:
        return _OPERATIONS[name], rest
    options = [p.split()[1] for p in _OPERATIONS if p.startswith(f"{name} ")]
    if not options:
        known = {phrase.split()[0] for phrase in _OPERATIONS}
        known |= {*_PAIRS, *ORDERS, "resize", "op", "save"}
        raise ValueError(f"{name!r} is not a command: {nearest(name, sorted(known))}")
    if not rest or rest[0].lower() not in options:
        raise ValueError(f"{name} needs one of: {', '.join(options)}")
    return _OPERATIONS[f"{name} {rest[0].lower()}"], rest[1:]


def _cells(name: str, words: Words) -> Box | None:
    """Read no cells, one, or the rectangle between two."""
    counts = _COUNTS.get(name, (0, 2, 4))
    whole = all(word.removeprefix("-").isdecimal() for word in words)
    if len(words) not in counts or not whole:
        raise ValueError(f"{name} takes {_TAKES[counts]}, not {' '.join(words)!r}")
    if not words:
        return None
    numbers = [int(word) for word in words]
    row, column, last_row, last_column = numbers if len(numbers) == 4 else 2 * numbers
    return row, column, last_row, last_column


def _resized(words: Words) -> Box:
    size = _cells("resize", words)
    if size is None or min(size) < 1:
        raise ValueError("resize needs a height and a width of at least 1: resize 3 4")
    return 0, 0, size[0] - 1, size[1] - 1


def play(
    task: TaskArgument,
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    test: Annotated[
        bool, typer.Option("--test", help="Play the tests; their targets are hidden.")
    ] = False,
    pair: Annotated[int, typer.Option(min=1, help="Pair to start with.")] = 1,
    script: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Read commands from a file."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--out", "--save", help="Write the episode to this file, for `replay`."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps.")] = 1000,
) -> None:
    """Solve a task by hand with the operations of the agents. Type help for a list."""
    check_writable(save)
    # Imported here, so that help and typos do not wait for JAX.
    from jaxarc.recording import TaskPlayer, player_config

    console = make_console()
    parser = open_dataset(dataset, path)
    config = player_config(parser.config, steps)
    chosen = parser.get_task_by_id(task)
    count = int(chosen.num_test_pairs if test else chosen.num_train_pairs)
    if pair > count:
        kind = "tests" if test else "demonstrations"
        raise typer.BadParameter(f"--pair is {pair}: {task} has {count} {kind}")
    player = TaskPlayer(chosen, task, config, int(test), pair - 1)
    table = PlaySession(player, console)
    table.begin()
    try:
        for line in read_lines(script, console):
            if not table.follow(line):
                break
    except KeyboardInterrupt:
        console.print("stopped")
    finally:
        if save is not None:
            table.save(str(save))
    solved, total = player.solved, sum(frame.reward for frame in player.frames)
    result = f"{int(solved.sum())} of {count_of(len(solved), 'pair')} solved"
    steps_taken = count_of(player.steps, "step")
    console.print(
        f"{task}: {result}, {steps_taken}, return {total:+z.3f}", highlight=False
    )


def read_lines(script: Path | None, console: Console) -> Iterator[str]:
    """Yield lines of a file, of a pipe, or of a person at a prompt."""
    if script is not None:
        yield from script.read_text("utf-8").splitlines()
    elif not sys.stdin.isatty():
        yield from sys.stdin
    else:
        while True:
            try:
                yield console.input("> ")
            except EOFError:
                return


class PlaySession:
    """A player and the console it is shown on."""

    def __init__(self, player: "TaskPlayer", console: Console):
        self.player, self.console = player, console

    def begin(self) -> None:
        """Show the task and where to start."""
        player = self.player
        self._say(f"Task {player.task_id}; type help for the commands", "bold")
        show_demonstrations(player.task, self.console)
        self.console.print(legend())
        self.show()

    def follow(self, line: str) -> bool:
        """Run a line, or explain what is wrong; return False to stop."""
        try:
            command = parse_command(line, bool(self.player.mode))
            self._obey(command)
        except (ValueError, OSError) as error:
            self._say(str(error), "red")
            return True
        return command != Order("quit")

    def _obey(self, command: Command | None) -> None:
        match command:
            case Act():
                self._step(command)
            case Order("undo"):
                self.player.undo()
                self.show()
            case Order("help"):
                self._say(HELP)
                self.console.print(legend())
            case Order("demos"):
                show_demonstrations(self.player.task, self.console)
            case Order("show"):
                self.show()
            case Order("save", name):
                self.save(name)
            case _:  # quit, an empty line, or a comment
                pass

    def _step(self, act: Act) -> None:
        player = self.player
        before, pair = player.frame.grid, player.current_pair
        player.step(act.operation, act.box)
        self.show()
        still = np.array_equal(before, player.frame.grid)
        if still and pair == player.current_pair and not player.done:
            self._say("nothing changed", "yellow")
        if player.done:
            done, pairs = int(player.solved.sum()), len(player.solved)
            verdict = "solved" if done == pairs else "not solved"
            if pairs > 1:
                verdict = f"{done} of {pairs} pairs solved"
            self._say(f"the episode has ended: {verdict} (undo reverts the last step)")

    def save(self, name: str) -> None:
        """Write the episode so far."""
        from jaxarc.recording import save_recording

        path = save_recording(Path(name).expanduser(), self.player.recording())
        self._say(f"wrote {path}")

    def show(self) -> None:
        """Print the working grid, the target where it is known, and the status."""
        frame = self.player.frame
        large = lambda grid, title, border: grid_panel(
            grid, title=title, show_coordinates=True, border_style=border
        )
        shown = large(frame.grid, "Working grid", "input")
        panels, smaller = [shown], [shown]
        if frame.target is not None:
            panels.append(large(frame.target, "Target", "output"))
            smaller.append(compact_panel(frame.target, "Target", "output"))
        self.console.print(beside(panels, self.console, smaller))
        self._say(self.status(), "dim")

    def status(self) -> str:
        """Describe pair, steps, similarity and last reward in a line."""
        player = self.player
        kind = "test" if player.mode else "demonstration"
        solved = player.solved
        words = [
            f"{kind} {player.current_pair + 1} of {len(solved)}",
            count_of(player.steps, "step"),
        ]
        if not player.mode or player.done:
            words.append(f"similarity {player.frame.similarity:.3f}")
        if player.frame.operation is not None:
            name = get_operation_name(player.frame.operation)
            words.append(f"last: {name}, reward {player.frame.reward:+z.3f}")
        if solved.any():
            words.append(f"solved {int(solved.sum())} of {len(solved)}")
        return " · ".join(words)

    def _say(self, words: str, style: str = "") -> None:
        self.console.print(Text(words, style), soft_wrap=True)


def show_demonstrations(task: "JaxArcTask", console: Console) -> None:
    """Print all demonstrations, small and side by side where there is room."""
    shown = []
    for index in range(int(task.num_train_pairs)):
        pair = task.get_train_pair(index)
        row = Table.grid(padding=(0, 1))
        row.add_row(
            compact_panel(pair.input_grid, f"{index + 1}", "input"),
            compact_panel(pair.output_grid, "→", "output"),
        )
        shown.append(row)
    console.print(Columns(shown, padding=(0, 3)))
