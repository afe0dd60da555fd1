"""`jaxrig arc list`, `show` and `download`."""

import enum
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxarc.draw.svg import Drawing, draw_task, save_drawing
from jaxarc.draw.terminal import print_task
from jaxarc.tasks import parsers
from jaxarc.tasks.download import DatasetDownloader
from jaxarc.tasks.sources import DATASETS, dataset_kind
from jaxarc.tasks.splits import available_named_subsets, resolve_selector
from jaxrig.console import JsonFlag, check_writable, make_console, say
from jaxrig.report.text import count_of

PICTURES = (".svg", ".png", ".pdf")

TaskArgument = Annotated[str, typer.Argument(help="Id of a task, e.g. 00d62c1b.")]
DatasetOption = Annotated[
    str, typer.Option("--dataset", "-d", help="AGI1, AGI2, AGI12, Mini or Concept.")
]
PathOption = Annotated[
    str,
    typer.Option(
        help="Folder of the data set; required for Mini and Concept "
        "(see `jaxrig arc download`)."
    ),
]


class Download(enum.StrEnum):
    """What can be downloaded."""

    arc_agi_1 = "arc-agi-1"
    arc_agi_2 = "arc-agi-2"
    conceptarc = "conceptarc"
    miniarc = "miniarc"
    all = "all"


def check_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be written, or whose name has no known format."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{path.name} does not end in {', '.join(PICTURES)}")
    check_writable(path)


def write_picture(drawing: Drawing, path: Path, console: Console) -> None:
    """Save a picture and print where it is."""
    save_drawing(drawing, path)
    say(console, f"wrote {path}")


def list_tasks(
    dataset: Annotated[
        str | None, typer.Argument(help="AGI1, AGI2, AGI12, Mini or Concept.")
    ] = None,
    selector: Annotated[
        str | None,
        typer.Option("--selector", "-s", help="A split, subset, concept or task id."),
    ] = None,
    path: PathOption = "",
    as_json: JsonFlag = False,
) -> None:
    """List data sets, the parts of one, or the tasks of a part."""
    if dataset is None and (selector or path):
        raise typer.BadParameter("missing data set: jaxrig arc list AGI1 ...")
    if dataset is None:
        rows = [describe_dataset(kind) for kind in DATASETS]
    elif selector is None:
        rows = describe_parts(dataset, path)
    else:
        rows = describe_tasks(dataset, selector, path)
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    console = make_console()
    console.print(table_of(rows))
    if dataset is not None and selector is not None:
        console.print(count_of(len(rows), "task"), highlight=False)


def show(
    task: TaskArgument,
    dataset: DatasetOption = "AGI1",
    path: PathOption = "",
    svg: Annotated[
        Path | None, typer.Option(help="Write an SVG picture to this file.")
    ] = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Also show the outputs of the test pairs.")
    ] = False,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Print color numbers in the cells.")
    ] = False,
) -> None:
    """Show the demonstrations and tests of a task."""
    check_picture(svg)
    console = make_console()
    shown = parsers.open_dataset(dataset, path).get_raw_task(task)
    label = f"{task} ({dataset})"
    console.print(Text(label, "bold"))
    print_task(shown, show_numbers=numbers, console=console, answers=answer)
    if svg is not None:
        write_picture(draw_task(shown, label=label, answers=answer), svg, console)


def download(
    dataset: Annotated[Download, typer.Argument(help="Data set to download.")],
    output: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="Output folder.")
    ] = Path("data"),
    force: Annotated[
        bool, typer.Option("--force", help="Download again if the folder exists.")
    ] = False,
) -> None:
    """Download data sets with git; the only command that uses the network."""
    console = make_console()
    downloader = DatasetDownloader(output, progress=partial(say, console))
    if dataset is Download.all:
        folders = downloader.download_all(force)
    else:
        folders = [downloader.download(dataset.value, force)]
    for folder in folders:
        say(console, f"use it with --path {folder}")


def describe_dataset(kind: str) -> dict[str, Any]:
    """Count the tasks of the splits of a data set, and say where it is."""
    dataset = DATASETS[kind]
    row: dict[str, Any] = {"name": kind, "title": dataset.title}
    if dataset.download:
        where = f"jaxrig arc download {dataset.download}"
        return row | {"train": None, "evaluation": None, "all": None, "where": where}
    for split in ("train", "evaluation", "all"):
        row[split] = len(parsers.open_dataset(kind, split=split).tasks.ids)
    return row | {"where": "embedded"}


def describe_parts(dataset: str, path: str) -> list[dict[str, Any]]:
    """List the selectors of a data set: splits, concepts, subsets."""
    kind, parser = dataset_kind(dataset), parsers.open_dataset(dataset, path)
    splits = ("train", "evaluation", "all") if kind.startswith("AGI") else ("all",)
    rows = [("split", name) for name in splits]
    if isinstance(parser, parsers.ConceptArcParser):
        rows += [("concept", name) for name in parser.get_concept_groups()]
    subsets = available_named_subsets(dataset, include_builtin=False)
    rows += [("subset", name) for name in subsets]
    count = lambda name: len(resolve_selector(dataset, name, parser.config).ids)
    return [
        {"selector": name, "kind": what, "tasks": count(name)} for what, name in rows
    ]


def describe_tasks(dataset: str, selector: str, path: str) -> list[dict[str, Any]]:
    """Describe the tasks of a selector: pairs, sizes of grids, colors."""
    parser = parsers.open_dataset(dataset, path)
    ids = resolve_selector(dataset, selector, parser.config).ids
    rows = {task_id: row for row, task_id in enumerate(parser.tasks.ids)}
    return [_describe_task(parser, rows[task_id]) for task_id in ids]


def _describe_task(parser: parsers.TaskParser, row: int) -> dict[str, Any]:
    tasks = parser.tasks
    grids = slice(tasks.starts[row], tasks.starts[row + 1])
    sizes = tasks.sizes[grids]
    demonstrations, tests = tasks.counts[row].tolist()
    return {
        "task": tasks.ids[row],
        "demonstrations": demonstrations,
        "tests": tests,
        "inputs": _span(sizes[0::2]),
        "outputs": _span(sizes[1::2]),
        "colors": int(tasks.colors[grids].max()) + 1,
    }


def _span(sizes: np.ndarray) -> str:
    """Return one size, or the smallest and largest height and width."""
    known = sizes[sizes[:, 0] > 0]
    if not len(known):
        return "unknown"
    low, high = known.min(axis=0), known.max(axis=0)
    words = [f"{a}" if a == b else f"{a}-{b}" for a, b in zip(low, high, strict=True)]
    return " x ".join(words)


def table_of(rows: Sequence[Mapping[str, Any]], **options: Any) -> Table:
    """Return a table with a column for each name in the rows, numbers on the right."""
    table = Table(box=box.SIMPLE, **options)
    first, *_ = rows[0]
    for name in rows[0]:
        cells = [_cell(row[name]) for row in rows]
        # Ids may be long: they are folded before any other column is cut.
        table.add_column(
            name,
            justify="right" if all(x[:1] in "-0123456789" for x in cells) else "left",
            overflow="fold",
            no_wrap=name != first,
            min_width=None if name == first else max(map(len, (name, *cells))),
        )
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)
