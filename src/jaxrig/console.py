"""What commands share: where they write to, options, and loading on use."""

import importlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from jaxrig.compile_cache import mend_cache

WIDE = 120  # columns when the output is a file or a pipe: nothing is cut off
UsageError: Any = typer.BadParameter.__base__  # typer's versions keep it elsewhere
STOPPED = 130  # what a shell reports of a program that was interrupted

# In every command `--json` prints, and `--out` says where to write.
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Write the results to this JSON file.")
]
ListOption = Annotated[
    bool, typer.Option("--list", help="List the benchmarks and exit.")
]
HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="ADDRESS:PORT,NUMBER/COUNT",
        help="Join other processes: the address of the first, and which of how many "
        "this is, e.g. 10.0.0.1:1234,0/2. Under Slurm they find each other.",
    ),
]


def make_console(shows: bool = True) -> Console:
    """Return the console to show things on, wide where the output is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else WIDE, quiet=not shows)


def say(console: Console, line: str) -> None:
    """Print a line as it is: names of files hold brackets and colons."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def complain(line: str) -> None:
    """Print a line in red to the standard error."""
    Console(stderr=True).print(line, style="red", markup=False, soft_wrap=True)


def show_warnings(show: Callable[[str], None]) -> None:
    """Show warnings as lines from now on, without the place in the code."""

    def shown(message: Warning | str, *details: object, **more: object) -> None:
        show(f"warning: {mend_cache(str(message)) or message}")

    warnings.showwarning = shown


def log_once() -> None:
    """Show each message of a logger once: a command may read the same file often."""
    told: set[str] = set()

    def is_news(record: logging.LogRecord) -> bool:
        line, before = record.getMessage(), len(told)
        told.add(line)
        return len(told) > before

    if logging.lastResort is not None:  # what shows messages where nothing is set up
        logging.lastResort.addFilter(is_news)


@contextmanager
def warnings_as_lines(console: Console) -> Generator[None, None, None]:
    """Show warnings of a block as lines on a console."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        show_warnings(partial(say, console))
        yield


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written, before the work; make its folder."""
    if path is None:
        return
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder, not a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot create {path.parent}: {error}") from error
    if not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"cannot write to {path.parent}")


class PlainFlags:
    """A command whose help shows flags by their names alone, without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` included."""
        params = super().get_params(ctx)  # pyright: ignore[reportAttributeAccessIssue]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(PlainFlags, TyperCommand):
    """A command with plain flags; Ctrl-C ends it with what the notes of it say."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any):
        # Lines of a docstring end where those of a terminal do not: fill paragraphs.
        filled = help and re.sub(r"(?<!\n)\n(?!\n)", " ", help)
        super().__init__(*args, help=filled, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            words = ("stopped", *getattr(stop, "__notes__", ()))
            say(make_console(), "; ".join(words))
            raise typer.Exit(STOPPED) from stop


@contextmanager
def _usage_in_one_line() -> Generator[None, None, None]:
    """Answer wrong words in a command the way failures are told: in one line."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the answer to no words
            raise
        words = error.format_message().replace("Value error, ", "")
        own = words.removeprefix("Invalid value: ")  # ours say what to do, typer's not
        if own == words and error.ctx is not None:
            own = f"{words} (see {error.ctx.command_path} --help)"
        complain(f"error: {own}")
        raise typer.Exit(error.exit_code) from error


class Group(PlainFlags, TyperGroup):
    """A group of commands with plain flags; wrong usage is answered in one line."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Read the words in front of a command."""
        with _usage_in_one_line():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Read the other words and run the command."""
        with _usage_in_one_line():
            return super().invoke(ctx)


class LazyCommand(TyperCommand):
    """A command, or a group of them, that is imported when it is used.

    `load` returns it; until then only the name and the help are known.
    """

    def __init__(self, name: str, help: str, load: Callable[[], Any]):
        super().__init__(name, help=help)
        self.load = load

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Import the command and hand over to it."""
        return self.load().make_context(info_name, args, parent, **extra)


def lazy_commands(
    name: str, help: str, commands: Mapping[str, tuple[str, str]]
) -> typer.Typer:
    """Return a group whose commands are imported when they are used.

    `commands` says for each name where its function is, `package.module:function`, and
    what the list of commands tells about it.
    """

    class Commands(Group):
        def __init__(self, **settings: Any):
            super().__init__(**settings)
            # In the table of commands itself, where typer looks for the nearest name.
            self.commands = {
                name: LazyCommand(name, summary, partial(_load_command, name, place))
                for name, (place, summary) in commands.items()
            }

    app = _bare_app(name=name, help=help, cls=Commands, no_args_is_help=True)
    app.callback()(lambda: None)
    return app


def _load_command(name: str, place: str) -> Any:
    module, _, function = place.partition(":")
    alone = _bare_app()
    alone.command(name, cls=Command)(getattr(importlib.import_module(module), function))
    return typer.main.get_command(alone)


def _bare_app(**settings: Any) -> typer.Typer:
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, **settings)
