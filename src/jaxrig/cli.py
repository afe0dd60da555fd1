"""The command `jaxrig`: doctor, bench, demo, and a sub-command for each system.

JAX and the systems are imported when a command needs them, not before: help, the
version and the answer to a typo come at once.
"""

import enum
import functools
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from jaxrig.console import (
    Command,
    Group,
    JsonFlag,
    LazyCommand,
    ListOption,
    OutOption,
    check_writable,
    complain,
    log_once,
    make_console,
    say,
    show_warnings,
)
from jaxrig.machine import (
    __version__,
    package_summary,
    system_entries,
)

if TYPE_CHECKING:
    from jaxrig.bench import Benchmark
    from jaxrig.report import Section
    from jaxrig.systems import Demo, System

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


_american = lambda word: BRITISH.sub(lambda found: AMERICAN[found.group()], word)
app = typer.Typer(
    name="jaxrig",
    cls=Group,
    invoke_without_command=True,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"token_normalize_func": _american},
)


REFUSED = 2  # what was given is wrong: the words, a file, or a value in it
# What refuses input; any other error is a failure of the work.
REFUSALS = (ValueError, FileNotFoundError, FileExistsError, IsADirectoryError)


class Progress(enum.StrEnum):
    """How to show progress."""

    auto = "auto"
    rich = "rich"
    text = "text"
    silent = "silent"


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
        bool,
        typer.Option("--no-cache", help="Cache no programs and no meshes on disk."),
    ] = False,
) -> None:
    """A compiled JAX core and the research systems built on it."""
    if version:
        typer.echo(f"jaxrig {__version__}")
        raise typer.Exit
    if not debug:
        sys.excepthook = _show_error
    show_warnings(complain)
    from jaxrig.compile_cache import forbid_caches, keep_compilations

    if no_cache:
        forbid_caches()
    else:
        keep_compilations()


@app.command("doctor", cls=Command)
def run_doctor() -> None:
    """Show versions, devices, memory and extras, and check that JAX compiles."""
    from jaxrig import doctor

    if not doctor.examine(make_console()):
        raise typer.Exit(1)


def _bench_command(
    benchmarks: "Callable[[], Sequence[Benchmark]]", prefix: str, doc: str
) -> Callable[..., None]:
    """Return the command `bench` for some benchmarks, whose names need no prefix."""

    def run_bench(
        names: Annotated[
            list[str] | None,
            typer.Argument(help="Names or prefixes (see --list). Default: all."),
        ] = None,
        json: JsonFlag = False,
        out: OutOption = None,
        list_only: ListOption = False,
    ) -> None:
        from jaxrig.bench import run_benchmarks

        # Names are understood with and without the system's in front.
        chosen = [f"{prefix}{name.removeprefix(prefix)}" for name in names or []]
        run_benchmarks(benchmarks(), chosen, out, json, list_only)

    run_bench.__doc__ = doc
    return run_bench


app.command("bench", cls=Command)(
    _bench_command(
        lambda: [b for system in _systems() for b in system.benchmarks()],
        "",
        "Run benchmarks on this machine; show rates, spread and compile time.",
    )
)


@app.command("demo", cls=Command)
def run_demo(
    out: Annotated[
        Path, typer.Option("--out", help="Output folder of report.html.")
    ] = Path("out"),
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Run only these systems.")
    ] = None,
    progress: Annotated[
        Progress, typer.Option("--progress", help="Progress display.")
    ] = Progress.auto,
) -> None:
    """Run every installed system on built-in data and write one report."""
    from jaxrig.report import Report, Section
    from jaxrig.report.page import machine_table

    report = Report(
        "jaxrig",
        "Puzzles for agents, particles in flows, causes in data: three research "
        "systems on one compiled JAX core. Everything on this page comes from one run "
        "of `jaxrig demo`.",
    )
    there = {s.name: (s.title, s.demo) for s in _systems() if s.demo is not None}
    for name in only or ():
        if name not in there:
            known = ", ".join(there)
            raise typer.BadParameter(f"unknown demo {name!r}; available: {known}")
    path = out / "report.html"
    check_writable(path)
    for name, (title, demo) in there.items():
        if not only or name in only:
            report.add(_run_demo(title, demo, progress, bool(only)))
    report.add(Section("Machine", machine_table()))
    say(make_console(), f"open {report.write(path)}")


@app.command("studio", cls=Command)
def run_studio(
    folder: Annotated[
        Path,
        typer.Option(
            "--folder", file_okay=False, help="Folder to read from and save to."
        ),
    ] = Path("studio"),
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="Port; 0 for any. Default: 8765 or next."
        ),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Do not open the browser.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, save nothing.")
    ] = False,
) -> None:
    """Open the studio in the browser: play ARC, track particles, find causes."""
    from jaxrig.machine import missing_extra, missing_modules

    if missing_modules("studio"):
        raise missing_extra("the studio needs starlette and uvicorn", "studio")
    from jaxrig.studio.rooms import Workspace
    from jaxrig.studio.server import serve

    if not folder.is_dir():
        if read_only:
            raise typer.BadParameter(f"{folder} is not a folder, and --read-only")
        folder.mkdir(parents=True)
    rooms = {s.name: (s.title, s.studio) for s in _systems() if s.studio is not None}
    console = make_console()
    where = Workspace(folder, read_only)
    serve(rooms, where, port, not no_open, lambda line: say(console, line))


def _systems() -> "list[System]":
    from jaxrig.systems import load_systems

    systems, problems = load_systems()
    for problem in problems.values():
        complain(f"warning: {problem}")
    return systems


def _run_demo(title: str, demo: "Demo", progress: str, asked: bool) -> "Section":
    """Return what a demo shows; unless asked for by name, it may lack an extra."""
    from jaxrig.progress import make_meter
    from jaxrig.report import Section, Text

    console = make_console()
    say(console, f"{title} ...")
    start, meter = time.perf_counter(), make_meter(progress)
    try:
        section = demo(meter)
    except ImportError as error:
        if asked:
            raise
        complain(f"{title}: skipped, {error}")
        return Section(title, Text(f"Skipped: {error}."))
    finally:  # also when interrupted: a bar left drawn hides the cursor
        meter.stop()
    say(console, f"{title}: {time.perf_counter() - start:.1f} s")
    return section


def _load_commands(name: str) -> TyperGroup:
    """Return the commands of a system, with `bench` added to them."""
    from jaxrig.systems import load_system

    system = load_system(name)
    if system.commands is None:
        raise typer.BadParameter(f"{name} has no commands")
    group = typer.main.get_group(system.commands())
    bench = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    doc = f"Run benchmarks on this machine; same as `jaxrig bench {name}`."
    run_bench = _bench_command(system.benchmarks, f"{name}.", doc)
    bench.command("bench", cls=Command)(run_bench)
    group.add_command(typer.main.get_command(bench))
    return group


def main() -> None:
    """Run the command `jaxrig` with the sub-commands of all installed systems."""
    command = typer.main.get_group(app)
    for entry in system_entries():
        load = functools.partial(_load_commands, entry.name)
        command.add_command(
            LazyCommand(entry.name, package_summary(entry.module), load)
        )
    log_once()
    try:
        command()
    except REFUSALS as error:
        if sys.excepthook is not _show_error:  # --debug
            raise
        complain(f"error: {error}")
        sys.exit(REFUSED)
