"""`jaxrig causal suggest` and `graph`: what a table says about the next experiment, and
about which variables cause which.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from acbo.cli.common import (
    DataArgument,
    Given,
    make_table,
    percent,
    read_experiments,
    refusing,
    show_json,
    signed,
)
from acbo.named.tables import read_csv
from acbo.policy.advisor import Suggestion, load_policy
from acbo.surrogate.predictor import load_surrogate
from jaxrig.console import check_writable, make_console, say


def suggest(
    data: DataArgument,
    target: Annotated[str, typer.Option("--target", help="Variable to optimize.")],
    maximize: Annotated[
        bool, typer.Option("--maximize", help="Maximize the target. Default: minimize.")
    ] = False,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", help="Range of a variable, e.g. X=-5:5. Can be repeated."
        ),
    ] = None,
    from_data: Annotated[
        bool,
        typer.Option(
            "--ranges-from-data",
            help="Use the observed range of variables without --range.",
        ),
    ] = False,
    settable: Annotated[
        str,
        typer.Option(
            "--set", help="Variables that can be set, e.g. X,Z. Default: all."
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Suggest the next experiment from a table of experiments.

    Sets one variable at a time. Expected outcomes are in the units of the table;
    std is one standard deviation.
    """
    console = make_console()
    with refusing():
        given = read_experiments(data, target, maximize, ranges or [], settable)
        found = load_policy().explain(given.experiments)
    if json:
        show_json(console, as_record(given, found))
        return
    say(console, sentence(given, found[0]))
    show_suggestions(console, given, found)
    if given.observed and not from_data:
        say(
            console,
            f"no range given for {', '.join(given.observed)}: using the observed "
            "minimum and maximum (set it with --range NAME=LOW:HIGH)",
        )


def sentence(given: Given, best: Suggestion) -> str:
    """Return the suggestion in words."""
    seen = given.experiments
    goal = "lower" if seen.direction == "MINIMIZE" else "raise"
    return (
        f"to {goal} {seen.target}, set {best.variable} to {signed(best.value)}: "
        f"the expected {seen.target} is {signed(best.expected)} ± {signed(best.std)}. "
        f"The probability that {best.variable} is a cause is "
        f"{percent(best.ancestor_probability)} (direct cause: "
        f"{percent(best.parent_probability)})"
    )


def show_suggestions(
    console: Console, given: Given, found: Sequence[Suggestion]
) -> None:
    """Print a line for every variable that may be set, the one to choose first."""
    rows = []
    for each in found:
        low, high = given.experiments.ranges[each.variable]
        rows.append(
            (
                each.variable,
                percent(each.parent_probability),
                percent(each.ancestor_probability),
                signed(each.value),
                f"{signed(low)} to {signed(high)}",
                signed(each.expected),
                signed(each.std),
                percent(each.probability),
            )
        )
    columns = (
        *("variable", "direct cause", "cause", "set to", "range"),
        *(f"expected {given.experiments.target}", "std", "chosen"),
    )
    console.print(make_table(columns, rows))


def as_record(given: Given, found: Sequence[Suggestion]) -> dict[str, Any]:
    """Return everything that the table shows, for programs."""
    seen = given.experiments
    return {
        "target": seen.target,
        "direction": seen.direction,
        "rows": len(seen.values),
        "ranges": {name: list(ends) for name, ends in seen.ranges.items()},
        "ranges_from_data": list(given.observed),
        "suggestion": {found[0].variable: found[0].value},
        "variables": [asdict(each) for each in found],
    }


def graph(
    data: DataArgument,
    target: Annotated[
        str | None, typer.Option("--target", help="Variable to highlight.")
    ] = None,
    least: Annotated[
        float,
        typer.Option("--least", min=0, max=1, help="Minimum probability of an edge."),
    ] = 0.1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Draw the graph to this .svg or .png file."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the probability of each direct causal edge."""
    from acbo.pictures.files import FORMATS, save_graph
    from acbo.pictures.graph import shown_edges

    if out is not None and out.suffix.lower() not in FORMATS:
        raise typer.BadParameter(f"{out.name} does not end in {' or '.join(FORMATS)}")
    check_writable(out)
    console = make_console()
    with refusing():
        table = read_csv(data, target=target)
        found = load_surrogate().edge_probs(table.values, table.intervened)
        probs = np.asarray(found, np.float64)
        np.fill_diagonal(probs, 0.0)
        if out is not None:
            save_graph(out, table.names, probs, target, least)
    edges = [
        (table.names[i], table.names[j], float(probs[i, j]))
        for i, j in reversed(list(shown_edges(probs, least)))
    ]
    if json:
        keys = ("cause", "effect", "probability")
        show_json(console, [dict(zip(keys, edge, strict=True)) for edge in edges])
    elif edges:
        rows = [(cause, effect, f"{chance:.3f}") for cause, effect, chance in edges]
        console.print(make_table(("cause", "effect", "probability"), rows, left=2))
    else:
        say(console, f"no edge has a probability of {least:g} or more")
    if out is not None and not json:
        say(console, f"wrote {out}")
