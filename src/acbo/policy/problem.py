"""What to optimize: the target, what may be set, and what is known about causes; and
what answers it: experiments, and each variable at its best.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from typing import Any

from acbo.named.names import Edge, FrozenMap
from acbo.named.reading import find_name
from acbo.types import MAXIMIZE, MINIMIZE, Range, as_float, check_direction
from jaxrig.settings import known_only

Z = 1.96  # standard deviations on each side of a 95 % interval
Region = tuple[tuple[int, str, float], ...]  # column, comparison, number


@dataclass(frozen=True)
class Experiment:
    """What to set, and what is expected of it; outcomes in the units of the table."""

    settings: Mapping[str, float]
    expected: float  # mean outcome
    std: float  # of the mean
    gain: float  # expected improvement over the best experiment so far
    reasons: tuple[str, ...] = ()
    runs: int = 1  # whose mean tells the improvement from noise, if it was asked
    noise: float | None = None  # standard deviation of one outcome, where it is known

    @property
    def interval(self) -> Range:
        """Return the 95 % interval of the mean outcome."""
        return self.expected - Z * self.std, self.expected + Z * self.std


@dataclass(frozen=True)
class Candidate:
    """What is expected of setting one variable; outcomes in the user's units."""

    variable: str
    value: float
    probability: float  # that it is the variable to set next
    parent_probability: float  # that it causes the target directly
    ancestor_probability: float  # that it causes the target at all
    expected: float
    std: float  # of the expected outcome
    gain: float = 0.0  # expected improvement over the best experiment so far


@dataclass(frozen=True)
class Problem:
    """What to optimize, what may be set, and what is known about the causes.

    Without `settable` everything but the target may be set; without a range, a
    variable stays within the values seen.
    """

    target: str
    direction: str
    ranges: Mapping[str, Range] = field(default_factory=FrozenMap)
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=FrozenMap)
    cost: Mapping[str, float] = field(default_factory=FrozenMap)
    settable: tuple[str, ...] = ()
    know: tuple[Edge, ...] = ()
    forbid: tuple[Edge, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    avoid: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    at_once: int = 1
    batch: int = 1
    replicates: bool = False

    def __post_init__(self) -> None:
        take = lambda name, value: object.__setattr__(self, name, value)
        take("direction", check_direction(self.direction))
        levels = {name: _check_levels(name, v) for name, v in self.levels.items()}
        # The range of a variable with levels is from the lowest to the highest one.
        ends = {name: (v[0], v[-1]) for name, v in levels.items()}
        given = dict(self.ranges) | ends
        take("ranges", FrozenMap({n: _check_range(n, v) for n, v in given.items()}))
        take("levels", FrozenMap(levels))
        costs = {
            name: as_float(v, f"cost of {name!r}") for name, v in self.cost.items()
        }
        for name, value in costs.items():
            if value <= 0:
                raise ValueError(
                    f"the cost of {name!r} is {value:g}: it must be above 0"
                )
        take("cost", FrozenMap(costs))
        for name in ("know", "forbid"):
            take(name, tuple(parse_edges(as_list(getattr(self, name)))))
        for name in ("settable", "ignore", "avoid"):
            take(name, as_list(getattr(self, name)))
        take("tiers", parse_tiers(self.tiers))
        for words in self.avoid:
            parse_region(words)
        if self.at_once not in (1, 2):
            raise ValueError(f"at_once is {self.at_once}: set 1 or 2 variables at once")
        if not isinstance(self.batch, Integral) or self.batch < 1:
            raise ValueError(f"batch is {self.batch!r}: ask for 1 experiment or more")

    def for_columns(self, names: Sequence[str]) -> "Problem":
        """Return the same with every name as the table writes it."""
        found = lambda name: find_name(name, names)
        named = replace(
            self,
            target=find_name(self.target, names, "target"),
            ranges={found(name): ends for name, ends in self.ranges.items()},
            levels={found(name): given for name, given in self.levels.items()},
            cost={found(name): cost for name, cost in self.cost.items()},
            settable=tuple(map(found, self.settable)),
            know=edges_of(names, self.know),
            forbid=edges_of(names, self.forbid),
            tiers=tuple(tuple(map(found, tier)) for tier in self.tiers),
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

    def regions(self, names: Sequence[str]) -> list[Region]:
        """Return the forbidden regions by the columns of a table."""
        column = lambda name: names.index(find_name(name, names))
        return [
            tuple((column(name), sign, x) for name, sign, x in parse_region(words))
            for words in self.avoid
        ]

    def price(self, names: Sequence[str]) -> float:
        """Return the cost of setting some variables; without costs, all are alike."""
        return sum(self.cost.get(name, 1.0) for name in names) if self.cost else 1.0


def as_list(given: str | Iterable[Any]) -> tuple[Any, ...]:
    """Return what was given as a list; one text is a list of one."""
    return (given,) if isinstance(given, str) else tuple(given)


def parse_region(words: str) -> tuple[tuple[str, str, float], ...]:
    """Return the conditions of a forbidden region.

    >>> parse_region("heat > 80 & pH <= 4")
    (('heat', '>', 80.0), ('pH', '<=', 4.0))
    """
    found = []
    for part in re.split(r"&| and ", words):
        match = re.fullmatch(r"\s*(.+?)\s*(<=|>=|<|>)\s*([-+\d.eE]+)\s*", part)
        if match is None:
            raise ValueError(
                f"region {words!r}: {part.strip()!r} is not NAME>NUMBER or "
                "NAME<NUMBER, joined by &, e.g. 'heat>80 & pH<4'"
            )
        found.append((match[1], match[2], float(match[3])))
    return tuple(found)


def _check_levels(name: str, given: Iterable[Any]) -> tuple[float, ...]:
    levels = tuple(sorted({as_float(value, f"level of {name!r}") for value in given}))
    if len(levels) < 2:
        raise ValueError(f"levels of {name!r}: give at least 2 different ones")
    return levels


def parse_tiers(tiers: Any) -> tuple[tuple[str, ...], ...]:
    """Return groups of names, causes before effects, from groups or from words.

    >>> parse_tiers("heat, acid < growth < yield")
    (('heat', 'acid'), ('growth',), ('yield',))
    """
    groups = tiers.split("<") if isinstance(tiers, str) else tiers
    split = lambda group: group.split(",") if isinstance(group, str) else group
    found = tuple(
        tuple(name.strip() for name in split(group) if name.strip()) for group in groups
    )
    return () if found == ((),) else found


def _check_range(name: str, ends: Any) -> Range:
    if isinstance(ends, str) or not isinstance(ends, Iterable) or len(tuple(ends)) != 2:
        raise ValueError(f"range of {name!r} is {ends!r}: give (lowest, highest)")
    low, high = (as_float(end, f"an end of the range of {name!r}") for end in ends)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"range of {name!r} is {low:g} to {high:g}: give the low end first, both "
            "finite"
        )
    return low, high


def parse_edges(edges: Iterable[Any]) -> list[Edge]:
    """Return pairs (cause, effect) from pairs or from words such as `dose->yield`."""
    found = []
    # Several in one text, as other options have them; names may hold commas.
    several = lambda edge: isinstance(edge, str) and edge.count("->") > 1
    split = lambda edge: edge.split(",") if several(edge) else [edge]
    for edge in (each for given in edges for each in split(given)):
        parts = edge.split("->") if isinstance(edge, str) else list(edge)
        cause, effect = (*(part.strip() for part in parts), "", "")[:2]
        if len(parts) != 2 or not cause or not effect:
            raise ValueError(f"edge {edge!r} is not CAUSE->EFFECT, e.g. 'dose->yield'")
        found.append((cause, effect))
    return found


def edges_of(names: Sequence[str], edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Return edges with every name as the table writes it."""
    found = lambda name: find_name(name, names)
    return tuple((found(cause), found(effect)) for cause, effect in edges)


def make_problem(target: str, maximize: bool | None, **options: Any) -> Problem:
    """Return the problem that the options of `suggest` state."""
    if maximize is None:
        raise ValueError(
            f"say which way {target} should go: give --maximize or --minimize "
            "(maximize=True or False in Python)"
        )
    if maximize not in (True, False):
        raise ValueError(f"maximize is {maximize!r}: give True or False")
    known_only(options, [each.name for each in fields(Problem)], "option")
    return Problem(target, MAXIMIZE if maximize else MINIMIZE, **options)
