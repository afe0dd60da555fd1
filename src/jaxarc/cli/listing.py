"""`jaxrig arc list`: data sets, their splits and subsets, the tasks of a selector."""

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from jaxarc.cli.output import PathOption
from jaxarc.data.corpora import ConceptArcParser
from jaxarc.data.parsers import TaskParser
from jaxarc.data.sources import DATASETS, dataset_kind
from jaxarc.data.splits import available_named_subsets, resolve_selector
from jaxarc.tasks import DATASET_TITLES, open_dataset
from jaxrig.console import make_console

DOWNLOADS = {"Mini": "miniarc", "Concept": "conceptarc"}


def list_tasks(
    dataset: Annotated[
        str | None, typer.Argument(help="AGI1, AGI2, AGI12, Mini or Concept.")
    ] = None,
    selector: Annotated[
        str | None,
        typer.Option("--selector", "-s", help="A split, subset, concept or task id."),
    ] = None,
    path: PathOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show data sets; of one, its parts; of a part, the tasks and their sizes."""
    if dataset is None and (selector or path):
        raise typer.BadParameter("name the data set: jaxrig arc list AGI1 ...")
    console = make_console()
    if dataset is None:
        rows, columns = [describe_dataset(kind) for kind in DATASETS], DATASET_COLUMNS
    elif selector is None:
        rows, columns = describe_parts(dataset, path), PART_COLUMNS
    else:
        rows, columns = describe_tasks(dataset, selector, path), TASK_COLUMNS
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    _show(console, rows, columns)
    if dataset is not None and selector is not None:
        console.print(f"{len(rows)} tasks", highlight=False)


DATASET_COLUMNS = ("name", "title", "train", "evaluation", "all", "where")
PART_COLUMNS = ("selector", "kind", "tasks")
TASK_COLUMNS = ("task", "demonstrations", "tests", "inputs", "outputs", "colors")


def describe_dataset(kind: str) -> dict[str, Any]:
    """One data set in a row: how many tasks its splits hold, and where it is."""
    row: dict[str, Any] = {"name": kind, "title": DATASET_TITLES[kind]}
    if kind in DOWNLOADS:
        where = f"jaxrig arc download {DOWNLOADS[kind]}"
        return row | {"train": None, "evaluation": None, "all": None, "where": where}
    for split in ("train", "evaluation", "all"):
        row[split] = len(open_dataset(kind, split=split).tasks.ids)
    return row | {"where": "embedded"}


def describe_parts(dataset: str, path: str) -> list[dict[str, Any]]:
    """What a data set can be asked for: splits, concepts, subsets."""
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
    """The tasks of a selector: pairs, sizes of grids, colors."""
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
    """One size, or the smallest and largest height and width."""
    known = sizes[sizes[:, 0] > 0]
    if not len(known):
        return "unknown"
    low, high = known.min(axis=0), known.max(axis=0)
    words = [f"{a}" if a == b else f"{a}-{b}" for a, b in zip(low, high, strict=True)]
    return " x ".join(words)


def _widest(name: str, rows: list[dict[str, Any]]) -> int:
    return max(len(name), *(len(str(row[name] or "")) for row in rows))


def _show(
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
