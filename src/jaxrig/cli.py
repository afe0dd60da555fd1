"""The command `jaxrig`: doctor, bench, demo, and a sub-command for each system."""

import enum
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer
from rich.console import Console

from jaxrig import compilation, doctor, machine
from jaxrig.bench_command import JsonOption, ListOption, run_benchmarks
from jaxrig.console import WIDE
from jaxrig.outputs import check_writable
from jaxrig.progress import Meter, make_meter
from jaxrig.report import Report, Section, Text
from jaxrig.report import Table as ReportTable
from jaxrig.systems import System, find_systems

app = typer.Typer(
    name="jaxrig",
    invoke_without_command=True,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)
complaints = Console(stderr=True, soft_wrap=True)


class Progress(enum.StrEnum):
    """How to show progress."""

    auto = "auto"
    rich = "rich"
    text = "text"
    silent = "silent"


def _show_error(
    kind: type[BaseException], error: BaseException, _: TracebackType | None
):
    """One line instead of a traceback: what went wrong is in the message."""
    text = str(error) or kind.__name__
    complaints.print(f"error: {text}", style="red", markup=False)


@app.callback()
def configure(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Keep no compiled programs on disk.")
    ] = False,
) -> None:
    """One compiled JAX core and the research systems on it."""
    if version:
        console.print(f"jaxrig {machine.package_versions(['jaxrig'])['jaxrig']}")
        raise typer.Exit
    if not debug:
        sys.excepthook = _show_error
    if not no_cache:
        compilation.keep_compilations()


@app.command("doctor")
def run_doctor() -> None:
    """Show versions, devices, memory, extras, and whether compiling works here."""
    if not doctor.examine(console):
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
    known = [b for system in find_systems()[0] for b in system.benchmarks]
    run_benchmarks(known, names or [], json, list_only, console)


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
    report = Report("jaxrig demo", "Every figure on this page comes from one run.")
    chosen = _with_demo(only or [])
    check_writable(out / "report.html")
    for system, demo in chosen:
        report.add(_run_one(system.title, demo, progress, bool(only)))
    report.add(_machine_section())
    path = report.write(out / "report.html")
    console.print(f"open {path}", markup=False)


def _run_one(
    title: str, demo: Callable[[Meter], Section], progress: Progress, asked: bool
) -> Section:
    """What a demo shows; unless asked for by name, it may lack an extra."""
    console.print(f"{title} ...", markup=False)
    start, meter = time.perf_counter(), make_meter(progress)
    try:
        section = demo(meter)
    except ImportError as error:
        if asked:
            raise
        complaints.print(f"{title}: left out, {error}", style="red", markup=False)
        return Section(title, Text(f"Left out: {error}."))
    finally:  # also when interrupted: a bar left drawn hides the cursor
        meter.stop()
    seconds = time.perf_counter() - start
    console.print(f"{title}: {seconds:.1f} s", markup=False)
    return section


def _with_demo(only: list[str]) -> list[tuple[System, Callable[[Meter], Section]]]:
    systems = [(s, s.demo) for s in find_systems()[0] if s.demo is not None]
    unknown = set(only) - {s.name for s, _ in systems}
    if unknown:
        there = ", ".join(s.name for s, _ in systems)
        raise typer.BadParameter(f"no demo {sorted(unknown)[0]!r}; there are: {there}")
    return [(s, demo) for s, demo in systems if not only or s.name in only]


def _machine_section() -> Section:
    facts = machine.describe_machine()
    facts["memory"] = f"{facts.pop('memory_bytes') / 2**30:.1f} GiB"
    facts |= machine.package_versions()
    rows = [
        (name, ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in facts.items()
    ]
    text = Text("What this page was made on.")
    return Section("Machine", text, ReportTable(("what", "value"), rows))


def main() -> None:
    """Entry point of the command `jaxrig`."""
    systems, broken = find_systems()
    for system in systems:
        if system.app is not None:
            app.add_typer(system.app, name=system.name, help=system.title)
    for name, why in broken.items():
        complaints.print(f"warning: {name} does not load: {why}", markup=False)
    app()
