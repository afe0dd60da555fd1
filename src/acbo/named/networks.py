"""Models and graphs as networkx digraphs, in and out."""

from collections.abc import Iterable, Sequence
from typing import Any

from acbo.named.digraph import Edge, check_edges, check_names, sort_names
from acbo.named.frozen_map import as_float
from acbo.named.linear import create_linear_scm, is_linear, linear_form
from acbo.named.model import NamedSCM, Ranges
from jaxrig.machine import missing_extra


def to_networkx(scm: NamedSCM) -> Any:
    """The graph, hidden variables included.

    Nodes carry `hidden` and `target` flags. Linear models also have `intercept` and
    `noise` on nodes, and `coefficient` on edges.
    """
    graph = import_networkx().DiGraph()
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
    """A linear model from a digraph in the form that `to_networkx` gives.

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
    """Names and edges of a networkx digraph or of pairs (cause, effect); no cycles.

    `names` says which variables there are; without, those that the graph mentions.
    """
    if hasattr(graph, "is_directed"):
        if not graph.is_directed() or graph.is_multigraph():
            raise ValueError(
                f"a {type(graph).__name__} does not say what causes what: give a "
                "networkx.DiGraph"
            )
        mentioned, pairs = list(graph.nodes), list(graph.edges)
    else:
        pairs = [tuple(pair) for pair in _as_pairs(graph)]
        mentioned = sorted({end for pair in pairs for end in pair})
    known = check_names(mentioned if names is None else list(names))
    edges = check_edges(known, pairs)
    sort_names(known, edges)
    return known, edges


def import_networkx() -> Any:
    """The library, or an ImportError that says how to get it."""
    try:
        import networkx
    except ImportError as error:
        raise missing_extra("graphs as digraphs need networkx", "causal") from error
    return networkx


def _as_pairs(graph: Any) -> Iterable[Any]:
    if isinstance(graph, str) or not isinstance(graph, Iterable):
        raise ValueError(
            f"graph={graph!r}: give a networkx.DiGraph or pairs (cause, effect)"
        )
    return graph
