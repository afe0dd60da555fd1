"""`jaxrig causal eval`: the shipped models beside baselines, on held-out problems."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from acbo.baselines import predictors, proposers
from acbo.cli.inputs import SeedOption, refusing, split_names
from acbo.cli.output import make_table, write_pictures
from acbo.evaluation import Cell, Report, evaluate
from acbo.evaluation.evaluate import FAMILIES
from acbo.evaluation.report import EPISODES, PARENTS
from acbo.pictures import draw_calibration, draw_regret
from acbo.policy.advisor import Proposer, load_policy
from acbo.surrogate.predictor import load_surrogate
from jaxrig.atomic import atomic_write
from jaxrig.console import check_writable, make_console, say
from jaxrig.progress import make_meter

STRUCTURE = ("f1", "auprc", "log_loss", "calibration_error")
REGRET = ("simple_regret", "parent_rate")
DRAWN = ("surrogate", "exact", "regression"), ("policy", "exact_thompson", "random")


def find_systems(names: Sequence[str]) -> dict[str, Any]:
    """Systems by name, all of them where none is named; models load only if asked."""
    known = {
        "surrogate": load_surrogate,
        "policy": load_proposer,
        **{name: lambda p=p: p for name, p in predictors().items()},
        **{name: lambda p=p: p for name, p in proposers().items()},
    }
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"system {unknown[0]!r} is not one of: {', '.join(known)}")
    return {name: known[name]() for name in names or known}


def load_proposer() -> Proposer:
    """The shipped policy as evaluations use it."""
    policy = load_policy()
    return Proposer(policy.surrogate, policy.network, greedy=True)


def evaluate_models(
    scms: Annotated[int, typer.Option("--scms", min=1, help="Problems a cell.")] = 200,
    sizes: Annotated[str, typer.Option("--sizes", help="Variables, as 5,8.")] = "5,8",
    families: Annotated[
        str, typer.Option("--families", help="Kinds of graphs.")
    ] = ",".join(FAMILIES),
    rows: Annotated[
        str, typer.Option("--rows", help="Observational+interventional, as 20+10.")
    ] = "20+10",
    steps: Annotated[int, typer.Option("--steps", min=1, help="Interventions.")] = 5,
    systems: Annotated[
        str, typer.Option("--systems", help="Which, as policy,random; default: all.")
    ] = "",
    seed: SeedOption = 0,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to this file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for pictures.")
    ] = None,
) -> None:
    """Show how well causes are found and targets moved, with intervals and tests."""
    check_writable(json)
    console = make_console()
    with refusing():
        report = evaluate(
            find_systems(split_names(systems)),
            seed=seed,
            n_scms=scms,
            steps=steps,
            families=split_names(families),
            sizes=[_whole(word, "--sizes") for word in split_names(sizes)],
            rows=[_rows(word) for word in split_names(rows)],
            meter=make_meter(),
        )
    show_report(console, report)
    if json is not None:
        with atomic_write(json) as file:
            file.write(report.to_json().encode())
        say(console, f"wrote {json}")
    if out is not None:
        write_pictures(console, out, draw_report(report))


def show_report(console: Console, report: Report) -> None:
    """Two tables: structure, then regret; what no system was asked for is left out."""
    for title, kind, metrics in (
        ("causes of the target", PARENTS, STRUCTURE),
        ("moving the target", EPISODES, REGRET),
    ):
        rows = [row for row in report.rows() if row["kind"] == kind]
        if rows:
            console.print(report_table(rows, report.references, metrics, title))


def report_table(
    rows: Sequence[dict[str, Any]],
    references: Sequence[str],
    metrics: Sequence[str],
    title: str,
) -> Table:
    """A line for each cell and system: means with intervals, tests of the first."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    tested = [name for name in references if any(name == row["system"] for row in rows)]
    for row in rows:
        if row["metric"] not in metrics:
            continue
        cell = Cell(*(row[name] for name in Cell.__dataclass_fields__)).name
        line = lines.setdefault((cell, row["system"]), {})
        line[row["metric"]] = _interval(row)
        if row["metric"] == metrics[0]:
            for name in tested:
                test = row["tests"].get(name)
                line[f"p vs {name}"] = "" if test is None else f"{test['p_value']:.2g}"
    columns = (*metrics, *(f"p vs {name}" for name in tested))
    words = [name.replace("_", " ") for name in columns]
    body = [
        (*place, *(line.get(c, "") for c in columns)) for place, line in lines.items()
    ]
    return make_table(("cell", "system", *words), body, left=2, title=title)


def _interval(row: dict[str, Any]) -> str:
    if row["mean"] is None:
        return "-"
    return f"{row['mean']:.3f} ({row['low']:.2f} to {row['high']:.2f})"


def draw_report(report: Report) -> dict[str, str]:
    """Calibration and regret over all cells, where there is something to draw."""
    sums, curves = {}, {}
    for name in DRAWN[0]:
        found = [r for r in report.results if (r.system, r.kind) == (name, PARENTS)]
        bins = [r.bins.sum(axis=1) for r in found if r.bins is not None]
        if bins:
            sums[name] = np.sum(bins, axis=0)
    for name in DRAWN[1]:
        found = [r for r in report.results if (r.system, r.kind) == (name, EPISODES)]
        if found:
            rows = [r.curves["simple_regret"] for r in found]
            curves[name.replace("_", " ")] = np.concatenate(rows)
    drawn = {}
    if sums:
        drawn["calibration"] = draw_calibration(sums)
    if curves:
        drawn["regret"] = draw_regret(curves)
    return drawn


def _whole(word: str, option: str) -> int:
    if not word.isdecimal():
        raise ValueError(f"{option} has {word!r}: give whole numbers, as 5,8")
    return int(word)


def _rows(word: str) -> tuple[int, int]:
    parts = word.split("+")
    if len(parts) != 2:
        raise ValueError(f"--rows has {word!r}: give pairs, as 20+10,100+20")
    first, second = (_whole(part, "--rows") for part in parts)
    return first, second
