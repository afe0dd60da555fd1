"""A problem: a model, a target to move, and the true answer to measure against; with
quadrature rules for expected outcomes, and the linear problems: the public benchmark
suite (chains, forks, colliders, diamonds, random graphs), and a coral reef of ours.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from jaxtyping import Float

from acbo.named.model import NamedSCM, create_linear_scm, linear_form
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


LIMIT = 5.0  # every settable variable within -5 and 5 where nothing else is said


def plain_problem(
    name: str, variables: Sequence[str], target: str, edges: Mapping[Any, float]
) -> Problem:
    """Return a problem with unit noise and one range for all but the target; `edges`
    gives the coefficient of each (cause, effect), or "XY" for names of one letter.
    """
    coefficients = {(edge[0], edge[1]): weight for edge, weight in edges.items()}
    ranges = {each: (-LIMIT, LIMIT) for each in variables if each != target}
    scm = create_linear_scm(tuple(variables), coefficients, target, ranges)
    return linear_problem(name, scm)


def chain(n: int = 3, c: float = 1.5, name: str | None = None) -> Problem:
    """Return X0 -> X1 -> ... with one coefficient and the last variable as target."""
    if n < 2:
        raise ValueError(f"a chain of {n}: give at least 2 variables")
    names = [f"X{i}" for i in range(n)]
    edges = dict.fromkeys(pairwise(names), c)
    return plain_problem(name or f"chain_{n}var", names, names[-1], edges)


def strong_diamond(name: str = "collider_4var") -> Problem:
    """Return X0 -> X1, X2 -> X3, all of 2, with little noise and ranges of +-3."""
    names = ("X0", "X1", "X2", "X3")
    pairs = (("X0", "X1"), ("X0", "X2"), ("X1", "X3"), ("X2", "X3"))
    ranges = {name: (-3.0, 3.0) for name in names} | {"X3": (-12.0, 12.0)}
    edges = dict.fromkeys(pairs, 2.0)
    scm = create_linear_scm(names, edges, "X3", ranges, noise_scales=0.1)
    return linear_problem(name, scm)


def erdos_renyi(n: int, probability: float, seed: int, name: str) -> Problem:
    """Draw Xi -> Xj, i < j, with this probability; the last variable is the target.

    Coefficients are uniform on (-2, 2) without (-0.1, 0.1). Graphs are drawn from
    NumPy's generator of this seed until the target has a cause.
    """
    random = np.random.default_rng(seed)
    names = tuple(f"X{i}" for i in range(n))
    draw = lambda: random.uniform(0.1, 2.0) * random.choice([-1.0, 1.0])
    edges: dict[tuple[str, str], float] = {}
    while not any(effect == names[-1] for _, effect in edges):
        edges = {
            (names[i], names[j]): round(float(draw()), 6)
            for i in range(n)
            for j in range(i + 1, n)
            if random.uniform() < probability
        }
    return plain_problem(name, names, names[-1], edges)


def reef_linear() -> Problem:
    """Maximize the calcification of a reef, in standardized units.

    The equations are ours, made for tests in the manner of linear reef models; they
    describe no real reef. Every variable adds noise of standard deviation 0.5.
    Temperature and saturation are measured and cannot be set.
    """
    scm = create_linear_scm(
        (
            *("light", "nutrients", "grazers", "temperature", "carbon_dioxide"),
            *("acidity", "saturation", "algae", "calcification"),
        ),
        {
            ("light", "temperature"): 0.5,
            ("temperature", "carbon_dioxide"): 0.6,
            ("carbon_dioxide", "acidity"): 0.8,
            ("acidity", "saturation"): -0.7,
            ("temperature", "saturation"): 0.3,
            ("nutrients", "algae"): 0.7,
            ("grazers", "algae"): -0.6,
            ("light", "algae"): 0.3,
            ("saturation", "calcification"): 0.8,
            ("light", "calcification"): 0.4,
            ("algae", "calcification"): -0.5,
            ("temperature", "calcification"): -0.4,
        },
        target="calcification",
        ranges={
            "light": (-1.0, 1.0),
            "nutrients": (-1.0, 2.0),
            "grazers": (-2.0, 1.5),
            "carbon_dioxide": (-1.5, 2.0),
            "acidity": (-1.0, 1.0),
            "algae": (-1.0, 2.0),
        },
        intercepts={"calcification": 1.0},
        noise_scales=0.5,
    )
    return linear_problem("reef_linear", scm, "MAXIMIZE")


# In the order of the public suite: variables, target and coefficients, or a function.
_ROWS: dict[str, Any] = {
    "fork_3var": ("XYZ", "Y", {"XY": 2.0, "ZY": -1.5}),  # two causes; the suite's name
    "chain_3var": partial(chain, 3),
    "collider_3var": ("XYZ", "Z", {"XZ": 1.2, "YZ": 0.8}),
    "diamond_4var": ("XYZW", "W", {"XY": 1.5, "XZ": -1.0, "YW": 2.0, "ZW": 1.0}),
    "mixed_coeffs_4var": ("ABCD", "D", {"AD": 2.0, "BD": -1.5, "CD": 0.5}),
    "dense_4var": partial(erdos_renyi, 4, 0.7, 123, "dense_4var"),
    "butterfly_5var": (
        *("ABCDE", "E"),
        {"AC": 0.8, "BC": 1.2, "AD": -0.5, "CD": 0.9, "CE": 1.1, "DE": 0.7},
    ),
    "sparse_5var": partial(erdos_renyi, 5, 0.2, 456, "sparse_5var"),
    "chain_5var": partial(chain, 5),
    "simple": ("XYZ", "Y", {"XY": 2.0, "ZY": -1.5}),
    "fork": ("XYZ", "Y", {"ZX": 1.0, "ZY": 2.0}),  # X moves with the target, not it
    "collider": ("XYZ", "Z", {"XZ": 1.5, "YZ": 2.0}),
    "collider_4var": strong_diamond,
}
SUITE: dict[str, Any] = {
    name: row if callable(row) else partial(plain_problem, name, *row)
    for name, row in _ROWS.items()
}
