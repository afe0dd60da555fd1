"""`jaxrig causal optimize` and `problems`: interventions on problems of the field."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from acbo.baselines import proposers
from acbo.cli.inputs import SeedOption, refusing
from acbo.cli.output import make_table, percent, show_json, signed, write_pictures
from acbo.pictures import draw_graph, draw_parent_probs, draw_shares
from acbo.policy.advisor import Proposer, load_policy
from acbo.problems import get, names
from acbo.runs import Run, run_problem, true_edges
from acbo.surrogate.predictor import load_surrogate
from jaxrig.console import make_console, say

POLICY = "policy"


def find_proposer(name: str) -> Any:
    """A proposer by name: the shipped policy or a baseline."""
    known = proposers()
    if name == POLICY:
        policy = load_policy()
        return Proposer(policy.surrogate, policy.network, greedy=True)
    if name not in known:
        listed = ", ".join((POLICY, *known))
        raise ValueError(f"--with {name!r} is not one of: {listed}")
    return known[name]


def optimize(
    name: Annotated[str, typer.Argument(help="See `jaxrig causal problems`.")],
    steps: Annotated[int, typer.Option("--steps", min=1, help="Interventions.")] = 20,
    rows: Annotated[
        int, typer.Option("--rows", min=2, help="Observational rows at the start.")
    ] = 20,
    seed: SeedOption = 0,
    by: Annotated[
        str,
        typer.Option("--with", help="policy, or a baseline: gp, gp_pairs."),
    ] = POLICY,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for pictures.")
    ] = None,
) -> None:
    """Optimize a problem whose true optimum is known, one intervention at a time.

    The share is how much of the way from doing nothing to the best single
    intervention the best one so far covers, by true expected outcomes.
    """
    console = make_console()
    with refusing():
        problem, proposer = get(name), find_proposer(by)
    run = run_problem(problem, proposer, steps=steps, rows=rows, seed=seed)
    if json:
        show_json(console, as_record(run, by, rows, seed))
    else:
        show_run(console, run, by)
    if out is not None:
        told = Console(stderr=True) if json else console
        write_pictures(told, out, draw_run(run, by))


def show_run(console: Console, run: Run, by: str) -> None:
    """A line for each step, and how far it got."""
    problem = run.problem
    best, seen = run.best, []
    for step, made in enumerate(run.interventions):
        seen.append(
            (
                str(step + 1),
                settings(made),
                signed(run.outcomes[step]),
                signed(run.expected[step]),
                percent(run.shares[step]),
            )
        )
    columns = ("step", "set", f"{problem.target} seen", "expected", "share")
    console.print(make_table(columns, seen, left=2, title=f"{problem.name}, {by}"))
    rest, top = problem.observational_mean, problem.optimum.outcome
    goal = settings(problem.optimum.intervention)
    say(
        console,
        f"{by}: {settings(run.interventions[best])} leads to "
        f"{problem.target} = {signed(run.expected[best])} on average, "
        f"{percent(run.shares[-1])} of the way from {signed(rest)} (nothing set) to "
        f"{signed(top)} (the best of one variable, {goal})",
    )


def settings(intervention: Mapping[str, float]) -> str:
    """What is set, in one line."""
    return ", ".join(f"{name} = {signed(v)}" for name, v in intervention.items())


def as_record(run: Run, by: str, rows: int, seed: int) -> dict[str, Any]:
    """The run for programs."""
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


def draw_run(run: Run, by: str) -> dict[str, str]:
    """The run, and what the surrogate makes of all its rows."""
    names, history = run.problem.scm.names, run.record.history
    surrogate, target = load_surrogate(), run.problem.target
    data = np.asarray(history.values), np.asarray(history.intervened)
    posterior = surrogate.posterior(*data, target, names=names)
    probs = np.array(surrogate.edge_probs(*data), np.float64)
    return {
        "shares": draw_shares({by: run.shares}),
        "graph": draw_graph(names, probs, target, truth=true_edges(run.problem)),
        "causes": draw_parent_probs(posterior),
    }


def list_problems() -> None:
    """List the problems with their targets and true optima."""
    rows = []
    for name in names():
        problem = get(name)
        rows.append(
            (
                name,
                problem.target,
                problem.direction.lower(),
                str(len(problem.scm.names)),
                signed(problem.observational_mean),
                signed(problem.optimum.outcome),
                settings(problem.optimum.intervention),
            )
        )
    columns = ("problem", "target", "direction", "variables", "nothing set", "optimum")
    make_console().print(make_table((*columns, "by setting"), rows, left=3))
