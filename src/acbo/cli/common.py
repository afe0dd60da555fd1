"""Options, tables and messages that the commands share; input is checked at once."""

import functools
import inspect
import json as json_text
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from acbo.types import Range, as_float
from jaxrig.atomic import write_file
from jaxrig.console import say

SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]
KnowOption = Annotated[
    list[str] | None,
    typer.Option("--know", help="Edge that exists, e.g. 'dose->yield'. Repeatable."),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option("--forbid", help="Edge that cannot exist, e.g. 'yield->dose'."),
]
BatchOption = Annotated[
    int | None,
    typer.Option("--batch", min=1, help="Number of experiments to make at a time."),
]
AtOnceOption = Annotated[
    int | None,
    typer.Option("--at-once", min=1, help="2 to set one or two variables at once."),
]
IgnoreOption = Annotated[
    str, typer.Option("--ignore", help="Columns to leave out, e.g. id,comment.")
]


@dataclass(frozen=True)
class ProblemOptions:
    """The options that state a problem: what to optimize, what may be set, and what is
    known about the causes.
    """

    target: Annotated[str, typer.Option("--target", help="Variable to optimize.")]
    # Not one option of two names, of which the last would win.
    maximize: Annotated[bool, typer.Option("--maximize", help="Raise the target.")] = (
        False
    )
    minimize: Annotated[bool, typer.Option("--minimize", help="Lower the target.")] = (
        False
    )
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Range of a variable, e.g. X=-5:5, with a step X=1:9:2, or its levels "
            "X=1,2,5. Can be repeated.",
        ),
    ] = None
    settable: Annotated[
        str,
        typer.Option(
            "--set", help="Variables that can be set, e.g. X,Z. Default: all."
        ),
    ] = ""
    know: KnowOption = None
    forbid: ForbidOption = None
    tiers: Annotated[
        str,
        typer.Option(
            "--tiers", help="Causes before effects, e.g. 'heat,acid < growth'."
        ),
    ] = ""
    cost: Annotated[
        str,
        typer.Option("--cost", help="Cost of setting a variable, e.g. heat=3,acid=1."),
    ] = ""
    avoid: Annotated[
        list[str] | None,
        typer.Option("--avoid", help="Forbidden region, e.g. 'heat>80 & acid<4'."),
    ] = None
    batch: BatchOption = None
    at_once: AtOnceOption = None
    replicates: Annotated[
        bool,
        typer.Option("--replicates", help="Tell how often to repeat an experiment."),
    ] = False
    ignore: IgnoreOption = ""

    def arguments(self) -> dict[str, Any]:
        """Return what `acbo.suggest` takes; what was not given is left out."""
        if self.maximize and self.minimize:
            raise ValueError("--maximize and --minimize: the target has one direction")
        ranges, levels = parse_ranges(self.ranges or ())
        found = vars(self) | {
            "ranges": ranges,
            "levels": levels,
            "cost": parse_costs(self.cost),
            "settable": split_names(self.settable),
            "ignore": split_names(self.ignore),
        }
        way = self.maximize if found.pop("minimize") or self.maximize else None
        needed = {"target": self.target, "maximize": way}
        return {name: value for name, value in found.items() if value} | needed


def with_options(group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of a dataclass as options; its
    last argument is one of these.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        *own, last = inspect.signature(command).parameters.values()
        options = inspect.signature(group).parameters

        @functools.wraps(command)
        def run(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in options}
            command(**given, **{last.name: group(**chosen)})

        by_name = inspect.Parameter.KEYWORD_ONLY  # --seed may stand before --target
        every = [each.replace(kind=by_name) for each in (*own, *options.values())]
        shown: Any = run
        shown.__signature__ = inspect.Signature(every)  # what typer reads
        return shown

    return decorate


@contextmanager
def refusing() -> Generator[None, None, None]:
    """Wrong input ends the command with the sentence that says what is wrong."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in comma-separated text."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_ranges(words: Sequence[str]) -> tuple[dict[str, Range], dict[str, Any]]:
    """Return ranges and levels by name from words such as `X=-5:5` and `X=1,2,5`."""
    ranges: dict[str, Range] = {}
    levels: dict[str, Any] = {}
    for word in words:
        name, _, given = (part.strip() for part in word.rpartition("="))
        # Not by both: the comma of 20:40,5 is decimal and no step.
        parts = given.split(":" if ":" in given else ",")
        if not name or len(parts) < 2 or (":" in given and len(parts) > 3):
            raise ValueError(f"--range {word!r} is not NAME=LOW:HIGH, e.g. X=-5:5")
        if name in ranges or name in levels:
            raise ValueError(f"duplicate --range for {name!r}")
        try:
            numbers = [float(part) for part in parts]
        except ValueError as error:
            raise ValueError(
                f"--range {word!r}: {error}; give numbers with decimal points (text of "
                "two levels needs no range)"
            ) from error
        if "," in given:
            levels[name] = numbers
        elif len(numbers) == 2:
            ranges[name] = (numbers[0], numbers[1])
        else:
            low, high, step = numbers
            if not (step > 0 and low < high and math.isfinite(high - low)):
                raise ValueError(
                    f"--range {word!r}: LOW:HIGH:STEP needs a step above 0"
                )
            count = math.floor((high - low) / step + 1e-9)
            levels[name] = [low + step * number for number in range(count + 1)]
    return ranges, levels


def parse_costs(words: str) -> dict[str, float]:
    """Return costs by name from words such as `heat=3,acid=1`."""
    found = {}
    for word in split_names(words):
        name, _, given = (part.strip() for part in word.rpartition("="))
        if not name:
            raise ValueError(f"--cost {word!r} is not NAME=NUMBER, e.g. heat=3")
        found[name] = as_float(given, f"--cost of {name!r}")
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
