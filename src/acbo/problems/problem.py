"""A problem: a model, a target to move, and the true answer to measure against; with
quadrature rules for expected outcomes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
from jaxtyping import Float

from acbo.named.model import NamedSCM, linear_form
from acbo.named.names import FrozenMap
from acbo.named.samples import PERFECT, InterventionSpec, check_values
from acbo.types import Direction, lower_is_better

Mean = Callable[[Mapping[str, float]], float]


@dataclass(frozen=True)
class Optimum:
    """The best intervention of a kind and the expected outcome it leads to."""

    intervention: FrozenMap[float]
    outcome: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Move `target` in `direction` by setting variables within their `ranges`.

    `optimum` is the best over single variables, `best_pair` the best over pairs where
    a pair does better. Outcomes are of the equations as they stand: ranges limit what
    is set, and clip no variable that is left alone.
    """

    name: str
    scm: NamedSCM
    direction: Direction
    optimum: Optimum
    best_pair: Optimum | None
    observational_mean: float
    mean: Mean = field(repr=False)  # of the target, in closed form or by quadrature

    @property
    def target(self) -> str:
        """Return the name of the variable to move."""
        return str(self.scm.target_name)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the allowed values of each variable that may be set."""
        return self.scm.ranges

    def expected_outcome(
        self, intervention: Mapping[str, Any] | InterventionSpec | None = None
    ) -> float:
        """Return E[target | do(...)] of {variable: value} or of a perfect intervention,
        by default observational.
        """
        if isinstance(intervention, InterventionSpec):
            if intervention.type != PERFECT:
                raise ValueError(
                    f"the expected outcome of a {intervention.type} intervention is "
                    "not known: average rows of sample_with_intervention"
                )
            intervention = intervention.values
        return self.mean(check_values(self.scm, intervention or {}))


def make_problem(
    name: str,
    scm: NamedSCM,
    mean: Mean,
    best: Mapping[str, float],
    best_pair: Mapping[str, float] | None = None,
    direction: Direction = "MINIMIZE",
) -> Problem:
    """Return a problem whose best interventions are known."""
    _check_ranges(name, scm)
    found = lambda do: Optimum(FrozenMap(do), mean(check_values(scm, do)))
    pair = None if best_pair is None else found(best_pair)
    return Problem(name, scm, direction, found(best), pair, mean({}), mean)


def _check_ranges(name: str, scm: NamedSCM) -> None:
    endless = [n for n, ends in scm.ranges.items() if not np.isfinite(ends).all()]
    if endless:
        raise ValueError(
            f"{name}: {', '.join(endless)} may be set to anything, so nothing is best: "
            "give ranges={variable: (low, high)} to the model"
        )


def linear_problem(
    name: str, scm: NamedSCM, direction: Direction = "MINIMIZE"
) -> Problem:
    """Return a problem of a linear model: its best interventions are ends of ranges."""
    form, target, sign = linear_form(scm), scm.target_name, lower_is_better(direction)
    mean = lambda do: form.mean(str(target), do)
    worth = lambda do: sign * mean(do)
    _check_ranges(name, scm)
    # E[Y | do] of a linear model is linear in each value that is set, so no inner
    # point beats the ends of a range.
    single = min(_corners(scm, 1), key=worth)
    pair = min(_corners(scm, 2), key=worth, default=single)
    better = worth(pair) < worth(single)
    return make_problem(name, scm, mean, single, pair if better else None, direction)


def _corners(scm: NamedSCM, count: int) -> Iterator[dict[str, float]]:
    for names in combinations(scm.manipulable, count):
        for values in product(*(scm.ranges[name] for name in names)):
            yield dict(zip(names, values, strict=True))


Rule = tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]

POINTS = 1201
WIDTH = 9.0  # standard deviations; beyond lies a mass of 2e-19


def gaussian_rule(scale: float = 1.0) -> Rule:
    """Return nodes and weights of N(0, scale^2).

    Equally spaced: for smooth functions as good as Gauss's nodes, and better for those
    that oscillate fast in the tails, like cos(exp(-x)).
    """
    nodes = np.linspace(-WIDTH, WIDTH, POINTS)
    weights = np.exp(-(nodes**2) / 2)
    return scale * nodes, weights / weights.sum()


def uniform_rule(low: float, high: float, points: int = 40) -> Rule:
    """Return Gauss's nodes and weights of the uniform distribution on an interval."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (low + high) / 2 + (high - low) / 2 * nodes, weights / 2


def point_rule(value: float) -> Rule:
    """Return the rule of a constant, for variables that are set."""
    return np.array([value]), np.ones(1)
