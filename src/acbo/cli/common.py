"""Options, tables and messages that the commands share; input is checked at once."""

import json as json_text
import math
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from acbo.named.names import check_known
from acbo.named.tables import DataTable, Experiments, observed_ranges
from jaxrig.atomic import write_file
from jaxrig.console import say

Range = tuple[float, float]
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


@dataclass(frozen=True)
class Given:
    """Experiments as read, and whose ranges had to be taken from the data."""

    experiments: Experiments
    observed: tuple[str, ...]


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in comma-separated text."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_edges(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs (cause, effect) from words such as `dose->yield`."""
    found = []
    for word in words:
        parts = tuple(part.strip() for part in word.split("->"))
        if len(parts) != 2 or not all(parts):
            raise ValueError(f"edge {word!r} is not CAUSE->EFFECT, e.g. 'dose->yield'")
        found.append(parts)
    return found


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
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(f"--range {word!r}: give the low end first, both finite")
        if name in found:
            raise ValueError(f"duplicate --range for {name!r}")
        found[name] = (low, high)
    return found


def read_experiments(
    table: DataTable,
    target: str,
    maximize: bool,
    ranges: Sequence[str],
    settable: str,
) -> Given:
    """Return the table as experiments, with a range for each settable variable."""
    given = parse_ranges(ranges)
    wanted = split_names(settable)
    for name in (*given, *wanted):
        check_known(name, table.names)
    if target in (*given, *wanted):
        raise ValueError(f"the target {target!r} cannot be set: remove it")
    outside = [name for name in given if wanted and name not in wanted]
    if outside:
        raise ValueError(f"--range includes {outside[0]!r}, which is not in --set")
    names = wanted or tuple(name for name in table.names if name != target)
    seen = observed_ranges(table)
    chosen = {name: given.get(name, seen[name]) for name in names}
    check_settings(table, given)
    experiments = Experiments(
        table.values,
        table.intervened,
        table.names,
        target,
        chosen,
        "MAXIMIZE" if maximize else "MINIMIZE",
        checked=True,
    )
    return Given(experiments, tuple(name for name in names if name not in given))


def check_settings(table: DataTable, ranges: Mapping[str, Range]) -> None:
    """Raise ValueError where a row sets a variable outside its given range."""
    values, flags = table.values, table.intervened
    for name, (low, high) in ranges.items():
        column = table.index(name)
        # Data are of single precision: an end itself must not count as outside.
        slack = 1e-6 * max(abs(low), abs(high))
        cells = values[:, column]
        wrong = flags[:, column] & ((cells < low - slack) | (cells > high + slack))
        for row in np.flatnonzero(wrong).tolist()[:1]:
            raise ValueError(
                f"row {row + 1} sets {name!r} to {cells[row]:g}, outside its range "
                f"{low:g} to {high:g}: widen the range or drop the row"
            )


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


def signed(value: float, std: float = 0.0) -> str:
    """Return a number for people, in few digits, or in as many as its std needs."""
    digits = 4
    if value and std > 0:
        digits = min(max(digits, math.ceil(math.log10(abs(value) / std)) + 2), 15)
    return f"{value:.{digits}g}"


def percent(value: float) -> str:
    """Return a probability as a percentage."""
    return f"{value:.0%}"
