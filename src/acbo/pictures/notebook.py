"""What notebooks show of posteriors, suggestions and tables."""

import numpy as np

from acbo.named.tables import Experiments
from acbo.pictures.charts import draw_parent_probs, draw_parent_sets
from acbo.pictures.graph import draw_graph
from acbo.policy.suggest import Suggestion
from acbo.posterior.distribution import ParentSetPosterior
from acbo.posterior.order_chains import GraphPosterior
from jaxrig.report import Figure, Part, Section, Table, Text

FEW = 12  # variables up to which a graph is drawn, and rows of a table that are shown


def show_parent_sets(posterior: ParentSetPosterior) -> Section:
    """Draw the probability of every cause, and of the likeliest sets."""
    return Section(
        f"Causes of {posterior.target_variable}",
        Figure(draw_parent_probs(posterior), alt="Probability of every direct cause"),
        Figure(draw_parent_sets(posterior), alt="Probabilities of sets of causes"),
    )


def show_graphs(posterior: GraphPosterior) -> Section:
    """Draw the graph with its probabilities; of many variables list the edges."""
    names, probs = posterior.names, np.asarray(posterior.edge_probs)
    if len(names) <= FEW:
        drawn = draw_graph(names, probs, names[-1])
        return Section("Causal graph", Figure(drawn, alt="Graph with probabilities"))
    order = np.argsort(-probs, axis=None)[: 2 * len(names)]
    pairs = [np.unravel_index(each, probs.shape) for each in order]
    rows = [(names[i], names[j], float(probs[i, j])) for i, j in pairs]
    table = Table(("cause", "effect", "probability"), rows, caption="Likeliest edges")
    return Section("Causal graph", table)


def show_suggestion(suggestion: Suggestion) -> Section:
    """Say what to do next and why, with the alternatives and the graph."""
    rows = [
        (each.variable, each.ancestor_probability, each.expected, each.std)
        for each in suggestion.candidates
    ]
    columns = ("variable", "causes the target", "expected outcome", "std")
    parts: list[Part] = [Text(str(suggestion)), Table(columns, rows)]
    names, target = suggestion.seen.names, suggestion.seen.target
    if len(names) <= FEW:
        drawn = draw_graph(names, suggestion.edge_probs, target)
        parts.append(Figure(drawn, alt="Graph with probabilities"))
    return Section("The next experiment", *parts)


def show_experiments(seen: Experiments) -> Section:
    """Show the last rows, the values that were set in brackets."""
    rows = [
        tuple(
            f"[{value:.4g}]" if was_set else f"{value:.4g}"
            for value, was_set in zip(values, marks, strict=True)
        )
        for values, marks in zip(seen.values[-8:], seen.intervened[-8:], strict=True)
    ]
    count = len(seen.values)
    words = f"{count:,} rows; `{seen.target}` is the target, {seen.direction.lower()}."
    return Section(
        "Experiments",
        Text(words + " In brackets: values that were set."),
        Table(seen.names, rows),
    )
