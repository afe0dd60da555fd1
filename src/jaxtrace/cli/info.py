"""`jaxrig trace info`: what files hold, before anything is tracked in them."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from jaxrig.console import make_console, warnings_as_lines
from jaxrig.memory import MIB
from jaxtrace.files.snapshot import GridAxes
from jaxtrace.files.stores import open_store
from jaxtrace.io.sources import open_slices
from jaxtrace.workflow.case import TABLES, load_case
from jaxtrace.workflow.conversion import describe_store, is_store


def show_info(
    files: Annotated[
        list[str],
        typer.Argument(help="Patterns, folders, collections, stores or cases."),
    ],
) -> None:
    """Show what files hold: slices and times, extent, speeds, frames, or a case."""
    console = make_console()
    for name in files:
        with warnings_as_lines(console):
            _show(console, name, describe(name))


def describe(name: str) -> dict[str, Any]:
    """What a path or pattern holds, by name of the fact."""
    path = Path(name)
    if path.suffix.lower() == ".toml":
        return _case_facts(path)
    if is_store(path):
        with open_store(path, "r") as store:
            return describe_store(store)
    return _series_facts(name)


def _case_facts(path: Path) -> dict[str, Any]:
    case = load_case(path)
    tables = {name: getattr(case, name) for name in TABLES}
    return {
        f"{name}.{key}": value
        for name, table in tables.items()
        if table is not None
        for key, value in table.to_mapping().items()
    }


def _series_facts(name: str) -> dict[str, Any]:
    reader = open_slices(name)
    geometry, values = reader.read_slice(0)
    points = geometry.points() if isinstance(geometry, GridAxes) else geometry.points
    speeds = np.linalg.norm(values.reshape(-1, 3), axis=1)
    if isinstance(geometry, GridAxes):
        nodes = f"grid of {' x '.join(map(str, geometry.shape))} nodes"
    else:
        nodes = f"mesh of {geometry.n_points:,} nodes and {geometry.n_cells:,} cells"
    times = np.asarray(reader.times)
    facts: dict[str, Any] = {"slices": len(reader)}
    facts["times"] = f"{times[0]:.6g} to {times[-1]:.6g}"
    facts["geometry"] = nodes
    facts["lowest corner"] = _numbers(points.min(axis=0))
    facts["highest corner"] = _numbers(points.max(axis=0))
    facts["speed of the first slice"] = (
        f"{speeds.min():.4g} to {speeds.max():.4g}, mean {speeds.mean():.4g}"
    )
    facts["memory of all slices"] = f"{values.nbytes * len(reader) / MIB:,.1f} MiB"
    return facts | {f"note {i}": note for i, note in enumerate(reader.describe(), 1)}


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.6g}" for value in np.asarray(values).tolist())


def _show(console: Console, name: str, facts: dict[str, Any]) -> None:
    table = Table(box=box.SIMPLE, title=name, show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        table.add_row(key, str(value))
    console.print(table, markup=False)
