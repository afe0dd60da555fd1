"""`jaxrig causal campaign`, `ask`, `tell` and `report`: experiments one after another,
kept in a folder.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from acbo.campaign import Campaign, show_row
from acbo.cli.common import (
    AtOnceOption,
    BatchOption,
    ProblemOptions,
    refusing,
    show_json,
    split_names,
    with_options,
)
from acbo.types import MINUS
from jaxrig.console import (
    JsonFlag,
    check_writable,
    make_console,
    say,
    warnings_as_lines,
)

FolderArgument = Annotated[Path, typer.Argument(help="Folder of the campaign.")]


@with_options(ProblemOptions)
def start(
    folder: FolderArgument,
    data: Annotated[
        Path,
        typer.Option(
            "--data", exists=True, dir_okay=False, help="CSV table of the rows so far."
        ),
    ],
    *,
    problem: ProblemOptions,
) -> None:
    """Start a campaign of experiments in a folder.

    The folder holds the problem (campaign.toml), every row (rows.csv) and what was
    asked for (asked.jsonl). The first two may be edited.
    """
    console = make_console()
    with refusing():
        campaign = Campaign.create(folder, data, **problem.arguments())
        table = campaign.read()
    say(console, (folder / "campaign.toml").read_text(encoding="utf-8").rstrip())
    for note in table.notes:
        say(console, note)
    say(
        console,
        f"started {folder} with {len(table.values)} rows of {len(table.names)} "
        f"variables; next: jaxrig causal ask {folder}",
    )


def ask(
    folder: FolderArgument,
    again: Annotated[
        bool,
        typer.Option("--again", help="Forget what is open, and think again."),
    ] = False,
    batch: BatchOption = None,
    at_once: AtOnceOption = None,
    json: JsonFlag = False,
) -> None:
    """Ask a campaign for the next experiment.

    Until its outcome is told, the answer stays the same. --batch and --at-once
    replace what the campaign was started with.
    """
    console = make_console()
    with refusing():
        campaign = Campaign(folder)
        waiting = not again and bool(campaign.open_trials())
        given = {"batch": batch, "at_once": at_once}
        found = campaign.ask(again, **{n: v for n, v in given.items() if v is not None})
        names = [name for name in campaign.read().names if name not in found.settings]
    if json:
        show_json(console, asdict(found))
        return
    for note in found.notes:
        say(console, note)
    say(console, str(found))
    if waiting:
        say(console, "asked for before and not told yet; --again forgets it")
    values = " ".join(
        f"'{name}=...'" if " " in name else f"{name}=..." for name in names
    )
    say(console, f"then: jaxrig causal tell {folder} {values}")


def tell(
    folder: FolderArgument,
    values: Annotated[
        list[str] | None,
        typer.Argument(help="What was measured, e.g. yield=53.1 'Temp (K)=310'."),
    ] = None,
    settable: Annotated[
        str,
        typer.Option("--set", help="What was set, e.g. X,Z. Default: what was asked."),
    ] = "",
    observed: Annotated[
        bool, typer.Option("--observed", help="Nothing was set.")
    ] = False,
    number: Annotated[
        int | None,
        typer.Option(
            "--experiment", help="Number of the experiment that this answers."
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take back the row told last.")
    ] = False,
) -> None:
    """Tell a campaign what came out of an experiment.

    What looks wrong is kept, with a warning.
    """
    console = make_console()
    with refusing(), warnings_as_lines(console):
        campaign = Campaign(folder)
        if undo:
            if values:
                raise ValueError("--undo takes no values: tell them afterwards")
            gone = campaign.undo()
            say(console, f"took back {show_row(gone)}")
            return
        if observed and settable:
            raise ValueError("--observed says that nothing was set: drop --set")
        names = () if observed else split_names(settable) or None
        count = campaign.tell(_parse(values or ()), names, number)
        row = campaign.told()[-1]
    say(console, f"row {count}: {show_row(row)}")


def _parse(words: Iterable[str]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for word in words:
        name, _, value = (part.strip() for part in word.rpartition("="))
        number = value.replace(MINUS, "-")  # copied from a sentence
        if not name:
            raise ValueError(f"{word!r} is not NAME=VALUE, e.g. yield=53.1")
        if name in found:
            raise ValueError(f"{name!r} is given twice: give one value")
        comma = re.fullmatch(r"([-+]?\d+),(\d+)", number)
        if comma and len(comma[2]) == 3 and comma[1].strip("+-0"):
            raise ValueError(
                f"{word!r}: the comma may be decimal or separate thousands: write "
                f"{comma[1]}.{comma[2]} or {comma[1]}{comma[2]}"
            )
        try:
            found[name] = float(".".join(comma.groups()) if comma else number)
        except ValueError:  # a text, which the campaign may know as a level
            found[name] = value
    return found


def report(
    folder: FolderArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Page to write. Default: report.html in the folder."
        ),
    ] = None,
) -> None:
    """Write a page of how a campaign stands."""
    check_writable(out)
    console = make_console()
    with refusing():
        written = Campaign(folder).report(out)
    say(console, f"wrote {written}")
