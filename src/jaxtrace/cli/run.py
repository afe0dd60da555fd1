"""`jaxrig trace run` and `resume`: a case from its file to its results."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jaxrig.console import make_console, say, warnings_as_lines
from jaxrig.progress import make_meter
from jaxrig.report.text import format_number
from jaxtrace.workflow.case import CASE_FILE, load_case
from jaxtrace.workflow.run import Outcome, resume_case, run_case

STOPPED = 130  # what a shell reports of a program that was interrupted


def run(
    case: Annotated[Path, typer.Argument(help="A case, as `jaxrig trace new` writes.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run in the same folder.")
    ] = False,
) -> None:
    """Track the particles of a case, then draw, export and report."""
    console = make_console()
    with warnings_as_lines(console):
        read = load_case(case)
        folder = read.folder
        start = lambda: run_case(
            read,
            resume=resume,
            overwrite=overwrite,
            meter=make_meter(),
            tell=lambda line: say(console, line),
        )
        _finish(console, folder, start)


def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
) -> None:
    """Go on with a run that was stopped, from its folder alone."""
    console = make_console()
    with warnings_as_lines(console):
        start = lambda: resume_case(
            folder, meter=make_meter(), tell=lambda line: say(console, line)
        )
        _finish(console, folder, start)


def _finish(console: Console, folder: Path, start: Callable[[], Outcome]) -> None:
    try:
        outcome = start()
    except KeyboardInterrupt as error:
        begun = (folder / CASE_FILE).is_file()
        on = f"; go on with: jaxrig trace resume {folder}" if begun else ""
        say(console, f"stopped{on}")
        raise typer.Exit(STOPPED) from error
    seconds = outcome.seconds
    if not outcome.share:
        say(console, "all frames were there already; the rest was made anew")
        return
    say(
        console,
        f"{seconds['tracking']:.1f} s of tracking, {format_number(outcome.rate)} "
        f"particle-steps per second, {seconds['compiling']:.1f} s to compile",
    )
