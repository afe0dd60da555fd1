"""`jaxrig causal suggest`: the next experiment, and why."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console

from acbo.cli.inputs import DataArgument, Given, read_experiments, refusing
from acbo.cli.output import make_table, percent, show_json, signed
from acbo.policy.advisor import Suggestion, load_policy
from jaxrig.console import make_console, say


def suggest(
    data: DataArgument,
    target: Annotated[str, typer.Option("--target", help="The variable to move.")],
    maximize: Annotated[
        bool, typer.Option("--maximize", help="Higher is better; default: lower.")
    ] = False,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="What may be set how far, as X=-5:5; repeat."),
    ] = None,
    from_data: Annotated[
        bool,
        typer.Option("--ranges-from-data", help="Ranges not given are the observed."),
    ] = False,
    settable: Annotated[
        str, typer.Option("--set", help="Which may be set, as X,Z; default: all.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Suggest the next experiment from a table of those already made.

    One variable is set at a time. Expected outcomes are in the units of the table;
    the doubt is one standard deviation.
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
            f"no range was given for {', '.join(given.observed)}: the smallest and "
            "largest values observed are used (--range NAME=LOW:HIGH changes that)",
        )


def sentence(given: Given, best: Suggestion) -> str:
    """The suggestion in words."""
    seen = given.experiments
    goal = "lower" if seen.direction == "MINIMIZE" else "raise"
    return (
        f"to {goal} {seen.target}, set {best.variable} to {signed(best.value)}: "
        f"{seen.target} is expected at {signed(best.expected)} ± {signed(best.doubt)}, "
        f"and {best.variable} is a cause of it with probability "
        f"{percent(best.reach_probability)} (a direct one: "
        f"{percent(best.parent_probability)})"
    )


def show_suggestions(
    console: Console, given: Given, found: Sequence[Suggestion]
) -> None:
    """A line for every variable that may be set, the one to choose first."""
    rows = []
    for each in found:
        low, high = given.experiments.ranges[each.variable]
        rows.append(
            (
                each.variable,
                percent(each.parent_probability),
                percent(each.reach_probability),
                signed(each.value),
                f"{signed(low)} to {signed(high)}",
                signed(each.expected),
                signed(each.doubt),
                percent(each.probability),
            )
        )
    columns = (
        *("variable", "direct cause", "cause", "set to", "range"),
        *(f"expected {given.experiments.target}", "doubt", "chosen"),
    )
    console.print(make_table(columns, rows))


def as_record(given: Given, found: Sequence[Suggestion]) -> dict[str, Any]:
    """Everything that the table shows, for programs."""
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
