"""The command `jaxrig`: doctor, bench, demo, and a sub-command for each system.

JAX and the systems are imported when a command needs them, not before: help, the
version and the answer to a typo come at once.
"""

import enum
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jaxrig.console import JsonOption, ListOption, complain, make_console
from jaxrig.machine import __version__, package_summary, system_entries

# British spellings in commands and options are understood, though not shown.
AMERICAN = {
    "behaviour": "behavior",
    "centre": "center",
    "colour": "color",
    "grey": "gray",
    "labelled": "labeled",
    "neighbour": "neighbor",
} | {
    f"{stem}is": f"{stem}iz"
    for stem in (
        *("discret", "initial", "maxim", "minim", "normal", "optim", "random"),
        *("regular", "standard", "summar", "vector", "visual"),
    )
}
BRITISH = re.compile("|".join(AMERICAN))


def _american(word: str) -> str:
    return BRITISH.sub(lambda found: AMERICAN[found.group()], word)


app = typer.Typer(
    name="jaxrig",
    invoke_without_command=True,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"token_normalize_func": _american},
)


class Progress(enum.StrEnum):
    """How to show progress."""

    auto = "auto"
    rich = "rich"
    text = "text"
    silent = "silent"


class SystemCommands(TyperGroup):
    """A system's commands, loaded when one of them is used."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Load the system and hand over to its own commands."""
        from jaxrig.systems import load_system

        app = load_system(str(self.name)).load_app()
        if app is None:
            raise typer.BadParameter(f"{self.name} has no commands")
        command = typer.main.get_command(app)
        return command.make_context(info_name, args, parent, **extra)


def _show_error(
    kind: type[BaseException], error: BaseException, _: TracebackType | None
) -> None:
    """Print one line instead of a traceback: what went wrong is in the message."""
    complain(f"error: {str(error) or kind.__name__}")


@app.callback()
def configure(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not keep compiled programs on disk.")
    ] = False,
) -> None:
    """One compiled JAX core and the research systems on it."""
    if version:
        typer.echo(f"jaxrig {__version__}")
        raise typer.Exit
    if not debug:
        sys.excepthook = _show_error
    if not no_cache:
        from jaxrig.compilation import keep_compilations

        keep_compilations()


@app.command("doctor")
def run_doctor() -> None:
    """Show versions, devices, memory, extras, and whether compiling works here."""
    from jaxrig import doctor

    if not doctor.examine(make_console()):
        raise typer.Exit(1)


@app.command("bench")
def run_bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names or prefixes, e.g. core or core.dispatch."),
    ] = None,
    json: JsonOption = None,
    list_only: ListOption = False,
) -> None:
    """Measure this machine; every figure comes with its spread and compile time."""
    from jaxrig.bench import run_benchmarks
    from jaxrig.systems import load_systems

    systems, problems = load_systems()
    for problem in problems.values():
        complain(f"warning: {problem}")
    known = [b for system in systems for b in system.load_benchmarks()]
    run_benchmarks(known, names or [], json, list_only)


@app.command("demo")
def run_demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html.")] = Path(
        "out"
    ),
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Run these systems only.")
    ] = None,
    progress: Annotated[
        Progress, typer.Option("--progress", help="How to show progress.")
    ] = Progress.auto,
) -> None:
    """Run the main job of every installed system and write one page about it."""
    from jaxrig.demo import run_demos

    run_demos(out / "report.html", only or [], progress)


def main() -> None:
    """Run the command `jaxrig` with the sub-commands of all installed systems."""
    command = typer.main.get_group(app)
    for entry in system_entries():
        help = package_summary(entry)
        command.add_command(SystemCommands(name=entry.name, help=help))
    command()
