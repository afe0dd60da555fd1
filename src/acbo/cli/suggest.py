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
    ForbidOption,
    Given,
    IgnoreOption,
    KnowOption,
    make_table,
    parse_edges,
    percent,
    read_experiments,
    refusing,
    show_json,
    signed,
    split_names,
)
from acbo.named.tables import DataTable, read_csv
from acbo.policy.advisor import Suggestion, load_policy
from acbo.posterior.order_chains import GraphPosterior, sample_graphs
from acbo.surrogate.predictor import TRAINED_VARIABLES, load_surrogate
from jaxrig.console import check_writable, make_console, say


def suggest(
    data: DataArgument,
    target: Annotated[str, typer.Option("--target", help="Variable to optimize.")],
    maximize: Annotated[
        bool | None,
        typer.Option("--maximize/--minimize", help="Direction in which to optimize."),
    ] = None,
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
    know: KnowOption = None,
    forbid: ForbidOption = None,
    ignore: IgnoreOption = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Suggest the next experiment from a table of experiments.

    Sets one variable at a time. Expected outcomes are in the units of the table;
    std is one standard deviation.
    """
    if maximize is None:
        raise typer.BadParameter(
            f"say which way {target} should go: give --maximize or --minimize"
        )
    console = make_console()
    with refusing():
        table = read_table(data, target, ignore)
        given = read_experiments(table, target, maximize, ranges or [], settable)
        sampled = sample_if_needed(table, know, forbid)
        found = load_policy().explain(given.experiments, sampled)
    if json:
        show_json(console, as_record(given, found, table, sampled))
        return
    say_what_was_done(console, table, sampled)
    say(console, sentence(given, found[0]))
    show_suggestions(console, given, found)
    if given.observed and not from_data:
        say(
            console,
            f"no range given for {', '.join(given.observed)}: using the observed "
            "minimum and maximum (set it with --range NAME=LOW:HIGH)",
        )


def sample_if_needed(
    table: DataTable, know: Sequence[str] | None, forbid: Sequence[str] | None
) -> GraphPosterior | None:
    """Return sampled graphs where the network cannot answer: many variables, known or
    forbidden edges.
    """
    if len(table.names) <= TRAINED_VARIABLES and not know and not forbid:
        return None
    return sample_graphs(
        table.values,
        table.intervened,
        names=table.names,
        required=parse_edges(know or ()),
        forbidden=parse_edges(forbid or ()),
    )


def read_table(data: Path, target: str | None, ignore: str) -> DataTable:
    """Return the table of a file without the columns to ignore and incomplete rows."""
    left_out = split_names(ignore)
    return read_csv(data, target=target, ignore=left_out, drop_missing=True)


def say_what_was_done(
    console: Console, table: DataTable, sampled: GraphPosterior | None
) -> None:
    """Print which rows were left out, and what the probabilities rest on."""
    if table.dropped:
        rows = f"{table.dropped} of {table.dropped + len(table.values)} rows"
        say(console, f"{rows} were left out: a value is missing in them")
    if sampled is None:
        return
    reason = "edges are known or forbidden"
    if len(table.names) > TRAINED_VARIABLES:
        reason = (
            f"{len(table.names)} variables are more than the {TRAINED_VARIABLES} that "
            "the network was trained on"
        )
    say(
        console,
        f"{reason}: probabilities are of graphs sampled from the posterior of "
        "linear-Gaussian models",
    )


def sentence(given: Given, best: Suggestion) -> str:
    """Return the suggestion in words."""
    seen = given.experiments
    goal = "lower" if seen.direction == "MINIMIZE" else "raise"
    return (
        f"to {goal} {seen.target}, set {best.variable} to {signed(best.value)}: "
        f"the expected {seen.target} is {signed(best.expected, best.std)} ± "
        f"{signed(best.std)}. "
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
                signed(each.expected, each.std),
                signed(each.std),
                percent(each.probability),
            )
        )
    columns = (
        *("variable", "direct cause", "cause", "set to", "range"),
        *(f"expected {given.experiments.target}", "std", "chosen"),
    )
    console.print(make_table(columns, rows))


def as_record(
    given: Given,
    found: Sequence[Suggestion],
    table: DataTable,
    sampled: GraphPosterior | None,
) -> dict[str, Any]:
    """Return everything that the table shows, for programs."""
    seen = given.experiments
    return {
        "target": seen.target,
        "direction": seen.direction,
        "rows": len(seen.values),
        "ranges": {name: list(ends) for name, ends in seen.ranges.items()},
        "ranges_from_data": list(given.observed),
        "rows_left_out": table.dropped,
        "graphs_sampled": sampled is not None,
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
    know: KnowOption = None,
    forbid: ForbidOption = None,
    ignore: IgnoreOption = "",
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
        table = read_table(data, target, ignore)
        sampled = sample_if_needed(table, know, forbid)
        if sampled is None:
            found = load_surrogate().edge_probs(table.values, table.intervened)
        else:
            found = sampled.edge_probs
        probs = np.array(found, np.float64)
        np.fill_diagonal(probs, 0.0)
        if out is not None:
            save_graph(out, table.names, probs, target, least)
    if not json:
        say_what_was_done(console, table, sampled)
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
