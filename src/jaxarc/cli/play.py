"""`jaxrig arc play`: a person solves a task in the terminal, step by step."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxarc.cli.commands import HELP, Act, Command, Order, parse_command
from jaxarc.cli.output import DatasetOption, PathOption, count_steps
from jaxarc.draw import grid_panel
from jaxarc.draw.terminal import beside, compact_panel, legend
from jaxarc.ops.names import get_operation_name
from jaxarc.recording import STEPS, TaskPlayer, player_config, save_recording
from jaxarc.tasks import open_dataset
from jaxarc.types import JaxArcTask
from jaxrig.console import check_writable, make_console


def play(
    task: Annotated[str, typer.Argument(help="The id of a task, e.g. 00d62c1b.")],
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    test: Annotated[
        bool, typer.Option("--test", help="Answer the test; its target is hidden.")
    ] = False,
    pair: Annotated[
        int, typer.Option("--pair", min=1, help="The pair to begin with.")
    ] = 1,
    script: Annotated[
        Path | None,
        typer.Option("--script", exists=True, dir_okay=False, help="Read lines here."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Write the episode here in the end, for `replay`."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Step limit.")] = STEPS,
) -> None:
    """Solve a task by hand with the operations an agent has; type help for them."""
    check_writable(save)
    console = make_console()
    parser = open_dataset(dataset, path)
    config = player_config(parser.config, steps)
    chosen = parser.get_task_by_id(task)
    count = int(chosen.num_test_pairs if test else chosen.num_train_pairs)
    if pair > count:
        kind = "tests" if test else "demonstrations"
        raise typer.BadParameter(f"--pair is {pair}: {task} has {count} {kind}")
    player = TaskPlayer(chosen, task, config, int(test), pair - 1)
    table = PlayTable(player, console)
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
    console.print(table.result(), highlight=False)


def read_lines(script: Path | None, console: Console) -> Iterator[str]:
    """Lines of a file, of a pipe, or of a person with a prompt."""
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


class PlayTable:
    """A player and the console it is shown on."""

    def __init__(self, player: TaskPlayer, console: Console):
        self.player, self.console = player, console

    def begin(self) -> None:
        """Show the task and where to start."""
        player = self.player
        self._say(f"Task {player.task_id}; type help for the commands", "bold")
        show_demonstrations(player.task, self.console)
        self.console.print(legend())
        self.show()

    def follow(self, line: str) -> bool:
        """Do what a line says, nothing if it is wrong; False when it says to stop."""
        try:
            command = parse_command(line, bool(self.player.mode))
            if isinstance(command, Act):
                self._step(command)
                return True
            return self._obey(command)
        except (ValueError, OSError) as error:
            self._say(str(error), "red")
            return True

    def _obey(self, command: Command | None) -> bool:
        match command:
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
            case Order("quit"):
                return False
        return True

    def _step(self, act: Act) -> None:
        player = self.player
        before, pair = player.frame.grid, player.current_pair
        player.step(act.operation, act.box)
        self.show()
        still = np.array_equal(before, player.frame.grid)
        if still and pair == player.current_pair and not player.done:
            self._say("nothing changed", "yellow")
        if player.done:
            verdict = "solved" if bool(player.solved.all()) else "not solved"
            self._say(f"the episode is over: {verdict} (undo takes the step back)")

    def save(self, name: str) -> None:
        """Write the episode so far."""
        path = save_recording(Path(name).expanduser(), self.player.recording())
        self._say(f"wrote {path}")

    def show(self) -> None:
        """The working grid, the target where it is known, and how things stand."""
        frame = self.player.frame
        grid = grid_panel(
            frame.grid,
            title="Working grid",
            show_coordinates=True,
            border_style="input",
        )
        if frame.target is None:
            self.console.print(grid)
        else:
            target = grid_panel(
                frame.target,
                title="Target",
                show_coordinates=True,
                border_style="output",
            )
            small = compact_panel(frame.target, "Target", "output")
            view = beside([grid, target], self.console, [grid, small])
            self.console.print(view)
        self._say(self.status(), "dim")

    def status(self) -> str:
        """Pair, steps, similarity and last reward in a line."""
        player = self.player
        kind = "test" if player.mode else "demonstration"
        solved = player.solved
        words = [
            f"{kind} {player.current_pair + 1} of {len(solved)}",
            count_steps(player.steps),
        ]
        if not player.mode or player.done:
            words.append(f"similarity {player.frame.similarity:.3f}")
        if player.frame.operation is not None:
            name = get_operation_name(player.frame.operation)
            words.append(f"last: {name}, reward {player.frame.reward:+.3f}")
        if solved.any():
            words.append(f"solved {int(solved.sum())} of {len(solved)}")
        return " · ".join(words)

    def result(self) -> str:
        """How it ended."""
        player = self.player
        total = sum(player.recording().rewards)
        return (
            f"{player.task_id}: {int(player.solved.sum())} of {len(player.solved)} "
            f"pairs solved, {count_steps(player.steps)}, return {total:+.3f}"
        )

    def _say(self, words: str, style: str = "") -> None:
        self.console.print(Text(words, style), soft_wrap=True)


def show_demonstrations(task: JaxArcTask, console: Console) -> None:
    """All demonstrations, small and side by side as far as there is room."""
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
