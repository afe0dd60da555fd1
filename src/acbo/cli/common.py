"""Options, tables and messages that the commands share; input is checked at once."""

import json as json_text
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from acbo.types import Range
from jaxrig.atomic import write_file
from jaxrig.console import say

DataArgument = Annotated[
    Path,
    typer.Argument(
        exists=True,
        dir_okay=False,
        readable=True,
        help="CSV table with a header; the column `intervention_targets` names the "
        "variables set in each row.",
    ),
]
TargetOption = Annotated[str, typer.Option("--target", help="Variable to optimize.")]
MaximizeOption = Annotated[
    bool | None,
    typer.Option("--maximize/--minimize", help="Direction in which to optimize."),
]
RangeOption = Annotated[
    list[str] | None,
    typer.Option("--range", help="Range of a variable, e.g. X=-5:5. Can be repeated."),
]
SettableOption = Annotated[
    str,
    typer.Option("--set", help="Variables that can be set, e.g. X,Z. Default: all."),
]
KnowOption = Annotated[
    list[str] | None,
    typer.Option("--know", help="Edge that exists, e.g. 'dose->yield'. Repeatable."),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option("--forbid", help="Edge that cannot exist, e.g. 'yield->dose'."),
]
IgnoreOption = Annotated[
    str, typer.Option("--ignore", help="Columns to leave out, e.g. id,comment.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]


@contextmanager
def refusing() -> Generator[None, None, None]:
    """Wrong input ends the command with the sentence that says what is wrong."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise typer.BadParameter(str(error)) from error


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in comma-separated text."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_ranges(words: Sequence[str]) -> dict[str, Range]:
    """Return ranges by name from words such as `X=-5:5`."""
    found: dict[str, Range] = {}
    for word in words:
        match = re.fullmatch(r"\s*(.+?)\s*=\s*([^=:]+):([^=:]+)", word)
        if match is None:
            raise ValueError(f"--range {word!r} is not NAME=LOW:HIGH, e.g. X=-5:5")
        name = match[1]
        try:
            low, high = float(match[2]), float(match[3])
        except ValueError as error:
            raise ValueError(
                f"--range {word!r}: {match[2]!r} and {match[3]!r} must be numbers"
            ) from error
        if name in found:
            raise ValueError(f"duplicate --range for {name!r}")
        found[name] = (low, high)
    return found


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: int = 1,
    title: str = "",
) -> Table:
    """Return a table of text; columns after the first `left` are right-aligned."""
    table = Table(box=box.SIMPLE, title=title or None, title_justify="left")
    for place, column in enumerate(columns):
        side = "left" if place < left else "right"
        table.add_column(column, justify=side, overflow="fold")
    for row in rows:  # brackets in names are not markup
        table.add_row(*(text.replace("[", "\\[") for text in row))
    return table


def show_json(console: Console, content: Any) -> None:
    """Print a value as JSON on the console, whole lines."""
    text = json_text.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    say(console, text)


def write_pictures(console: Console, folder: Path, pictures: dict[str, str]) -> None:
    """Write drawings by name into a folder, and say where each is."""
    for name, svg in pictures.items():
        say(console, f"wrote {write_file(folder / f'{name}.svg', svg)}")
