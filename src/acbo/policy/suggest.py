"""The next experiment from a table as it comes, with reasons in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from acbo.named.names import Edge, FrozenMap
from acbo.named.reading import read_table
from acbo.named.tables import DataTable, Experiments, observed_ranges
from acbo.policy.planning import PAIRED, EffectCurve, add_partial, plan
from acbo.policy.problem import (
    Candidate,
    Experiment,
    Problem,
    edges_of,
    make_problem,
)
from acbo.posterior.order_chains import GraphPosterior
from acbo.surrogate.predictor import infer_graphs
from acbo.types import MINIMIZE, MINUS, Range, in_words, percent, plus_minus, signed
from jaxrig.notebook import Shown

METHOD = "expected improvement under sampled models"
MISFITS_TOLD = 5  # variables that a note lists
WORTHWHILE = 0.05  # of the target's deviation: less to gain is little


@dataclass(frozen=True)
class Trial:
    """An experiment that was asked for; outcomes in the units of the table."""

    number: int
    settings: dict[str, float]
    expected: float
    std: float  # of the expected outcome
    gain: float  # expected improvement over the best experiment before
    words: str


@dataclass(frozen=True)
class Ask:
    """What was asked for at one time, and what was known then."""

    trials: tuple[Trial, ...]
    time: str
    rows: int  # told until then
    worthwhile: bool
    cause_probs: dict[str, float]
    parent_probs: dict[str, float]
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, float]:
        """Return what the first experiment sets."""
        return self.trials[0].settings

    def __str__(self) -> str:
        return "\n".join(f"experiment {t.number}: {t.words}" for t in self.trials)


@dataclass(frozen=True, eq=False)
class Suggestion(Shown):
    """The experiment to make next, why, and what else could be done.

    `candidates` holds each variable at its best value, the one to choose first.
    """

    shown_by: ClassVar[str] = "acbo.pictures.charts:show_suggestion"
    experiments: tuple[Experiment, ...]
    candidates: tuple[Candidate, ...]
    seen: Experiments
    edge_probs: np.ndarray  # [cause, effect], in the order of `seen.names`
    ranges_from_data: tuple[str, ...]
    method: str  # how the choice was made
    to_gain: float  # expected improvement by the best experiment, were it known
    worthwhile: bool  # False: there is little left to gain
    notes: tuple[str, ...]
    labels: Mapping[str, tuple[str, str]] = field(default_factory=FrozenMap)
    rows_left_out: int = 0
    unlike_training: bool = False
    curves: Mapping[str, EffectCurve] = field(default_factory=FrozenMap)

    @property
    def settings(self) -> dict[str, float]:
        """Return values by the names of the variables to set."""
        return dict(self.experiments[0].settings)

    @property
    def variable(self) -> str:
        """Return the (first) variable to set."""
        return next(iter(self.settings))

    @property
    def value(self) -> float:
        """Return the value to set it to."""
        return self.settings[self.variable]

    @property
    def expected(self) -> float:
        """Return the expected mean outcome."""
        return self.experiments[0].expected

    @property
    def interval(self) -> Range:
        """Return the 95 % interval of the mean outcome."""
        return self.experiments[0].interval

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons in words."""
        return self.experiments[0].reasons

    @property
    def cause_probs(self) -> dict[str, float]:
        """Return the probability that each variable causes the target at all."""
        return {each.variable: each.ancestor_probability for each in self.candidates}

    @property
    def parent_probs(self) -> dict[str, float]:
        """Return the probability that each variable causes the target directly."""
        return {each.variable: each.parent_probability for each in self.candidates}

    def __str__(self) -> str:
        lines = [self.sentence(each) for each in self.experiments]
        if not self.worthwhile:
            lines.insert(0, self.nothing_to_gain())
        return "\n".join([*lines, *self.notes])

    def sentence(self, experiment: Experiment) -> str:
        """Return an experiment in words."""
        target = self.seen.target
        goal = "lower" if self.seen.direction == MINIMIZE else "raise"
        done = " and ".join(
            f"{name} to {self.said(name, value)}"
            for name, value in experiment.settings.items()
        )
        mean = plus_minus(experiment.expected, experiment.std).replace("-", MINUS)
        why = "".join(f". {reason}" for reason in experiment.reasons)
        return f"to {goal} {target}, set {done}: the expected {target} is {mean}{why}"

    def said(self, name: str, value: float) -> str:
        """Return a value for a sentence, in as many digits as its range needs."""
        return _told(self.seen, self.labels, name, value)

    def nothing_to_gain(self) -> str:
        """Return why one may stop."""
        return (
            "there is little left to gain: the best experiment, were it known, would "
            f"improve {self.seen.target} by {in_words(self.to_gain)} on average"
        )

    def as_ask(self, number: int, time: str) -> Ask:
        """Return what a campaign keeps of it; experiments count on from a number."""
        trials = [
            Trial(
                number + place,
                {name: float(value) for name, value in each.settings.items()},
                float(each.expected),
                float(each.std),
                float(each.gain),
                self.sentence(each),
            )
            for place, each in enumerate(self.experiments, 1)
        ]
        notes = self.notes if self.worthwhile else (self.nothing_to_gain(), *self.notes)
        return Ask(
            tuple(trials),
            time,
            len(self.seen.values),
            self.worthwhile,
            self.cause_probs,
            self.parent_probs,
            notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        seen = self.seen
        return {
            "target": seen.target,
            "direction": seen.direction,
            "rows": len(seen.values),
            "ranges": {name: list(ends) for name, ends in seen.ranges.items()},
            "ranges_from_data": list(self.ranges_from_data),
            "rows_left_out": self.rows_left_out,
            "unlike_training": self.unlike_training,
            "method": self.method,
            "to_gain": self.to_gain,
            "worthwhile": self.worthwhile,
            "notes": list(self.notes),
            "suggestion": self.settings,
            "experiments": [
                asdict(replace(each, settings=dict(each.settings)))
                | {"interval": list(each.interval)}
                for each in self.experiments
            ],
            "variables": [asdict(each) for each in self.candidates],
        }


def _told(
    seen: Experiments, labels: Mapping[str, tuple[str, str]], name: str, value: float
) -> str:
    """Return a value for a sentence, or the text that the table has in its place."""
    if name in labels:
        return _shown(labels, name, value)
    low, high = seen.ranges.get(name, (0.0, 0.0))
    spread = high - low or float(np.std(seen.values[:, seen.names.index(name)]))
    return in_words(value, spread)


def _shown(labels: Mapping[str, tuple[str, str]], name: str, value: float) -> str:
    return repr(labels[name][round(value)]) if name in labels else signed(value)


def suggest(
    data: Any,
    target: str,
    maximize: bool | None = None,
    *,
    ignore: Sequence[str] = (),
    **options: Any,
) -> Suggestion:
    """Return the next experiment for a table of experiments.

    Arguments:
        data: pandas frame, mapping of columns, or path of a CSV file; a column
            `intervention_targets` names what was set in each row.
        target: the variable to optimize, never set.
        maximize: True to raise it, False to lower it; must be given.
        ignore: columns to leave out.
        ranges: lowest and highest value of the variables that may be set; by default
            those seen.
        levels: the only values that a variable can be set to.
        settable: the variables that may be set; by default all.
        know: edges that exist, as pairs or `"dose->yield"`.
        forbid: edges that cannot exist.
        tiers: groups of variables, causes before effects, or `"a, b < c < d"`.
        cost: cost of setting a variable, 1 by default; gain per square root of cost
            is what counts.
        avoid: regions where nothing may be, such as `"heat>80 & pH<4"`.
        at_once: 2 to set one or two variables at once.
        batch: number of experiments to make before the next outcome is known.
        replicates: True to tell how many runs of an experiment are worth making.
    """
    problem = make_problem(target, maximize, ignore=ignore, **options)
    return suggest_for(problem, read_table(data, target, problem.ignore))


def suggest_for(problem: Problem, table: DataTable) -> Suggestion:
    """Return the next experiment of a problem for a table that was read."""
    problem = problem.for_columns(table.names)
    names = problem.settable or tuple(n for n in table.names if n != problem.target)
    if not names:
        raise ValueError(
            f"there is no variable beside the target {problem.target!r} to be set"
            + "".join(f"; {note}" for note in table.notes)
        )
    seen = _experiments_in(table, problem, names)
    levels = {n: given for n, given in problem.levels.items() if n in seen.ranges} | {
        name: (0.0, 1.0)
        for name in names
        if seen.ranges[name] == (0.0, 1.0)
        and np.isin(table.values[:, table.index(name)], (0.0, 1.0)).all()
    }
    graphs = graphs_of(table, problem.know, problem.forbid, problem.tiers)
    if table.partial is not None:
        seen = add_partial(seen, graphs, *table.partial)
    batch, found, curves, to_gain = plan(seen, graphs, problem, levels)
    causes = {each.variable: each for each in found}
    told = seen, table.labels, problem.replicates
    experiments = [_explain(each, causes, *told) for each in batch]
    deviation = float(seen.values[:, seen.column].std())
    free = [name for name in names if name not in problem.ranges]
    softly = int(table.soft.any(axis=1).sum())
    changed = f"{softly} of {len(table.values)} rows changed a variable softly"
    note = (f"{changed}: they tell about causes only",) if softly else ()
    return Suggestion(
        tuple(experiments),
        tuple(found),
        seen,
        graphs.edge_probs,
        tuple(name for name in free if name not in levels),
        METHOD,
        to_gain,
        to_gain >= WORTHWHILE * deviation,
        (*table.notes, *note, *notes_on(seen, problem, graphs)),
        table.labels,
        table.dropped,
        graphs.unlike_training,
        curves,
    )


def _experiments_in(
    table: DataTable, problem: Problem, names: Sequence[str]
) -> Experiments:
    """Return the rows that tell what comes of settings, with the ranges of `names`."""
    observed = observed_ranges(table)
    # What was changed softly has the value that its causes gave it, which is no setting
    # whose outcome could be learned: such rows tell about causes only.
    kept = ~table.soft.any(axis=1)
    if kept.sum() < 2:
        raise ValueError(
            f"variables were changed softly in all but {int(kept.sum())} of the "
            f"{len(kept)} rows: give at least 2 rows that are observational or in "
            "which variables were set"
        )
    return Experiments(
        table.values[kept],
        table.intervened[kept],
        table.names,
        problem.target,
        {name: problem.ranges.get(name, observed[name]) for name in names},
        problem.direction,
        checked=True,
    )


def _explain(
    made: Experiment,
    causes: Mapping[str, Candidate],
    seen: Experiments,
    labels: Mapping[str, tuple[str, str]],
    replicates: bool,
) -> Experiment:
    """Return an experiment with the reasons for it in words."""
    reasons = [reason_to_set(causes[name], seen) for name in made.settings]
    reasons += _reasons_from_rows(seen, labels)
    runs = made.runs if replicates else 1
    if replicates and made.noise is not None:
        reasons.append(
            f"One outcome varies by ± {in_words(made.noise)}: the mean of "
            f"{runs} run{'s' * (runs > 1)} tells the gain from noise"
        )
    return replace(made, reasons=tuple(reasons), runs=runs)


def graphs_of(
    table: DataTable,
    know: Iterable[Edge] = (),
    forbid: Iterable[Edge] = (),
    tiers: Sequence[Sequence[str]] = (),
) -> GraphPosterior:
    """Return the posterior over graphs of a table, given what is known of edges."""
    required, forbidden = (edges_of(table.names, each) for each in (know, forbid))
    return infer_graphs(
        table.values,
        table.intervened,
        names=table.names,
        required=required,
        forbidden=forbidden,
        tiers=tiers,
        soft=table.soft,
    )


def reason_to_set(best: Candidate, seen: Experiments) -> str:
    """Return how likely a variable is a cause, in words."""
    times = int(seen.intervened[:, seen.names.index(best.variable)].sum())
    return (
        f"The probability that {best.variable} is a cause is "
        f"{percent(best.ancestor_probability)} (direct cause: "
        f"{percent(best.parent_probability)}); it was set in {times} of "
        f"{len(seen.values)} rows"
    )


def _reasons_from_rows(
    seen: Experiments, labels: Mapping[str, tuple[str, str]]
) -> tuple[str, ...]:
    """Return the best experiment so far, in words, if there is one."""
    acted = seen.intervened.any(axis=1)
    if not acted.any():
        return ()
    outcomes = np.where(acted, seen.sign, np.nan) * seen.values[:, seen.column]
    row = int(np.nanargmin(outcomes))
    made = " and ".join(
        f"{name} = {_told(seen, labels, name, seen.values[row, i])}"
        for i, name in enumerate(seen.names)
        if seen.intervened[row, i]
    )
    reached = _told(seen, {}, seen.target, seen.values[row, seen.column])
    return (f"The best experiment so far, {made}, gave {reached}",)


def notes_on(
    seen: Experiments, problem: Problem, graphs: GraphPosterior
) -> tuple[str, ...]:
    """Return what to know about ranges and about the source of probabilities."""
    notes = []
    for name, (low, high) in problem.ranges.items():
        column = seen.names.index(name)
        cells = seen.values[:, column]
        # Data are of single precision: an end itself must not count as outside.
        slack = 1e-6 * max(abs(low), abs(high))
        far = seen.intervened[:, column] & (
            (cells < low - slack) | (cells > high + slack)
        )
        if far.any():
            notes.append(
                f"{int(far.sum())} rows set {name!r} outside its range {low:g} to "
                f"{high:g} (first: {cells[np.argmax(far)]:g})"
            )
    if problem.at_once > 1 and len(seen.ranges) > PAIRED:
        notes.append(f"pairs are of the {PAIRED} likeliest causes")
    return (*notes, *note_on_graphs(graphs))


def note_on_graphs(graphs: GraphPosterior) -> tuple[str, ...]:
    """Return what the probabilities rest on, unless it is network and rows alike, and
    which variables share a hidden cause.
    """
    notes = [graphs.note] if graphs.unlike_training else []
    if graphs.misfits:
        told = [f"{name} ({', '.join(m)})" for name, m in graphs.misfits.items()]
        more = f" and {len(told) - MISFITS_TOLD} more" if told[MISFITS_TOLD:] else ""
        notes.append(
            "linear models with Gaussian noise do not fit: "
            f"{', '.join(told[:MISFITS_TOLD])}{more}. Probabilities allow for skewed "
            "noise and curves; expected outcomes are the less sure"
        )
    for i, j in np.argwhere(np.triu(graphs.confounded_probs) > 0.5):
        chance = percent(float(graphs.confounded_probs[i, j]))
        notes.append(
            f"{graphs.names[i]} and {graphs.names[j]} go together by a hidden common "
            f"cause ({chance}): setting one does not move the other"
        )
    return tuple(notes)
