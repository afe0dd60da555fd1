"""Charts of posteriors, calibration and regret; and what notebooks show."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from acbo.evaluation.report import bootstrap_interval
from acbo.named.tables import Experiments
from acbo.pictures.graph import draw_graph
from acbo.policy.suggest import Suggestion
from acbo.posterior.distribution import ParentSetPosterior
from acbo.posterior.order_chains import GraphPosterior
from jaxrig.report import (
    Figure,
    Part,
    Section,
    Table,
    Text,
    bar_chart,
    line_chart,
)
from jaxrig.report.charts import wilson

FEWEST = 10  # predictions in a bin that is drawn


def draw_calibration(
    sums: Mapping[str, Float[np.ndarray, "3 bins"]], title: str = "Calibration"
) -> str:
    """Plot observed frequency over predicted probability, with 95 % intervals.

    `sums` holds, by name and for each bin, the number of predictions, the sum of their
    probabilities and the number that came true; bins of fewer than ten are left out.
    """
    series: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    bands: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, given in sums.items():
        count, predicted, happened = np.asarray(given, np.float64)
        used = count >= FEWEST
        if not used.any():
            raise ValueError(
                f"{name!r} has no bin of {FEWEST} predictions: use more problems"
            )
        n, share = count[used], happened[used] / count[used]
        series[name] = (predicted[used] / n, share)
        bands[name] = wilson(share, n)
    ends = np.array([0.0, 1.0])
    return line_chart(
        {**series, "ideal": (ends, ends)},
        title=title,
        x_label="predicted probability",
        y_label="share that is true",
        bands=bands,
    )


SETS = 8
NOTHING = "none"


def draw_parent_sets(posterior: ParentSetPosterior, most: int = SETS) -> str:
    """Plot the likeliest sets of direct causes, the likeliest first."""
    bars: dict[str, float] = {}
    for chosen, chance in posterior.top_sets(most):
        bars[", ".join(sorted(chosen)) or NOTHING] = float(chance)
    title = f"Sets of direct causes of {posterior.target_variable}"
    return bar_chart(bars, title=title, x_label="probability")


def draw_parent_probs(posterior: ParentSetPosterior) -> str:
    """Plot the probability that each variable is a direct cause, likeliest first."""
    chances = posterior.parent_probs()
    order = sorted(chances, key=lambda name: -chances[name])
    title = f"Direct causes of {posterior.target_variable}"
    bars = {name: chances[name] for name in order}
    return bar_chart(bars, title=title, x_label="probability")


def draw_regret(
    curves: Mapping[str, np.ndarray],
    title: str = "Simple regret",
    y_label: str = "regret",
) -> str:
    """Plot means after 1, 2, ... interventions, with intervals of the mean.

    `curves` are arrays [problems, steps] by name.
    """
    series: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    bands: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, given in curves.items():
        values = np.asarray(given, np.float64)
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(
                f"{name!r} has shape {values.shape}: give numbers by problem and step"
            )
        mean, low, high = np.array([bootstrap_interval(step) for step in values.T]).T
        series[name] = (np.arange(1, values.shape[1] + 1), mean)
        # Rounding may put the mean of equal numbers just outside.
        bands[name] = (np.minimum(low, mean), np.maximum(high, mean))
    return line_chart(
        series, title=title, x_label="interventions", y_label=y_label, bands=bands
    )


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
    likely = posterior.likely_edges
    rows = [
        (names[i], names[j], float(probs[i, j]), "*" * int(likely[i, j]))
        for i, j in pairs
    ]
    columns = ("cause", "effect", "probability", "likely")
    table = Table(columns, rows, caption="Edges, the most probable first")
    return Section("Causal graph", table)


def show_suggestion(suggestion: Suggestion) -> Section:
    """Say what to do next and why, with the alternatives and the graph."""
    rows = [
        (each.variable, each.ancestor_probability, each.expected, each.std)
        for each in suggestion.candidates
    ]
    columns = ("variable", "causes the target", "expected outcome", "std")
    words = str(suggestion)
    parts: list[Part] = [Text(words[:1].upper() + words[1:]), Table(columns, rows)]
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
