"""`jaxrig causal suggest` and `graph`: what a table says about the next experiment, and
about which variables cause which.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from acbo.cli.common import (
    ForbidOption,
    IgnoreOption,
    KnowOption,
    ProblemOptions,
    make_table,
    refusing,
    show_json,
    split_names,
    with_options,
)
from acbo.named.reading import find_name, read_table
from acbo.policy import suggest as policy
from acbo.policy.problem import parse_edges
from acbo.policy.suggest import Suggestion, graphs_of, note_on_graphs
from acbo.types import MINUS, percent, plus_minus
from jaxrig.console import JsonFlag, check_writable, make_console, say

DataArgument = Annotated[
    Path,
    typer.Argument(
        exists=True,
        dir_okay=False,
        readable=True,
        help="CSV table with a header; the column `intervention_targets` names the "
        "variables set in each row.",
    ),
]


@with_options(ProblemOptions)
def suggest(
    data: DataArgument, json: JsonFlag = False, *, problem: ProblemOptions
) -> None:
    """Suggest the next experiment from a table of experiments.

    Sets one variable at a time, unless --at-once 2 is given. Expected outcomes are
    means in the units of the table, ± one standard deviation.
    """
    console = make_console()
    with refusing():
        found = policy.suggest(data, **problem.arguments())
    if json:
        show_json(console, found.to_dict())
        return
    show_suggestion(console, found)
    if found.ranges_from_data:
        say(
            console,
            f"no range given for {', '.join(found.ranges_from_data)}: using the "
            "observed minimum and maximum (set it with --range NAME=LOW:HIGH)",
        )
    if not problem.settable:
        say(
            console,
            "every column counts as one that can be set: if some can only be measured, "
            "name the others, as in --set dose,heat",
        )


def show_suggestion(console: Console, found: Suggestion) -> None:
    """Print what was read, what to do and why, and a line for every variable."""
    for note in found.notes:
        say(console, note)
    if not found.worthwhile:
        say(console, found.nothing_to_gain())
    for each in found.experiments:
        say(console, found.sentence(each))
    rows = []
    plain = lambda *cell: found.said(*cell).replace(MINUS, "-")  # to copy into options
    for each in found.candidates:
        name = each.variable
        low, high = found.seen.ranges[name]
        rows.append(
            (
                name,
                percent(each.parent_probability),
                percent(each.ancestor_probability),
                plain(name, each.value),
                f"{plain(name, low)} to {plain(name, high)}",
                plus_minus(each.expected, each.std),
                percent(each.probability),
            )
        )
    columns = (
        *("variable", "direct cause", "cause", "set to", "range"),
        *(f"expected {found.seen.target}", "chosen"),
    )
    console.print(make_table(columns, rows))


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
    json: JsonFlag = False,
) -> None:
    """Show the probability of each direct causal edge, and which edges to name."""
    from acbo.pictures.graph import FORMATS, save_graph, shown_edges

    if out is not None and out.suffix.lower() not in FORMATS:
        raise typer.BadParameter(f"{out.name} does not end in {' or '.join(FORMATS)}")
    check_writable(out)
    console = make_console()
    with refusing():
        table = read_table(data, target, split_names(ignore))
        target = target and find_name(target, table.names, "target")
        known, closed = (parse_edges(edges or ()) for edges in (know, forbid))
        graphs = graphs_of(table, known, closed)
        probs, likely = graphs.edge_probs, graphs.likely_edges
        if out is not None:
            save_graph(out, table.names, probs, target, least)
    if not json:
        for note in (*table.notes, *note_on_graphs(graphs)):
            say(console, note)
    edges = [
        (table.names[i], table.names[j], float(probs[i, j]), bool(likely[i, j]))
        for i, j in reversed(list(shown_edges(probs, least)))
    ]
    keys = ("cause", "effect", "probability", "likely")
    if json:
        show_json(console, [dict(zip(keys, edge, strict=True)) for edge in edges])
    elif edges:
        rows = [(*pair, f"{chance:.3f}", "*" * named) for *pair, chance, named in edges]
        console.print(make_table(keys, rows, left=2))
    else:
        say(console, f"no edge has a probability of {least:g} or more")
    if out is not None and not json:
        say(console, f"wrote {out}")
