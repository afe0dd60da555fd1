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
        "Suggest the next experiment from a table of experiments.",
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
        "Show the probability of each direct causal edge.",
    ),
    "train": Entry(
        "acbo.cli.train",
        "train",
        "Train on random causal models. Run the same command again to resume.",
    ),
    "eval": Entry(
        "acbo.cli.evaluate",
        "evaluate_models",
        "Evaluate how well methods find causes and optimize targets.",
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
    help="Find the causes of a target and the next experiment to run.",
    cls=CausalCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:
    """Find the causes of a target and the next experiment to run."""
