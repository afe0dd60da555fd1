"""List, show and download tasks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxarc.draw.svg import Drawing, save_drawing
from jaxarc.draw.tasks import draw_task
from jaxarc.draw.terminal import print_task
from jaxarc.tasks.download import DatasetDownloader
from jaxarc.tasks.parsers import (
    DATASET_TITLES,
    ConceptArcParser,
    TaskParser,
    open_dataset,
)
from jaxarc.tasks.sources import DATASETS, dataset_kind
from jaxarc.tasks.splits import available_named_subsets, resolve_selector
from jaxrig.console import make_console

DOWNLOADS = {"Mini": "miniarc", "Concept": "conceptarc"}


DATASET_COLUMNS = ("name", "title", "train", "evaluation", "all", "where")
PART_COLUMNS = ("selector", "kind", "tasks")
TASK_COLUMNS = ("task", "demonstrations", "tests", "inputs", "outputs", "colors")


def show_task(
    task: str, dataset: str, path: str, svg: Path | None, answer: bool, numbers: bool
) -> None:
    """Print a task, and write it as a picture if asked to."""
    console = make_console()
    shown = open_dataset(dataset, path).get_raw_task(task)
    label = f"{task} ({dataset})"
    console.print(Text(label, "bold"))
    print_task(shown, show_numbers=numbers, console=console, answers=answer)
    if svg is not None:
        write_picture(draw_task(shown, label=label, answers=answer), svg, console)


def write_picture(drawing: Drawing, path: Path, console: Console) -> None:
    """Save a picture and print where it is."""
    save_drawing(drawing, path)
    console.print(f"wrote {path}", markup=False, highlight=False)


def print_listing(
    dataset: str | None, selector: str | None, path: str, as_json: bool
) -> None:
    """Print data sets, the parts of one, or the tasks of a part."""
    if dataset is None:
        rows, columns = [describe_dataset(kind) for kind in DATASETS], DATASET_COLUMNS
    elif selector is None:
        rows, columns = describe_parts(dataset, path), PART_COLUMNS
    else:
        rows, columns = describe_tasks(dataset, selector, path), TASK_COLUMNS
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    console = make_console()
    _print_rows(console, rows, columns)
    if dataset is not None and selector is not None:
        console.print(f"{len(rows)} tasks", highlight=False)


def describe_dataset(kind: str) -> dict[str, Any]:
    """Count the tasks of the splits of a data set, and say where it is."""
    row: dict[str, Any] = {"name": kind, "title": DATASET_TITLES[kind]}
    if kind in DOWNLOADS:
        where = f"jaxrig arc download {DOWNLOADS[kind]}"
        return row | {"train": None, "evaluation": None, "all": None, "where": where}
    for split in ("train", "evaluation", "all"):
        row[split] = len(open_dataset(kind, split=split).tasks.ids)
    return row | {"where": "embedded"}


def describe_parts(dataset: str, path: str) -> list[dict[str, Any]]:
    """List the selectors of a data set: splits, concepts, subsets."""
    kind, parser = dataset_kind(dataset), open_dataset(dataset, path)
    splits = ("train", "evaluation", "all") if kind.startswith("AGI") else ("all",)
    rows = [("split", name) for name in splits]
    if isinstance(parser, ConceptArcParser):
        rows += [("concept", name) for name in parser.get_concept_groups()]
    subsets = available_named_subsets(dataset, include_builtin=False)
    rows += [("subset", name) for name in subsets]
    count = lambda name: len(resolve_selector(dataset, name, parser.config).ids)
    return [
        {"selector": name, "kind": what, "tasks": count(name)} for what, name in rows
    ]


def describe_tasks(dataset: str, selector: str, path: str) -> list[dict[str, Any]]:
    """Describe the tasks of a selector: pairs, sizes of grids, colors."""
    parser = open_dataset(dataset, path)
    ids = resolve_selector(dataset, selector, parser.config).ids
    rows = {task_id: row for row, task_id in enumerate(parser.tasks.ids)}
    return [_describe_task(parser, rows[task_id]) for task_id in ids]


def _describe_task(parser: TaskParser, row: int) -> dict[str, Any]:
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


def _widest(name: str, rows: list[dict[str, Any]]) -> int:
    return max(len(name), *(len(str(row[name] or "")) for row in rows))


def _print_rows(
    console: Console, rows: list[dict[str, Any]], columns: tuple[str, ...]
) -> None:
    table = Table(box=box.SIMPLE)
    for name in columns:
        numeric = all(isinstance(row[name], int | None) for row in rows)
        # Ids may be long: they are folded before any other column is cut.
        table.add_column(
            name,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=name != columns[0],
            min_width=None if name == columns[0] else _widest(name, rows),
        )
    for row in rows:
        values = (row[name] for name in columns)
        table.add_row(*("" if value is None else str(value) for value in values))
    console.print(table)


def download_datasets(dataset: str, output: Path, force: bool) -> None:
    """Download one data set, or "all", into a folder."""
    console = make_console()
    tell = lambda line: console.print(line, markup=False, highlight=False)
    downloader = DatasetDownloader(output, progress=tell)
    if dataset == "all":
        folders = downloader.download_all(force)
    else:
        folders = [downloader.download(dataset, force)]
    for folder in folders:
        tell(f"use it with --path {folder}")
