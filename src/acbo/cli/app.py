"""All commands of `jaxrig causal`; the module of each is imported when it is used."""

import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """Where a command lives, and what the list of commands says about it."""

    module: str
    function: str
    summary: str


COMMANDS = {
    "suggest": Entry(
        "acbo.cli.suggest",
        "suggest",
        "Suggest the next experiment from a table of those already made.",
    ),
    "optimize": Entry(
        "acbo.cli.evaluate",
        "optimize",
        "Optimize a problem whose true optimum is known, one intervention at a time.",
    ),
    "problems": Entry(
        "acbo.cli.evaluate",
        "list_problems",
        "List the problems with their targets and true optima.",
    ),
    "graph": Entry(
        "acbo.cli.suggest",
        "graph",
        "Show how likely each variable causes each other one directly.",
    ),
    "train": Entry(
        "acbo.cli.train",
        "train",
        "Train on random models made on the device; run again to resume.",
    ),
    "eval": Entry(
        "acbo.cli.evaluate",
        "evaluate_models",
        "Show how well causes are found and targets moved, with intervals and tests.",
    ),
    "bench": Entry(
        "acbo.benchmarks",
        "bench",
        "Measure this machine; the same as `jaxrig bench causal`.",
    ),
}


class LazyCommand(TyperCommand):
    """A command that is imported when it is used, not when it is listed."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Import the command and hand over to it."""
        entry = COMMANDS[str(self.name)]
        function = getattr(importlib.import_module(entry.module), entry.function)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(self.name)(function)
        command = typer.main.get_command(alone)
        return command.make_context(info_name, args, parent, **extra)


class CausalCommands(TyperGroup):
    """The commands of `COMMANDS`, in their order."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        # In the table of commands itself, where typer looks for the nearest name.
        lazy = {n: LazyCommand(n, help=entry.summary) for n, entry in COMMANDS.items()}
        self.commands = {**lazy, **self.commands}


app = typer.Typer(
    name="causal",
    help="Find what causes a target and how to move it, from few experiments.",
    cls=CausalCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:
    """Find what causes a target and how to move it, from few experiments."""
