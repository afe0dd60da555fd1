"""`jaxrig causal graph`: which variables cause which, from a table."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from acbo.cli.inputs import DataArgument, refusing
from acbo.cli.output import make_table, show_json
from acbo.named.tables import read_csv
from acbo.pictures.files import FORMATS, save_graph
from acbo.pictures.layout import shown_edges
from acbo.surrogate.predictor import load_surrogate
from jaxrig.console import check_writable, make_console, say


def graph(
    data: DataArgument,
    target: Annotated[
        str | None, typer.Option("--target", help="A variable to mark.")
    ] = None,
    least: Annotated[
        float,
        typer.Option("--least", min=0, max=1, help="Leave out less likely edges."),
    ] = 0.1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw it: a .svg or .png file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how likely each variable causes each other one directly."""
    if out is not None and out.suffix.lower() not in FORMATS:
        raise typer.BadParameter(f"{out.name} does not end in {' or '.join(FORMATS)}")
    check_writable(out)
    console = make_console()
    with refusing():
        table = read_csv(data, target=target)
        found = load_surrogate().edge_probs(
            np.asarray(table.values), np.asarray(table.intervened)
        )
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
