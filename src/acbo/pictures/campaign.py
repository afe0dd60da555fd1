"""The page of a campaign: where it stands, what causes the target, what was tried."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acbo.pictures.graph import draw_graph
from acbo.policy.suggest import Ask, Suggestion, Trial
from acbo.types import MINIMIZE, MINUS, in_full, percent, plus_minus
from jaxrig.report import (
    Beside,
    Figure,
    Part,
    Report,
    Section,
    Table,
    Text,
    line_chart,
)

CURVES = 8  # variables whose probabilities are drawn, the likeliest ones
EFFECTS = 4  # variables whose effects are drawn


def campaign_page(
    now: Suggestion,
    asked: Sequence[Ask],
    told: Sequence[Mapping[str, Any]],
    still: Sequence[Trial] = (),
) -> Report:
    """Return the page; `told` holds the rows since the start, cells by column, `still`
    the experiments that are open.
    """
    target = now.seen.target
    goal = "minimize" if now.seen.direction == MINIMIZE else "maximize"
    outcomes = [float(row[target]) for row in told]
    better = min if now.seen.direction == MINIMIZE else max
    reached = f": {now.said(target, better(outcomes))} so far" if told else ""
    report = Report(
        f"Campaign to {goal} {target}{reached}",
        f"{len(now.seen.values)} rows, {len(told)} of them from this campaign.",
    )
    trials = {trial.number: trial for each in asked for trial in each.trials}
    standing = _standing(now, asked, told, outcomes, still)
    report.add(Section("Where it stands", *standing))
    report.add(Section(f"What causes {target}", *_causes(now, asked)))
    if told:
        report.add(Section("What was tried, and why", _tried(told, trials, target)))
    report.add(Section("The problem", *_problem(now)))
    return report


def _standing(
    now: Suggestion,
    asked: Sequence[Ask],
    told: Sequence[Mapping[str, Any]],
    outcomes: Sequence[float],
    still: Sequence[Trial],
) -> list[Part]:
    target, better = now.seen.target, min if now.seen.direction == MINIMIZE else max
    parts: list[Part] = []
    if told:
        best = outcomes.index(better(outcomes))
        reached = now.said(target, outcomes[best])
        parts.append(
            Text(
                f"The best outcome so far is that of row {best + 1}: "
                f"{_set_in(told[best])} gave {target} = {reached}."
            )
        )
    for trial in still:
        parts.append(Text(f"Open is experiment {trial.number}: {trial.words}."))
    if not still:
        if not now.worthwhile:
            parts.append(Text(f"Now {now.nothing_to_gain()}."))
        parts.append(Text(f"Next: {now.sentence(now.experiments[0])}."))
    drawn = [_progress(now, outcomes, better)] if told else []
    gains = [max(trial.gain for trial in each.trials) for each in asked]
    if len(gains) > 1:
        drawn.append(
            Figure(
                line_chart(
                    {"gain": (np.arange(1, len(gains) + 1), gains)},
                    title="Expected improvement left",
                    x_label="times asked",
                    y_label="improvement",
                ),
                caption="Expected improvement over the best experiment so far, each "
                "time that the campaign was asked.",
            )
        )
    return [*parts, *_in_pairs(drawn)]


def _in_pairs(drawn: Sequence[Figure]) -> list[Part]:
    return [Beside(*drawn[i : i + 2]) for i in range(0, len(drawn), 2)]


def _progress(now: Suggestion, outcomes: Sequence[float], better: Any) -> Figure:
    target = now.seen.target
    steps = np.arange(1, len(outcomes) + 1)
    best = [better(outcomes[: step + 1]) for step in range(len(outcomes))]
    free = ~now.seen.intervened.any(axis=1)
    series = {"outcome": (steps, outcomes), "best so far": (steps, best)}
    if free.any():
        column = now.seen.names.index(target)
        mean = float(now.seen.values[free, column].mean())
        series["nothing set"] = (steps, [mean] * len(steps))
    chart = line_chart(
        series, title=f"{target} by row told", x_label="row told", y_label=target
    )
    return Figure(chart, caption="Every outcome, and the best one so far.")


def _causes(now: Suggestion, asked: Sequence[Ask]) -> list[Part]:
    target = now.seen.target
    order = sorted(now.candidates, key=lambda each: -each.ancestor_probability)
    rows = [
        (
            each.variable,
            percent(each.ancestor_probability),
            percent(each.parent_probability),
            now.said(each.variable, each.value),
            plus_minus(each.expected, each.std),
        )
        for each in order
    ]
    columns = ("variable", "cause", "direct cause", "set to", f"expected {target}")
    drawing = draw_graph(now.seen.names, now.edge_probs, target)
    caption = "Probability of each direct edge, from all complete rows."
    graph = Figure(drawing, caption=caption, alt="Causal graph")
    table = Table(columns, rows, caption="As of now, the most likely first.")
    parts: list[Part] = [Beside(graph, table)]
    names = [each.variable for each in order[:EFFECTS]]
    drawn = [effect_figure(now, name) for name in names]
    if len(asked) > 1:
        times = np.arange(1, len(asked) + 1)
        names = [each.variable for each in order[:CURVES]]
        series = {
            name: (times, [each.cause_probs.get(name, np.nan) for each in asked])
            for name in names
            if any(name in each.cause_probs for each in asked)
        }
        chart = line_chart(
            series,
            title=f"Probability of being a cause of {target}",
            x_label="times asked",
            y_label="probability",
        )
        drawn.append(
            Figure(
                chart, caption="Direct or indirect, each time the campaign was asked."
            )
        )
    return [*parts, *_in_pairs(drawn)]


def effect_figure(now: Suggestion, name: str) -> Figure:
    """Draw what to expect of the target over the range of a variable."""
    target, curve = now.seen.target, now.curves[name]
    ends = curve.expected - 1.96 * curve.std, curve.expected + 1.96 * curve.std
    chart = line_chart(
        {"expected": (curve.values, curve.expected)},
        title=f"{target} if {name} is set",
        x_label=name,
        y_label=target,
        bands={"expected": ends},
    )
    return Figure(chart, caption=f"Expected {target}, with its 95% interval.")


def _tried(
    told: Sequence[Mapping[str, Any]], trials: Mapping[int, Trial], target: str
) -> Table:
    rows = []
    for place, row in enumerate(told, 1):
        number = row.get("experiment_number")
        trial = None if number is None else trials.get(int(number))
        expected = why = ""
        if trial is not None:
            expected = plus_minus(trial.expected, trial.std)
            why = trial.words.partition(". ")[2]
        rows.append((place, _set_in(row), expected, float(row[target]), why))
    columns = ("row", "set", f"expected {target}", f"{target} measured", "why")
    return Table(columns, rows, caption="All experiments, what was expected, and why")


def _set_in(row: Mapping[str, Any]) -> str:
    """Return what a row set, in words."""
    names = [
        name for name in str(row.get("intervention_targets", "")).split("; ") if name
    ]
    shown = lambda cell: (
        cell if isinstance(cell, str) else in_full(cell).replace("-", MINUS)
    )
    done = [f"{name} = {shown(row[name])}" for name in names]
    return ", ".join(done) or "nothing set"


def _problem(now: Suggestion) -> list[Part]:
    rows = [
        (name, now.said(name, low), now.said(name, high))
        for name, (low, high) in now.seen.ranges.items()
    ]
    parts: list[Part] = [Table(("variable that may be set", "from", "to"), rows)]
    parts += [Text(f"{note}.") for note in now.notes]
    return parts
