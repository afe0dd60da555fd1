"""The next experiment from a table as it comes, with reasons in words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from acbo.named.names import Edge, FrozenMap
from acbo.named.reading import find_name, read_table
from acbo.named.tables import DataTable, Experiments, observed_ranges
from acbo.policy.advisor import Candidate, load_policy
from acbo.posterior.order_chains import GraphPosterior, sample_graphs
from acbo.surrogate.predictor import TRAINED_VARIABLES
from acbo.types import (
    MAXIMIZE,
    MINIMIZE,
    Range,
    check_direction,
    lower_is_better,
    percent,
    plus_minus,
    signed,
)
from jaxrig.notebook import Shown
from jaxrig.settings import known_only

Z = 1.96  # standard deviations on each side of a 95 % interval
WORTHWHILE = 0.05  # of the target's deviation: a smaller gain is none


@dataclass(frozen=True)
class Problem:
    """What to optimize, what may be set, and what is known about the causes.

    Without `settable` everything but the target may be set; without a range, a
    variable stays within the values seen.
    """

    target: str
    direction: str
    ranges: Mapping[str, Range] = field(default_factory=FrozenMap)
    settable: tuple[str, ...] = ()
    know: tuple[Edge, ...] = ()
    forbid: tuple[Edge, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", check_direction(self.direction))
        ranges = {name: _check_range(name, ends) for name, ends in self.ranges.items()}
        object.__setattr__(self, "ranges", FrozenMap(ranges))
        for name in ("know", "forbid"):
            object.__setattr__(self, name, tuple(parse_edges(getattr(self, name))))
        for name in ("settable", "ignore"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def for_columns(self, names: Sequence[str]) -> "Problem":
        """Return the same with every name as the table writes it."""
        found = lambda name: find_name(name, names)
        named = replace(
            self,
            target=find_name(self.target, names, "target"),
            ranges={found(name): ends for name, ends in self.ranges.items()},
            settable=tuple(map(found, self.settable)),
            know=_edges_of(names, self.know),
            forbid=_edges_of(names, self.forbid),
        )
        if named.target in (*named.ranges, *named.settable):
            raise ValueError(f"the target {named.target!r} cannot be set: remove it")
        outside = [
            n for n in named.ranges if named.settable and n not in named.settable
        ]
        if outside:
            raise ValueError(
                f"{outside[0]!r} has a range, but is not among the variables that may "
                f"be set ({', '.join(named.settable)}): add it or drop its range"
            )
        return named


def _check_range(name: str, ends: Any) -> Range:
    low, high = map(float, ends)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"range of {name!r} is {low:g} to {high:g}: give the low end first, both "
            "finite"
        )
    return low, high


def parse_edges(edges: Iterable[Any]) -> list[Edge]:
    """Return pairs (cause, effect) from pairs or from words such as `dose->yield`."""
    found = []
    for edge in edges:
        parts = edge.split("->") if isinstance(edge, str) else list(edge)
        cause, effect = (*(part.strip() for part in parts), "", "")[:2]
        if len(parts) != 2 or not cause or not effect:
            raise ValueError(f"edge {edge!r} is not CAUSE->EFFECT, e.g. 'dose->yield'")
        found.append((cause, effect))
    return found


@dataclass(frozen=True)
class Experiment:
    """What to set, and what is expected of it; outcomes in the units of the table."""

    settings: Mapping[str, float]
    expected: float  # mean outcome
    std: float  # of the mean
    gain: float  # expected improvement over the best experiment so far
    reasons: tuple[str, ...] = ()

    @property
    def interval(self) -> Range:
        """Return the 95 % interval of the mean outcome."""
        return self.expected - Z * self.std, self.expected + Z * self.std


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

    shown_by: ClassVar[str] = "acbo.pictures.notebook:show_suggestion"
    experiments: tuple[Experiment, ...]
    candidates: tuple[Candidate, ...]
    seen: Experiments
    edge_probs: np.ndarray  # [cause, effect], in the order of `seen.names`
    ranges_from_data: tuple[str, ...]
    method: str  # how the choice was made
    worthwhile: bool  # False: nothing is to be gained any more
    notes: tuple[str, ...]
    labels: Mapping[str, tuple[str, str]] = field(default_factory=FrozenMap)
    rows_left_out: int = 0
    graphs_sampled: bool = False

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
            f"{name} to {self.shown(name, value)}"
            for name, value in experiment.settings.items()
        )
        mean = plus_minus(experiment.expected, experiment.std)
        why = "".join(f". {reason}" for reason in experiment.reasons)
        return f"to {goal} {target}, set {done}: the expected {target} is {mean}{why}"

    def shown(self, name: str, value: float) -> str:
        """Return a value for people, as the text that the table has in its place."""
        labels = self.labels.get(name)
        return repr(labels[round(value)]) if labels else signed(value)

    def nothing_to_gain(self) -> str:
        """Return why one may stop."""
        gain = self.experiments[0].gain
        return (
            f"nothing is to be gained any more: the best experiment left improves "
            f"{self.seen.target} by {signed(gain)} on average"
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
            "graphs_sampled": self.graphs_sampled,
            "method": self.method,
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


def suggest(
    data: Any,
    target: str,
    maximize: bool | None = None,
    *,
    ranges: Mapping[str, Range] | None = None,
    settable: Sequence[str] = (),
    know: Iterable[Any] = (),
    forbid: Iterable[Any] = (),
    ignore: Sequence[str] = (),
) -> Suggestion:
    """Return the next experiment for a table of experiments.

    Arguments:
        data: pandas frame, mapping of columns, or path of a CSV file; a column
            `intervention_targets` names what was set in each row.
        target: the variable to optimize, never set.
        maximize: True to raise it, False to lower it; must be given.
        ranges: lowest and highest value of the variables that may be set; by default
            those seen.
        settable: the variables that may be set; by default all.
        know: edges that exist, as pairs or `"dose->yield"`.
        forbid: edges that cannot exist.
        ignore: columns to leave out.
    """
    problem = make_problem(
        target,
        maximize,
        ranges=ranges or {},
        settable=settable,
        know=know,
        forbid=forbid,
        ignore=ignore,
    )
    return suggest_for(problem, read_table(data, target, ignore))


def make_problem(target: str, maximize: bool | None, **options: Any) -> Problem:
    """Return the problem that the options of `suggest` state."""
    if maximize is None:
        raise ValueError(f"say which way {target} should go: maximize=True or False")
    known_only(options, [each.name for each in fields(Problem)], "option")
    return Problem(target, MAXIMIZE if maximize else MINIMIZE, **options)


def suggest_for(problem: Problem, table: DataTable) -> Suggestion:
    """Return the next experiment of a problem for a table that was read."""
    problem = problem.for_columns(table.names)
    names = problem.settable or tuple(n for n in table.names if n != problem.target)
    observed = observed_ranges(table)
    seen = Experiments(
        table.values,
        table.intervened,
        table.names,
        problem.target,
        {name: problem.ranges.get(name, observed[name]) for name in names},
        problem.direction,
        checked=True,
    )
    sampled = sample_if_needed(table, problem.know, problem.forbid)
    policy = load_policy()
    levels = {
        name: (0.0, 1.0)
        for name in names
        if seen.ranges[name] == (0.0, 1.0) and _is_binary(table, name)
    }
    free = [name for name in names if name not in problem.ranges]
    found, edges = policy.explain_with_edges(seen, sampled, levels)
    best = found[0]
    deviation = float(seen.values[:, seen.names.index(seen.target)].std())
    return Suggestion(
        (
            Experiment(
                {best.variable: best.value},
                best.expected,
                best.std,
                best.gain,
                reasons_for(best, seen),
            ),
        ),
        tuple(found),
        seen,
        edges,
        tuple(name for name in free if name not in levels),
        "trained policy",
        max(each.gain for each in found) >= WORTHWHILE * deviation,
        (*table.notes, *notes_on(seen, problem, sampled)),
        table.labels,
        table.dropped,
        sampled is not None,
    )


def _is_binary(table: DataTable, name: str) -> bool:
    """Return whether a column is 0 or 1 everywhere: it is set to these only."""
    return bool(np.isin(table.values[:, table.index(name)], (0.0, 1.0)).all())


def sample_if_needed(
    table: DataTable, know: Iterable[Edge], forbid: Iterable[Edge]
) -> GraphPosterior | None:
    """Return sampled graphs where the network cannot answer: many variables, known or
    forbidden edges.
    """
    required, forbidden = (_edges_of(table.names, each) for each in (know, forbid))
    if len(table.names) <= TRAINED_VARIABLES and not required and not forbidden:
        return None
    return sample_graphs(
        table.values,
        table.intervened,
        names=table.names,
        required=required,
        forbidden=forbidden,
    )


def _edges_of(names: Sequence[str], edges: Iterable[Edge]) -> tuple[Edge, ...]:
    found = lambda name: find_name(name, names)
    return tuple((found(cause), found(effect)) for cause, effect in edges)


def reasons_for(best: Candidate, seen: Experiments) -> tuple[str, ...]:
    """Return why a variable is set, in words."""
    column, target = (seen.names.index(name) for name in (best.variable, seen.target))
    chance = f"The probability that {best.variable} is a cause is "
    chance += f"{percent(best.ancestor_probability)} (direct cause: "
    chance += f"{percent(best.parent_probability)})"
    times = int(seen.intervened[:, column].sum())
    tried = f"{best.variable} was set in {times} of {len(seen.values)} rows"
    acted = seen.intervened.any(axis=1)
    if not acted.any():
        return (chance, tried)
    outcomes = np.where(acted, lower_is_better(seen.direction), np.nan)
    row = int(np.nanargmin(outcomes * seen.values[:, target]))
    made = " and ".join(
        f"{name} = {signed(seen.values[row, i])}"
        for i, name in enumerate(seen.names)
        if seen.intervened[row, i]
    )
    reached = signed(float(seen.values[row, target]))
    return (chance, tried, f"The best experiment so far, {made}, gave {reached}")


def notes_on(
    seen: Experiments, problem: Problem, sampled: GraphPosterior | None
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
    return (*notes, *note_on_graphs(seen.names, sampled))


def note_on_graphs(
    names: Sequence[str], sampled: GraphPosterior | None
) -> tuple[str, ...]:
    """Return why graphs were sampled, if they were."""
    if sampled is None:
        return ()
    reason = "edges are known or forbidden"
    if len(names) > TRAINED_VARIABLES:
        reason = (
            f"{len(names)} variables are more than the {TRAINED_VARIABLES} that the "
            "network was trained on"
        )
    return (
        f"{reason}: probabilities are of graphs sampled from the posterior of "
        "linear-Gaussian models",
    )
