"""Linear models from and to elsewhere: JSON files, pgmpy's networks, networkx digraphs,
and least squares on data with a graph.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acbo.named.model import NamedSCM, Ranges, create_linear_scm, is_linear, linear_form
from acbo.named.names import (
    Edge,
    check_edges,
    check_known,
    check_names,
    parents_of,
    sort_names,
)
from acbo.named.tables import DataTable, frame_to_table
from acbo.types import as_float, import_extra
from jaxrig.atomic import write_file

INTERCEPT = "(Intercept)"  # pgmpy's name for the constant of a regression

Location = str | os.PathLike[str]


def write_json(path: Location, scm: NamedSCM) -> None:
    """Write a linear model in networkx's node-link form; `read_json` reads it back."""
    linear_form(scm)  # or a ValueError that says which mechanism is not linear
    graph = to_networkx(scm)
    finite = {n: ends for n, ends in scm.ranges.items() if np.isfinite(ends).all()}
    graph.graph["ranges"] = finite
    networkx = import_extra("networkx", "model files")
    document = networkx.node_link_data(graph, edges="edges")
    write_file(path, json.dumps(document, indent=2, allow_nan=False))


def read_json(path: Location) -> NamedSCM:
    """Read the linear model of a file in the form that `write_json` gives.

    No ranges at all mean that every variable but the target may be set to any value.
    """
    return _read_named(path, _from_node_link)


def _from_node_link(document: Any) -> NamedSCM:
    for key in ("nodes", "edges"):
        _take(document, key, "a node-link graph")
    networkx = import_extra("networkx", "model files")
    try:
        graph = networkx.node_link_graph(document, directed=True, edges="edges")
    except (KeyError, TypeError) as error:  # networkx names the key alone
        raise ValueError(f"a node or an edge has no {error}") from error
    return from_networkx(graph, ranges=graph.graph.get("ranges") or None)


def read_pgmpy_json(
    path: Location, target: str | None = None, ranges: Ranges | None = None
) -> NamedSCM:
    """Read a linear Gaussian network in the JSON form that pgmpy saves.

    Accepted is an object with `nodes` (names), `arcs` (pairs cause, effect) and `cpds`:
    for each node `coefficients` ("(Intercept)" and each parent, as a number or a list
    of one), `variance` (likewise) and `parents` (optional; must agree with the arcs).
    Anything else is refused.
    """
    return _read_named(path, lambda data: _from_pgmpy(data, target, ranges))


def _from_pgmpy(data: Any, target: str | None, ranges: Ranges | None) -> NamedSCM:
    for key in ("nodes", "arcs", "cpds"):
        _take(data, key, "a pgmpy network")
    nodes = tuple(data["nodes"])
    arcs = frozenset((cause, effect) for cause, effect in data["arcs"])
    weights, bases, scales = {}, {}, {}
    for name in nodes:
        cpd = _take(data["cpds"], name, "cpds")[name]
        given = _take(cpd, "coefficients", f"cpds[{name!r}]")["coefficients"]
        variance = _take(cpd, "variance", f"cpds[{name!r}]")["variance"]
        causes = parents_of(name, arcs)
        if set(cpd.get("parents", causes)) != set(causes):
            raise ValueError(
                f"cpds[{name!r}] has parents {cpd['parents']} and the arcs give it "
                f"{list(causes)}: make them the same"
            )
        for cause in set(given) - {INTERCEPT}:
            check_known(cause, causes, f"cpds[{name!r}]: parent")
        for cause in causes:
            found = _take(given, cause, f"coefficients of {name!r}")[cause]
            weights[cause, name] = _one(found, f"coefficient {cause} -> {name}")
        bases[name] = _one(given.get(INTERCEPT, 0.0), f"intercept of {name!r}")
        square = _one(variance, f"variance of {name!r}")
        if square < 0:
            raise ValueError(f"variance of {name!r} is {square}: give 0 or more")
        scales[name] = math.sqrt(square)
    return create_linear_scm(nodes, weights, target, ranges, bases, scales)


def _one(value: Any, what: str) -> float:
    if isinstance(value, list):
        if len(value) != 1:
            raise ValueError(f"{what} has {len(value)} numbers: give one")
        value = value[0]
    return as_float(value, what)


def _take(entry: Any, key: str, where: str) -> Any:
    if not isinstance(entry, Mapping) or key not in entry:
        raise ValueError(f"{where}: an entry has no {key!r}")
    return entry


def _read_named(path: Location, build: Any) -> NamedSCM:
    try:
        return build(json.loads(Path(path).read_text()))
    except ValueError as error:  # what is wrong, and in which file
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def to_networkx(scm: NamedSCM) -> Any:
    """Return the graph as a networkx.DiGraph, hidden variables included.

    Nodes carry `hidden` and `target` flags. Linear models also have `intercept` and
    `noise` on nodes, and `coefficient` on edges.
    """
    graph = import_extra("networkx", "digraphs").DiGraph()
    for name in (*scm.names, *scm.hidden):
        is_target = name == scm.target_name
        graph.add_node(name, hidden=name in scm.hidden, target=is_target)
    graph.add_edges_from(sorted(scm.edges))
    if is_linear(scm):
        form = linear_form(scm)
        for place, name in enumerate(form.names):
            graph.nodes[name]["intercept"] = float(form.intercept[place])
            graph.nodes[name]["noise"] = float(form.noise_scale[place])
        for cause, effect in scm.edges:
            place = form.names.index(cause), form.names.index(effect)
            graph.edges[cause, effect]["coefficient"] = float(form.weight[place])
    return graph


def from_networkx(
    graph: Any, target: str | None = None, ranges: Ranges | None = None
) -> NamedSCM:
    """Return a linear model from a digraph in the form that `to_networkx` gives.

    Each edge needs a `coefficient`; nodes may have `intercept` (0), `noise` (1) and
    `hidden` (False). Without `target`, the node flagged `target` is it, if any is.
    """
    names, edges = read_graph(graph)
    for cause, effect in sorted(edges):
        if "coefficient" not in graph.edges[cause, effect]:
            raise ValueError(
                f"edge {cause} -> {effect} has no attribute 'coefficient': set it, or "
                "estimate the numbers from data with fit_scm"
            )
    get = lambda name, key, default: graph.nodes[name].get(key, default)
    number = lambda name, key, default: as_float(
        get(name, key, default), f"{key} of {name!r}"
    )
    flagged = [name for name in names if get(name, "target", False)]
    return create_linear_scm(
        names,
        {edge: graph.edges[edge]["coefficient"] for edge in edges},
        target if target is not None else next(iter(flagged), None),
        ranges,
        {name: number(name, "intercept", 0.0) for name in names},
        {name: number(name, "noise", 1.0) for name in names},
        tuple(name for name in names if get(name, "hidden", False)),
    )


def read_graph(
    graph: Any, names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], frozenset[Edge]]:
    """Return names and edges of a networkx digraph or pairs (cause, effect); no cycles.

    `names` says which variables there are; without, those that the graph mentions.
    """
    if hasattr(graph, "is_directed"):
        if not graph.is_directed() or graph.is_multigraph():
            raise ValueError(
                f"a {type(graph).__name__} is not directed: pass a networkx.DiGraph"
            )
        mentioned, pairs = list(graph.nodes), list(graph.edges)
    else:
        if isinstance(graph, str) or not isinstance(graph, Iterable):
            raise ValueError(
                f"graph={graph!r}: give a networkx.DiGraph or pairs (cause, effect)"
            )
        pairs = [tuple(pair) for pair in graph]
        mentioned = sorted({end for pair in pairs for end in pair})
    known = check_names(mentioned if names is None else list(names))
    edges = check_edges(known, pairs)
    sort_names(known, edges)
    return known, edges


def fit_scm(
    data: Any,
    graph: Any,
    target: str | None = None,
    ranges: Ranges | None = None,
) -> NamedSCM:
    """Regress each variable on its causes, over the rows where it was not set.

    `data` is a `DataTable` or a pandas frame, `graph` a networkx digraph or pairs
    (cause, effect). The noise scale is the residual standard deviation, with one
    degree of freedom taken off for each estimated number.
    """
    table = data if isinstance(data, DataTable) else frame_to_table(data)
    names, edges = read_graph(graph, table.names)
    values = np.asarray(table.values, dtype=np.float64)
    free = ~table.intervened
    weights, bases, scales = {}, {}, {}
    for place, name in enumerate(names):
        causes = parents_of(name, edges)
        rows = values[free[:, place]]
        columns = rows[:, [names.index(cause) for cause in causes]]
        numbers, scales[name] = _regress(columns, rows[:, place], name, causes)
        bases[name] = numbers[0]
        weights |= {
            (c, name): weight for c, weight in zip(causes, numbers[1:], strict=True)
        }
    return create_linear_scm(names, weights, target, ranges, bases, scales)


def _regress(
    causes: np.ndarray, effect: np.ndarray, name: str, names: Sequence[str]
) -> tuple[list[float], float]:
    """Return intercept and coefficients, and the residual standard deviation."""
    count, needed = len(effect), len(names) + 2
    if count < needed:
        raise ValueError(
            f"{name!r} was observed without intervention in {count} row(s): "
            f"with {len(names)} cause(s), at least {needed} are needed"
        )
    # Centered and scaled, so that units do not decide what counts as dependent.
    middle, spread = causes.mean(0), causes.std(0)
    spread = np.where(spread == 0, 1.0, spread)
    scaled = np.column_stack([np.ones(count), (causes - middle) / spread])
    if np.linalg.matrix_rank(scaled) < scaled.shape[1]:
        raise ValueError(
            f"the causes of {name!r} ({', '.join(names)}) depend linearly on each "
            "other in the rows where it was left alone: drop one, or add data"
        )
    found = np.linalg.lstsq(scaled, effect, rcond=None)[0]
    residual = effect - scaled @ found
    slopes = found[1:] / spread
    intercept = found[0] - slopes @ middle
    scale = np.sqrt(residual @ residual / (count - len(names) - 1))
    return [float(intercept), *slopes.tolist()], float(scale)
