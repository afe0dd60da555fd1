"""`jaxrig causal eval`, `optimize` and `problems`: the shipped models beside baselines,
on held-out models and on problems of the field.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from acbo.baselines import predictors, proposers
from acbo.cli import common
from acbo.evaluation import Report, evaluate
from acbo.evaluation.evaluate import FAMILIES
from acbo.evaluation.report import EPISODES, PARENTS, Result
from acbo.pictures import charts
from acbo.pictures.run import draw_run, run_page, settings
from acbo.policy.advisor import load_policy
from acbo.problems import get, names
from acbo.runs import Run, run_problem
from acbo.surrogate.predictor import load_surrogate
from acbo.types import check_known, percent, signed
from jaxrig.atomic import write_file
from jaxrig.console import JsonFlag, check_writable, make_console, say
from jaxrig.progress import make_meter

DRAWN = {
    PARENTS: ("surrogate", "exact", "regression"),
    EPISODES: ("policy", "exact_thompson", "random"),
}


def find_systems(names: Sequence[str]) -> dict[str, Any]:
    """Return systems by name, all if none is named; only these are loaded."""
    known = {
        "surrogate": load_surrogate,
        "policy": lambda: load_policy().proposer(),
        **{name: lambda p=p: p for name, p in predictors().items()},
        **{name: lambda p=p: p for name, p in proposers().items()},
    }
    for name in names:
        check_known(name, known, "system")
    return {name: known[name]() for name in names or known}


def evaluate_models(
    scms: Annotated[
        int, typer.Option("--scms", min=1, help="Number of models per cell.")
    ] = 200,
    sizes: Annotated[
        str, typer.Option("--sizes", help="Numbers of variables, e.g. 5,8.")
    ] = "5,8",
    families: Annotated[
        str, typer.Option("--families", help="Graph families.")
    ] = ",".join(FAMILIES),
    rows: Annotated[
        str,
        typer.Option("--rows", help="Observational + interventional rows, e.g. 20+10."),
    ] = "20+10",
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Number of interventions.")
    ] = 5,
    systems: Annotated[
        str,
        typer.Option(
            "--systems", help="Methods to evaluate, e.g. policy,random. Default: all."
        ),
    ] = "",
    seed: common.SeedOption = 0,
    json: JsonFlag = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Output folder for results.json and pictures."),
    ] = None,
) -> None:
    """Evaluate how well methods find causes and optimize targets."""
    results = None if out is None else out / "results.json"
    check_writable(results)
    console = make_console()
    with common.refusing():
        report = evaluate(
            find_systems(common.split_names(systems)),
            seed=seed,
            n_scms=scms,
            steps=steps,
            families=common.split_names(families),
            sizes=[_whole(word, "--sizes") for word in common.split_names(sizes)],
            rows=[_rows(word) for word in common.split_names(rows)],
            meter=make_meter(),
        )
    told = Console(stderr=True) if json else console
    if json:
        typer.echo(report.to_json())
    else:
        say(console, report.table())
    if out is not None and results is not None:
        say(told, f"wrote {write_file(results, report.to_json())}")
        common.write_pictures(told, out, draw_report(report))


def draw_report(report: Report) -> dict[str, str]:
    """Draw calibration and regret over all cells, if there are any."""

    def joined(kind: str, array: Callable[[Result], Any]) -> dict[str, np.ndarray]:
        found: dict[str, list[np.ndarray]] = {}
        for r in report.results:
            if r.kind == kind and r.system in DRAWN[kind]:
                found.setdefault(r.system, []).append(array(r))
        names = [name for name in DRAWN[kind] if name in found]
        return {name: np.concatenate(found[name]) for name in names}

    drawn = {}
    if sums := joined(PARENTS, lambda r: r.bins):
        total = {name: bins.sum(0) for name, bins in sums.items()}
        drawn["calibration"] = charts.draw_calibration(total)
    if curves := joined(EPISODES, lambda r: r.curves["simple_regret"]):
        shown = {name.replace("_", " "): curve for name, curve in curves.items()}
        drawn["regret"] = charts.draw_regret(shown)
    return drawn


def _whole(word: str, option: str) -> int:
    if not word.isdecimal():
        raise ValueError(f"{option} has {word!r}: use whole numbers, e.g. 5,8")
    return int(word)


def _rows(word: str) -> tuple[int, int]:
    parts = word.split("+")
    if len(parts) != 2:
        raise ValueError(f"--rows has {word!r}: use pairs, e.g. 20+10,100+20")
    first, second = (_whole(part, "--rows") for part in parts)
    return first, second


def optimize(
    name: Annotated[
        str, typer.Argument(help="Problem name (see `jaxrig causal problems`).")
    ],
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="Number of interventions.")
    ] = 20,
    rows: Annotated[
        int, typer.Option("--rows", min=2, help="Number of initial observational rows.")
    ] = 20,
    seed: common.SeedOption = 0,
    by: Annotated[
        str,
        typer.Option(
            "--with", help="Method: policy, or a baseline such as gp or gp_pairs."
        ),
    ] = "policy",
    json: JsonFlag = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Output folder for a page and its pictures."),
    ] = None,
) -> None:
    """Optimize a problem whose true optimum is known, one intervention at a time.

    The share is the improvement reached so far, relative to the best single
    intervention, in true expected outcome.
    """
    console = make_console()
    with common.refusing():
        problem, proposer = get(name), find_systems((by,))[by]
        if not hasattr(proposer, "propose"):
            raise ValueError(f"--with {by!r} finds causes and proposes nothing")
    run = run_problem(problem, proposer, steps=steps, rows=rows, seed=seed)
    if json:
        common.show_json(console, as_record(run, by, rows, seed))
    else:
        show_run(console, run, by)
    if out is not None:
        told = Console(stderr=True) if json else console
        drawn = draw_run(run)
        common.write_pictures(told, out, drawn)
        command = f"jaxrig causal optimize {name} --steps {steps} --rows {rows}"
        command += f" --seed {seed} --with {by} --out {out}"
        page = run_page(run, by, drawn, command)
        say(told, f"open {page.write(out / 'report.html')}")


def show_run(console: Console, run: Run, by: str) -> None:
    """Print a line for each step, and how far it got."""
    problem, best = run.problem, run.best
    steps = zip(run.interventions, run.outcomes, run.expected, run.shares, strict=True)
    rows = [
        (str(number), settings(made), signed(seen), signed(mean), percent(share))
        for number, (made, seen, mean, share) in enumerate(steps, 1)
    ]
    columns = ("step", "set", f"{problem.target} seen", "expected", "share")
    title = f"{problem.name}, {by}"
    console.print(common.make_table(columns, rows, left=2, title=title))
    rest, top = problem.observational_mean, problem.optimum.outcome
    goal = settings(problem.optimum.intervention)
    say(
        console,
        f"{by}: {settings(run.interventions[best])} gives "
        f"{problem.target} = {signed(run.expected[best])} on average: "
        f"{percent(run.shares[-1])} of the improvement from "
        f"{signed(rest)} (no intervention) to {signed(top)} "
        f"(best single intervention, {goal})",
    )


def as_record(run: Run, by: str, rows: int, seed: int) -> dict[str, Any]:
    """Return the run for programs."""
    problem = run.problem
    return {
        "problem": problem.name,
        "with": by,
        "rows": rows,
        "seed": seed,
        "direction": problem.direction,
        "target": problem.target,
        "observational_mean": problem.observational_mean,
        "optimum": problem.optimum.outcome,
        "share": float(run.shares[-1]),
        "steps": [
            {
                "set": made,
                "outcome": float(run.outcomes[i]),
                "expected": float(run.expected[i]),
                "share": float(run.shares[i]),
            }
            for i, made in enumerate(run.interventions)
        ],
    }


def list_problems() -> None:
    """List the problems with their targets and true optima."""
    shown = {
        "problem": lambda problem: problem.name,
        "target": lambda problem: problem.target,
        "direction": lambda problem: problem.direction.lower(),
        "variables": lambda problem: str(len(problem.scm.names)),
        "nothing set": lambda problem: signed(problem.observational_mean),
        "optimum": lambda problem: signed(problem.optimum.outcome),
        "by setting": lambda problem: settings(problem.optimum.intervention),
    }
    rows = [[show(each) for show in shown.values()] for each in map(get, names())]
    make_console().print(common.make_table(list(shown), rows, left=3))
