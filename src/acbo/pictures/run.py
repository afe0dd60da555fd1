"""The page of a problem optimized: outcomes beside the optimum, and beliefs."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from acbo.pictures import charts
from acbo.pictures.graph import draw_graph
from acbo.runs import Run, true_edges
from acbo.surrogate.predictor import infer_graphs
from acbo.types import MINIMIZE, in_words, percent, signed
from jaxrig.report import (
    Beside,
    Code,
    Figure,
    Player,
    Report,
    Section,
    Table,
    Text,
    line_chart,
)
from jaxrig.report.page import machine_table


def settings(
    intervention: Mapping[str, float], show: Callable[[float], str] = signed
) -> str:
    """Return what is set, in one line."""
    return ", ".join(f"{name} = {show(v)}" for name, v in intervention.items())


def draw_run(run: Run) -> dict[str, str]:
    """Return the run, and the posterior over graphs from all its rows."""
    names, history = run.problem.scm.names, run.record.history
    target = run.problem.target
    graphs = infer_graphs(history.values, history.intervened, names=names)
    edges = graphs.edge_probs
    return {
        "outcomes": draw_outcomes(run),
        "graph": draw_graph(names, edges, target, truth=true_edges(run.problem)),
        "causes": charts.draw_parent_probs(graphs.parent_sets(target)),
    }


def draw_outcomes(run: Run) -> str:
    """Plot what every experiment gave, and the best so far, beside the optimum."""
    problem, count = run.problem, len(run.outcomes)
    steps = np.arange(1, count + 1)
    rest, top = problem.observational_mean, problem.optimum.outcome
    series = {
        "measured": (steps, run.outcomes),
        "best so far": (steps, rest + (top - rest) * run.shares),
        "optimum": (steps, np.full(count, top)),
        "nothing set": (steps, np.full(count, rest)),
    }
    title = f"{problem.target} by experiment"
    return line_chart(series, title, x_label="experiment", y_label=problem.target)


def play_beliefs(run: Run, surrogate: Any = None) -> Player:
    """Play the probability of every edge after each experiment."""
    problem, history = run.problem, run.record.history
    values, intervened = np.asarray(history.values), np.asarray(history.intervened)
    rows = len(values) - len(run.outcomes)
    seen = range(rows, len(values) + 1)
    graphs = [
        draw_graph(
            problem.scm.names,
            infer_graphs(values[:n], intervened[:n], surrogate=surrogate).edge_probs,
            problem.target,
            truth=true_edges(problem),
        )
        for n in seen
    ]
    return Player(
        graphs,
        [f"after {n - rows} experiments" for n in seen],
        frames_per_second=2,
        first=-1,
        autoplay=True,
        alt="Causal graph with edge probabilities after every experiment",
    )


def run_page(run: Run, by: str, drawn: Mapping[str, str], command: str) -> Report:
    """Return the page; `drawn` are the pictures of the run."""
    problem, count, target = run.problem, len(run.outcomes), run.problem.target
    goal = "lowers" if problem.direction == MINIMIZE else "raises"
    best = settings(run.interventions[run.best], in_words)
    report = Report(
        f"{percent(run.shares[-1])} of the way to the optimum of {problem.name}",
        f"In {count} experiments, {by} {goal} {target} from "
        f"{in_words(problem.observational_mean)}, nothing set, to "
        f"{in_words(run.expected[run.best])} by setting {best}.",
    )
    optimum = settings(problem.optimum.intervention, in_words)
    outcomes = Figure(
        drawn["outcomes"],
        caption="Measured outcomes have noise; the best so far, the optimum and the "
        "mean with nothing set are true means.",
        alt=f"{target} by experiment",
    )
    words = Text(
        f"No single variable does better than {optimum}, which gives {target} = "
        f"{in_words(problem.optimum.outcome)} on average. The method knows neither "
        "that nor the graph: it sees rows, and chooses what to set next."
    )
    report.add(Section("Outcomes", Beside(outcomes, words)))
    graph = play_beliefs(run)
    causes = Figure(
        drawn["causes"],
        caption=f"Probability of being a direct cause of {target}, from all rows.",
    )
    legend = "Edges that are not in the true graph are dashed, missed ones dotted."
    causal = Section(f"What causes {target}", Beside(graph, Text(legend), causes))
    report.add(causal)
    steps = zip(run.interventions, run.outcomes, run.expected, run.shares, strict=True)
    rows = [
        (number, settings(made, in_words), float(seen), float(mean), percent(share))
        for number, (made, seen, mean, share) in enumerate(steps, 1)
    ]
    columns = ("experiment", "set", f"{target} measured", "true mean", "best so far")
    table = Table(columns, rows, caption="What was set, and what came out")
    report.add(Section("Make it again", Code(command), table, machine_table()))
    return report
