"""All commands of `jaxrig causal`; the module of each is imported when it is used."""

import functools
import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from jaxrig.console import LazyCommand


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
}


def _load(name: str) -> Any:
    entry = COMMANDS[name]
    function = getattr(importlib.import_module(entry.module), entry.function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(function)
    return typer.main.get_command(alone)


class CausalCommands(TyperGroup):
    """The commands of `COMMANDS`, in their order."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        # In the table of commands itself, where typer looks for the nearest name.
        lazy = {
            name: LazyCommand(name, entry.summary, functools.partial(_load, name))
            for name, entry in COMMANDS.items()
        }
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
